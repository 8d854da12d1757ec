import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.*;

/** What subscriptions do, with the Java client; one line of outcome each. Argument: the service URL. */
public class Consuming {
    static PulsarClient client;

    static String topic() {
        return "persistent://public/default/consuming-" + System.nanoTime();
    }

    static ConsumerBuilder<byte[]> consumer(String topic, SubscriptionType type) {
        return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type);
    }

    static void say(String name, Object outcome) {
        System.out.println(name + ": " + outcome);
    }

    static String text(Message<byte[]> message) {
        return message == null ? "nothing" : new String(message.getData());
    }

    static void delays() throws Exception {
        for (SubscriptionType type : new SubscriptionType[] {SubscriptionType.Shared, SubscriptionType.Exclusive}) {
            String topic = topic();
            try (Consumer<byte[]> consumer = consumer(topic, type).subscribe();
                    Producer<byte[]> producer = client.newProducer().topic(topic).create()) {
                long begin = System.currentTimeMillis();
                producer.newMessage().value("late".getBytes()).deliverAfter(6000, TimeUnit.MILLISECONDS).send();
                producer.newMessage().value("prompt".getBytes()).send();
                List<String> got = new ArrayList<>();
                for (int number = 0; number < 2; number++) got.add(text(consumer.receive(60, TimeUnit.SECONDS)));
                boolean waited = System.currentTimeMillis() - begin >= 5000;
                say("delay " + type, got + " " + (waited ? "waited" : "at once"));
            }
        }
    }

    static void keys() throws Exception {
        String topic = topic();
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            consumers.add(consumer(topic, SubscriptionType.Key_Shared).receiverQueueSize(50).subscribe());
        }
        Map<String, List<Integer>> got = new TreeMap<>();
        try (Producer<byte[]> producer = client.newProducer().topic(topic)
                .batcherBuilder(BatcherBuilder.KEY_BASED).create()) {
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            for (int number = 0; number < 400; number++) {
                sent.add(producer.newMessage().key("partition").orderingKey(("k" + number % 10).getBytes())
                        .value(("" + number).getBytes()).sendAsync());
            }
            for (CompletableFuture<MessageId> each : sent) each.get();
        }
        int received = 0;
        while (received < 400) {
            for (Consumer<byte[]> consumer : new ArrayList<>(consumers)) {
                Message<byte[]> message = consumer.receive(20, TimeUnit.MILLISECONDS);
                if (message == null) continue;
                int number = Integer.parseInt(text(message));
                List<Integer> ofKey = got.computeIfAbsent("k" + number % 10, key -> new ArrayList<>());
                if (!ofKey.contains(number)) { ofKey.add(number); received++; }
                consumer.acknowledge(message);
                if (received == 100 || received == 200) {
                    consumers.add(consumer(topic, SubscriptionType.Key_Shared).receiverQueueSize(50).subscribe());
                    consumers.remove(0).close();
                    break;
                }
            }
        }
        boolean ordered = got.values().stream().allMatch(each -> each.stream().sorted().toList().equals(each));
        say("keys", got.size() + " keys, " + (ordered ? "in order" : "out of order"));
        for (Consumer<byte[]> each : consumers) each.close();
    }

    static void sticky() throws Exception {
        String topic = topic();
        KeySharedPolicy low = KeySharedPolicy.stickyHashRange().ranges(Range.of(0, 299));
        try (Consumer<byte[]> first = consumer(topic, SubscriptionType.Key_Shared).keySharedPolicy(low).subscribe()) {
            for (KeySharedPolicy other : new KeySharedPolicy[] {low, KeySharedPolicy.autoSplitHashRange()}) {
                try {
                    consumer(topic, SubscriptionType.Key_Shared).keySharedPolicy(other).subscribe().close();
                    say("sticky beside " + other.getClass().getSimpleName(), "accepted");
                } catch (PulsarClientException refused) {
                    say("sticky beside " + other.getClass().getSimpleName(), refused.getClass().getSimpleName());
                }
            }
        }
    }

    static void failover() throws Exception {
        String topic = topic();
        CountDownLatch taken = new CountDownLatch(1), lost = new CountDownLatch(1);
        ConsumerEventListener listener = new ConsumerEventListener() {
            public void becameActive(Consumer<?> consumer, int partition) { taken.countDown(); }
            public void becameInactive(Consumer<?> consumer, int partition) { lost.countDown(); }
        };
        try (Consumer<byte[]> first = consumer(topic, SubscriptionType.Failover).consumerName("a").priorityLevel(2)
                .consumerEventListener(listener).subscribe()) {
            boolean active = taken.await(60, TimeUnit.SECONDS);
            try (Consumer<byte[]> second = consumer(topic, SubscriptionType.Failover).consumerName("b").priorityLevel(1)
                    .subscribe()) {
                say("failover", active + " " + lost.await(60, TimeUnit.SECONDS));
            }
        }
    }

    static void acknowledging() throws Exception {
        String topic = topic();
        try (Consumer<byte[]> consumer = consumer(topic, SubscriptionType.Shared).enableBatchIndexAcknowledgment(true)
                        .isAckReceiptEnabled(true).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe();
                Producer<byte[]> producer = client.newProducer().topic(topic)
                        .batchingMaxPublishDelay(200, TimeUnit.MILLISECONDS).create()) {
            CompletableFuture<MessageId> last = null;
            for (int number = 0; number < 4; number++) last = producer.sendAsync(("" + number).getBytes());
            producer.flush();
            last.get();
            Map<String, Message<byte[]>> got = new LinkedHashMap<>();
            for (int number = 0; number < 4; number++) {
                Message<byte[]> message = consumer.receive(60, TimeUnit.SECONDS);
                got.put(text(message), message);
            }
            consumer.acknowledge(got.get("1"));
            consumer.acknowledge(got.get("3"));
            consumer.negativeAcknowledge(got.get("0"));
            List<String> again = new ArrayList<>();
            Message<byte[]> message;
            while ((message = consumer.receive(again.isEmpty() ? 10_000 : 500, TimeUnit.MILLISECONDS)) != null) {
                again.add(text(message) + "x" + message.getRedeliveryCount());
            }
            say("batch index", again);
        }
    }

    static void transactions(String serviceUrl) {
        long begin = System.currentTimeMillis();
        try (PulsarClient transactional = PulsarClient.builder().serviceUrl(serviceUrl).enableTransaction(true).build()) {
            say("transactions", "offered");
        } catch (PulsarClientException error) {
            boolean soon = System.currentTimeMillis() - begin < 15_000;
            say("transactions", (soon ? "refused at once: " : "refused late: ") + error.getMessage());
        }
    }

    public static void main(String[] arguments) throws Exception {
        client = PulsarClient.builder().serviceUrl(arguments[0]).build();
        delays();
        keys();
        sticky();
        failover();
        acknowledging();
        transactions(arguments[0]);
        client.close();
    }
}
