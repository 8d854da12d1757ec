import java.net.URI;
import java.net.URL;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Authentication;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.impl.auth.AuthenticationBasic;
import org.apache.pulsar.client.impl.auth.oauth2.AuthenticationFactoryOAuth2;

/**
 * TOPIC ISSUER AUDIENCE KEY_FILE KEY_FILE_OF_A_STRANGER, then SERVICE_URL and WEB_URL of each cluster: comes as a user with
 * a password and with tokens of the issuer; prints what comes of each attempt at both front ends.
 */
public class Identities {
    public static void main(String[] args) throws Exception {
        // The first warms the machine up; refused clients try for seconds, so the others go side by side.
        System.out.print(told(args, 5));
        List<CompletableFuture<String>> others = new ArrayList<>();
        for (int each = 7; each < args.length; each += 2) {
            int place = each;
            CompletableFuture<String> other = new CompletableFuture<>();
            new Thread(() -> other.complete(told(args, place))).start();
            others.add(other);
        }
        for (CompletableFuture<String> other : others) {
            System.out.print(other.get());
        }
        System.exit(0);
    }

    private static String told(String[] args, int place) {
        String service = args[place];
        String web = args[place + 1];
        return tell("right password", service, web, args[0], () -> basic("admin", "admin-word"))
                + tell("wrong password", service, web, args[0], () -> basic("admin", "word"))
                + tell("no grant", service, web, args[0], () -> basic("nobody", "word"))
                + tell("issuer", service, web, args[0], () -> oauth2(args, 3))
                + tell("issuer, no grant", service, web, args[0], () -> oauth2(args, 4));
    }

    private static Authentication basic(String user, String password) {
        AuthenticationBasic authentication = new AuthenticationBasic();
        authentication.configure("{\"userId\":\"" + user + "\",\"password\":\"" + password + "\"}");
        return authentication;
    }

    private static Authentication oauth2(String[] args, int keyFile) throws Exception {
        URL issuer = URI.create(args[1]).toURL();
        return AuthenticationFactoryOAuth2.clientCredentials(issuer, URI.create(args[keyFile]).toURL(), args[2]);
    }

    private static String tell(
            String what, String service, String web, String topic, Callable<Authentication> who) {
        String published = outcome(() -> {
            try (PulsarClient client = PulsarClient.builder().serviceUrl(service).authentication(who.call())
                            .operationTimeout(5, TimeUnit.SECONDS).lookupTimeout(5, TimeUnit.SECONDS).build();
                    Producer<byte[]> producer = client.newProducer().topic(topic).create()) {
                producer.send(new byte[1]);
            }
            return null;
        });
        String administered = outcome(() -> {
            try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(web).authentication(who.call()).build()) {
                admin.tenants().getTenants();
            }
            return null;
        });
        return what + ", publishing: " + published + "\n" + what + ", administration: " + administered + "\n";
    }

    private static String outcome(Callable<Void> attempt) {
        try {
            attempt.call();
            return "done";
        } catch (Throwable failure) {
            return failure.getClass().getSimpleName();
        }
    }
}
