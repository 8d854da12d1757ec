import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Authentication;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.impl.auth.AuthenticationTls;

/**
 * SERVICE_URL WEB_URL TRUSTED CERTIFICATE KEY: goes to both addresses inside TLS with that certificate; prints what came
 * back of a published message, and the subscriptions of its topic.
 */
public class Sealed {
    public static void main(String[] args) throws Exception {
        String topic = "persistent://public/default/sealed-java";
        Authentication own = new AuthenticationTls(args[3], args[4]);
        try (PulsarClient messages = PulsarClient.builder().serviceUrl(args[0]).tlsTrustCertsFilePath(args[2])
                        .enableTlsHostnameVerification(true).authentication(own).build();
                PulsarAdmin calls = PulsarAdmin.builder().serviceHttpUrl(args[1]).tlsTrustCertsFilePath(args[2])
                        .enableTlsHostnameVerification(true).authentication(own).build();
                Consumer<String> consumer =
                        messages.newConsumer(Schema.STRING).topic(topic).subscriptionName("java").subscribe();
                Producer<String> producer = messages.newProducer(Schema.STRING).topic(topic).create()) {
            producer.send("inside");
            Message<String> message = consumer.receive(60, TimeUnit.SECONDS);
            System.out.println("message: " + (message == null ? "nothing" : message.getValue()));
            System.out.println("admin: " + calls.topics().getSubscriptions(topic));
        }
        System.exit(0);
    }
}
