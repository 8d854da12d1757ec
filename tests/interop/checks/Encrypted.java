import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/**
 * SERVICE_URL PUBLIC_KEY PRIVATE_KEY: prints the sizes and checksums of the three messages that each topic ours-FORM has,
 * and sends three to each topic java-FORM, encrypted, whose sizes and checksums it prints too.
 */
public class Encrypted {
    public static void main(String[] args) throws Exception {
        Map<String, Integer> forms = new LinkedHashMap<>();
        forms.put("single", 100);
        forms.put("batch", 100);
        forms.put("chunks", 6_000_000);
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
            for (String form : forms.keySet()) {
                try (Consumer<byte[]> consumer = client.newConsumer().topic("ours-" + form).subscriptionName("java")
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .defaultCryptoKeyReader("file://" + args[2]).subscribe()) {
                    for (int number = 0; number < 3; number++) {
                        Message<byte[]> message = consumer.receive(60, TimeUnit.SECONDS);
                        System.out.println("got " + form + ": " + (message == null ? "nothing" : told(message.getData())));
                    }
                }
                ProducerBuilder<byte[]> wanted = client.newProducer().topic("java-" + form).addEncryptionKey("orders")
                        .defaultCryptoKeyReader("file://" + args[1]).compressionType(CompressionType.ZLIB)
                        .enableBatching(form.equals("batch")).enableChunking(form.equals("chunks"))
                        .batchingMaxPublishDelay(1, TimeUnit.SECONDS);
                try (Producer<byte[]> producer = wanted.create()) {
                    for (int number = 0; number < 3; number++) {
                        byte[] content = new byte[forms.get(form)];
                        new Random(number).nextBytes(content);
                        producer.sendAsync(content);
                        System.out.println("sent " + form + ": " + told(content));
                    }
                    producer.flush();
                }
            }
        }
        System.exit(0);
    }

    private static String told(byte[] content) {
        CRC32 sum = new CRC32();
        sum.update(content);
        return content.length + " " + sum.getValue();
    }
}
