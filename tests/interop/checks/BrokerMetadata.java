import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;

/**
 * SERVICE_URL TOPIC: publishes single messages, a batch and a message in chunks, then prints of every message that the
 * topic has by now, one line each: its size, its index, and whether the broker noted when it came.
 */
public class BrokerMetadata {
    public static void main(String[] args) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
            publish(client, args[1]);
            try (Reader<byte[]> reader = client.newReader().topic(args[1]).startMessageId(MessageId.earliest).create()) {
                while (reader.hasMessageAvailable()) {
                    Message<byte[]> message = reader.readNext(60, TimeUnit.SECONDS);
                    System.out.println(message.getData().length + " " + index(message) + " " + time(message));
                }
            }
        }
    }

    private static void publish(PulsarClient client, String topic) throws Exception {
        try (Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false)
                .enableChunking(true).chunkMaxMessageSize(1000).create()) {
            producer.send(new byte[1]);
            producer.send(new byte[2]);
            producer.send(new byte[2500]);
        }
        try (Producer<byte[]> producer = client.newProducer().topic(topic).batchingMaxMessages(3)
                .batchingMaxPublishDelay(1, TimeUnit.MINUTES).batcherBuilder(BatcherBuilder.DEFAULT).create()) {
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            for (int size = 3; size < 6; size++) sent.add(producer.sendAsync(new byte[size]));
            for (CompletableFuture<MessageId> each : sent) each.get(60, TimeUnit.SECONDS);
        }
    }

    private static String index(Message<byte[]> message) {
        return message.hasIndex() ? "" + message.getIndex().get() : "-";
    }

    private static String time(Message<byte[]> message) {
        if (!message.hasBrokerPublishTime()) return "-";
        long early = System.currentTimeMillis() - message.getBrokerPublishTime().get();
        return early >= 0 && early < 300_000 ? "timed" : "wrong by " + early;
    }
}
