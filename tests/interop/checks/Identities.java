import java.net.URI;
import java.net.URL;
import java.util.concurrent.Callable;
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
        for (int each = 5; each < args.length; each += 2) {
            String service = args[each];
            String web = args[each + 1];
            tell("right password", service, web, args[0], () -> basic("admin", "admin-word"));
            tell("wrong password", service, web, args[0], () -> basic("admin", "word"));
            tell("no grant", service, web, args[0], () -> basic("nobody", "word"));
            tell("issuer", service, web, args[0], () -> oauth2(args, 3));
            tell("issuer, no grant", service, web, args[0], () -> oauth2(args, 4));
        }
        System.exit(0);
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

    private static void tell(
            String what, String service, String web, String topic, Callable<Authentication> who) {
        System.out.println(what + ", publishing: " + outcome(() -> {
            try (PulsarClient client = PulsarClient.builder().serviceUrl(service).authentication(who.call())
                            .operationTimeout(5, TimeUnit.SECONDS).lookupTimeout(5, TimeUnit.SECONDS).build();
                    Producer<byte[]> producer = client.newProducer().topic(topic).create()) {
                producer.send(new byte[1]);
            }
            return null;
        }));
        System.out.println(what + ", administration: " + outcome(() -> {
            try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(web).authentication(who.call()).build()) {
                admin.tenants().getTenants();
            }
            return null;
        }));
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
