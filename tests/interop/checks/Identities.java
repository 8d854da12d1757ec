import java.net.URI;
import java.net.URL;
import java.util.concurrent.Callable;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Authentication;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.impl.auth.AuthenticationBasic;
import org.apache.pulsar.client.impl.auth.oauth2.AuthenticationFactoryOAuth2;

/**
 * SERVICE_URL WEB_URL TOPIC ISSUER AUDIENCE KEY_FILE KEY_FILE_OF_A_STRANGER: comes as a user with a password and with
 * tokens of the issuer; prints what comes of each attempt at both front ends.
 */
public class Identities {
    public static void main(String[] args) throws Exception {
        tell("right password", args, () -> basic("admin", "admin-word"));
        tell("wrong password", args, () -> basic("admin", "word"));
        tell("no grant", args, () -> basic("nobody", "word"));
        tell("issuer", args, () -> oauth2(args, 5));
        tell("issuer, no grant", args, () -> oauth2(args, 6));
        System.exit(0);
    }

    private static Authentication basic(String user, String password) {
        AuthenticationBasic authentication = new AuthenticationBasic();
        authentication.configure("{\"userId\":\"" + user + "\",\"password\":\"" + password + "\"}");
        return authentication;
    }

    private static Authentication oauth2(String[] args, int keyFile) throws Exception {
        URL issuer = URI.create(args[3]).toURL();
        return AuthenticationFactoryOAuth2.clientCredentials(issuer, URI.create(args[keyFile]).toURL(), args[4]);
    }

    private static void tell(String what, String[] args, Callable<Authentication> who) {
        System.out.println(what + ", publishing: " + outcome(() -> {
            try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).authentication(who.call()).build();
                    Producer<byte[]> producer = client.newProducer().topic(args[2]).create()) {
                producer.send(new byte[1]);
            }
            return null;
        }));
        System.out.println(what + ", administration: " + outcome(() -> {
            try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(args[1]).authentication(who.call()).build()) {
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
