import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.admin.ListTopicsOptions;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.impl.PatternMultiTopicsConsumerImpl;
import org.apache.pulsar.common.naming.TopicDomain;

/**
 * SERVICE_URL WEB_URL NAMESPACE: a pattern consumer that asks for its topics only every ten minutes, so what it learns
 * meanwhile it was told: a late topic, a late partitioned one, one that is deleted, and one that is created again. Then
 * one with a pattern that a broker may leave to it, and that asks every second; and topics by their properties (PIP-452).
 */
public class TopicWatching {
    private static PulsarClient client;

    public static void main(String[] args) throws Exception {
        String name = "persistent://" + args[2] + "/";
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(args[1]).build();
                PulsarClient opened = PulsarClient.builder().serviceUrl(args[0]).build()) {
            client = opened;
            admin.namespaces().createNamespace(args[2]);
            admin.topics().createNonPartitionedTopic(name + "f-early");
            admin.topics().createNonPartitionedTopic(name + "other");
            try (Consumer<byte[]> consumer = opened.newConsumer()
                    .topicsPattern(Pattern.compile(name + "f-.*"))
                    .subscriptionName("s")
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                    .patternAutoDiscoveryPeriod(600, TimeUnit.SECONDS)
                    .subscribe()) {
                send(name + "f-early", "early");
                System.out.println("early: " + receive(consumer));
                send(name + "other", "not ours");
                send(name + "f-late", "late");
                System.out.println("late: " + receive(consumer));
                admin.topics().createPartitionedTopic(name + "f-parts", 2);
                send(name + "f-parts", "parts");
                System.out.println("late partitioned: " + receive(consumer));
                admin.topics().delete(name + "f-late", true);
                send(name + "f-early", "after deletion");
                System.out.println("others go on: " + receive(consumer));
                Set<String> left = new TreeSet<>();
                for (String topic : admin.topics().getList(args[2])) {
                    left.add(topic.substring(name.length()));
                }
                System.out.println("left: " + left);
                send(name + "f-late", "again");
                System.out.println("created again: " + receive(consumer));
            }
            try (Consumer<byte[]> consumer = opened.newConsumer()
                    .topicsPattern(Pattern.compile(name + "(?!x)java-.*"))
                    .subscriptionName("s")
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                    .patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS)
                    .subscribe()) {
                send(name + "java-late", "late");
                System.out.println("pattern that RE2 does not know: " + receive(consumer));
            }
            Map<String, String> properties = Map.of("team", "a b");
            admin.topics().createNonPartitionedTopic(name + "p-chosen", properties);
            admin.topics().createNonPartitionedTopic(name + "p-other");
            try (Consumer<byte[]> consumer = opened.newConsumer()
                    .topicsPattern(Pattern.compile(name + "p-.*"))
                    .subscriptionName("s")
                    .properties(properties)
                    .subscribe()) {
                int topics = ((PatternMultiTopicsConsumerImpl<byte[]>) consumer).getPartitions().size();
                System.out.println("topics of a consumer with properties: " + topics);
            }
            ListTopicsOptions wanted = ListTopicsOptions.builder().properties(properties).build();
            Set<String> chosen = new TreeSet<>();
            for (String topic : admin.topics().getList(args[2], TopicDomain.persistent, wanted)) {
                if (topic.startsWith(name + "p-")) {
                    chosen.add(topic.substring(name.length()));
                }
            }
            System.out.println("listed by properties: " + chosen);
        }
        System.exit(0);
    }

    private static void send(String topic, String text) throws Exception {
        try (Producer<byte[]> producer = client.newProducer().topic(topic).create()) {
            producer.send(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    private static String receive(Consumer<byte[]> consumer) throws Exception {
        Message<byte[]> message = consumer.receive(60, TimeUnit.SECONDS);
        if (message == null) {
            return "nothing";
        }
        consumer.acknowledge(message);
        return new String(message.getData(), StandardCharsets.UTF_8);
    }
}
