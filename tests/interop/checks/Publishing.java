import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.*;

/**
 * Publishes one message after the other with one producer, and tells what became of each: "stored", or the name of the
 * exception and how long it took. Ends when messages were stored, refused, and stored again. Argument: the service URL.
 */
public class Publishing {
    public static void main(String[] arguments) throws Exception {
        String topic = "persistent://public/default/publishing-" + System.nanoTime();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0])
                .maxBackoffInterval(1, TimeUnit.SECONDS).build();
                Producer<byte[]> producer = client.newProducer().topic(topic).create()) {
            boolean refused = false;
            for (int number = 0; ; number++) {
                long begun = System.nanoTime();
                try {
                    producer.send(("" + number).getBytes());
                    System.out.println("stored");
                    if (refused) return;
                } catch (PulsarClientException error) {
                    long ms = (System.nanoTime() - begun) / 1_000_000;
                    System.out.println(error.getClass().getSimpleName() + (ms < 15_000 ? " at once" : " late"));
                    refused = true;
                }
            }
        }
    }
}
