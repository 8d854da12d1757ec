import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.*;

/**
 * Dead-letter and retry topics of the Java client, for messages without a schema and for texts; one line of outcome
 * each. Arguments: the service URL, the URL of the admin API.
 */
public class DeadLetters {
    static PulsarClient client;
    static PulsarAdmin admin;

    static String topic() {
        return "persistent://public/default/dead-letters-" + System.nanoTime();
    }

    static void say(String name, Object outcome) {
        System.out.println(name + ": " + outcome);
    }

    static DeadLetterPolicy.DeadLetterPolicyBuilder policy() {
        return DeadLetterPolicy.builder().maxRedeliverCount(2);
    }

    static <T> ConsumerBuilder<T> consumer(Schema<T> schema, String topic, DeadLetterPolicy policy) {
        return client.newConsumer(schema).topic(topic).subscriptionName("s").subscriptionType(SubscriptionType.Shared)
                .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).deadLetterPolicy(policy);
    }

    /** Refuses one message until the client gives it up: how often it came, and what its letter says. */
    static <T> String refuse(Schema<T> schema, T value, String topic, DeadLetterPolicy policy) throws Exception {
        String keeper = policy.getInitialSubscriptionName();
        try (Consumer<T> consumer = consumer(schema, topic, policy).subscribe();
                Producer<T> producer = client.newProducer(schema).topic(topic).create()) {
            producer.newMessage().value(value).property("mine", "1").send();
            int came = 0;
            Message<T> again;
            while ((again = consumer.receive(came < 3 ? 60 : 2, TimeUnit.SECONDS)) != null && came < 10) {
                came++;
                consumer.negativeAcknowledge(again);
            }
            String deadLetterTopic = policy.getDeadLetterTopic() == null ? defaultName(topic) : policy.getDeadLetterTopic();
            if (keeper != null) waitFor(() -> admin.topics().getSubscriptions(deadLetterTopic).contains(keeper));
            try (Consumer<T> reader = client.newConsumer(schema).topic(deadLetterTopic)
                    .subscriptionName(keeper == null ? "reader" : keeper)
                    .subscriptionInitialPosition(keeper == null
                            ? SubscriptionInitialPosition.Earliest : SubscriptionInitialPosition.Latest)
                    .subscribe()) {
                Message<T> letter = received(reader);
                boolean kept = "1".equals(letter.getProperty("mine"))
                        && letter.getProperty("REAL_TOPIC").startsWith(topic);
                return text(letter) + " after " + came + (kept ? " kept" : " lost") + " on "
                        + admin.topics().getPartitionedTopicMetadata(deadLetterTopic).partitions;
            }
        }
    }

    /** The topic the client has made for the dead letters of a topic, or of one of its partitions. */
    static String defaultName(String topic) throws Exception {
        List<String> found = new ArrayList<>();
        waitFor(() -> {
            for (String each : admin.topics().getList("public/default")) {
                if (each.matches(topic + "(-partition-[01])?-s-DLQ")) found.add(each);
            }
            return !found.isEmpty();
        });
        return found.get(0);
    }

    static <T> Message<T> received(Consumer<T> consumer) throws PulsarClientException {
        Message<T> message = consumer.receive(60, TimeUnit.SECONDS);
        if (message == null) throw new AssertionError("nothing came from " + consumer.getTopic());
        return message;
    }

    static String text(Message<?> message) {
        return new String(message.getData(), StandardCharsets.UTF_8);
    }

    interface Condition { boolean holds() throws Exception; }

    static void waitFor(Condition condition) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!condition.holds()) {
            if (System.nanoTime() > end) throw new AssertionError("it did not come to be");
            Thread.sleep(50);
        }
    }

    static void deadLetters() throws Exception {
        byte[] bad = "bad".getBytes();
        String topic = topic();
        say("default name", refuse(Schema.BYTES, bad, topic, policy().build()));
        String own = topic();
        DeadLetterPolicy named = policy().deadLetterTopic(own).initialSubscriptionName("keeper").build();
        say("own name", refuse(Schema.BYTES, bad, topic(), named));
        String partitioned = topic();
        admin.topics().createPartitionedTopic(partitioned, 2);
        say("partitioned", refuse(Schema.BYTES, bad, partitioned, policy().build()));
        String texts = topic();
        say("text", refuse(Schema.STRING, "bad", texts, policy().build()));
    }

    static void retryLetters() throws Exception {
        String topic = topic();
        List<String> came = new ArrayList<>();
        try (Consumer<byte[]> consumer = consumer(Schema.BYTES, topic, policy().build()).enableRetry(true).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic).create()) {
            producer.send("again".getBytes());
            for (int time = 0; time < 3; time++) {
                Message<byte[]> message = received(consumer);
                came.add(text(message) + "x" + message.getProperties().getOrDefault("RECONSUMETIMES", "0"));
                consumer.reconsumeLater(message, 100, TimeUnit.MILLISECONDS);
            }
            try (Consumer<byte[]> reader = client.newConsumer().topic(topic + "-s-DLQ").subscriptionName("u")
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
                say("retry", came + " then " + text(received(reader)));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (PulsarClient theClient = PulsarClient.builder().serviceUrl(arguments[0]).build();
                PulsarAdmin theAdmin = PulsarAdmin.builder().serviceHttpUrl(arguments[1]).build()) {
            client = theClient;
            admin = theAdmin;
            deadLetters();
            retryLetters();
        }
    }
}
