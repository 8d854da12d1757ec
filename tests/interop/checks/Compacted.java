import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.LongRunningProcessStatus;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TableView;

/**
 * SERVICE_URL WEB_URL: compacts a topic of single messages and one of batches, with values, null values and messages
 * without a key, and prints what a reader, a consumer and a table view see of it.
 */
public class Compacted {
    private static final String[][] HISTORY = {
        {"a", "1"}, {"b", "1"}, {null, "no key"}, {"a", "2"}, {"b", null}, {"c", "1"}, {"c", "2"}
    };

    public static void main(String[] args) throws Exception {
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(args[1]).build();
                PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
            for (boolean batched : new boolean[] {false, true}) {
                String topic = "persistent://public/default/java-compacted-" + System.nanoTime();
                publish(client, topic, batched, HISTORY);
                compact(admin, topic);
                publish(client, topic, batched, new String[][] {{"d", "1"}});
                String kind = batched ? "batched" : "single";
                System.out.println(kind + " reader: " + read(client, topic));
                System.out.println(kind + " consumer: " + consume(client, topic));
                System.out.println(kind + " table: " + table(client, topic));
            }
        }
        System.exit(0);
    }

    private static void publish(PulsarClient client, String topic, boolean batched, String[][] rows) throws Exception {
        try (Producer<String> producer = client.newProducer(Schema.STRING).topic(topic).enableBatching(batched)
                .batchingMaxPublishDelay(5, TimeUnit.SECONDS).create()) {
            for (String[] row : rows) {
                var message = producer.newMessage().value(row[1]);
                (row[0] == null ? message : message.key(row[0])).sendAsync();
            }
            producer.flush();
        }
    }

    private static void compact(PulsarAdmin admin, String topic) throws Exception {
        admin.topics().triggerCompaction(topic);
        while (admin.topics().compactionStatus(topic).status == LongRunningProcessStatus.Status.RUNNING) {
            Thread.sleep(20);
        }
    }

    private static List<String> read(PulsarClient client, String topic) throws Exception {
        List<String> found = new ArrayList<>();
        try (Reader<String> reader = client.newReader(Schema.STRING).topic(topic).readCompacted(true)
                .startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                found.add(shown(reader.readNext(60, TimeUnit.SECONDS)));
            }
        }
        return found;
    }

    private static List<String> consume(PulsarClient client, String topic) throws Exception {
        List<String> found = new ArrayList<>();
        try (Consumer<String> consumer = client.newConsumer(Schema.STRING).topic(topic).subscriptionName("f")
                .subscriptionType(SubscriptionType.Failover).readCompacted(true)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            while (found.size() < 3) {
                Message<String> message = consumer.receive(60, TimeUnit.SECONDS);
                found.add(shown(message));
                consumer.acknowledge(message);
            }
            Message<String> more = consumer.receive(300, TimeUnit.MILLISECONDS);
            if (more != null) {
                found.add(shown(more));
            }
        }
        return found;
    }

    private static Map<String, String> table(PulsarClient client, String topic) throws Exception {
        try (TableView<String> view = client.newTableView(Schema.STRING).topic(topic).create()) {
            return new TreeMap<>(view.entrySet().stream().collect(java.util.stream.Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue)));
        }
    }

    private static String shown(Message<String> message) {
        return message == null ? "nothing" : message.getKey() + "=" + message.getValue();
    }
}
