import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/**
 * SERVICE_URL: what the Java client does on a binary port, one line per step, "name: result".
 */
public class BrokerConversation {
    public static class Flight {
        public String carrier;
        public int delay;
    }

    private interface Step {
        Object run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
            say("partitions without creation", () -> client.getPartitionsForTopic("absent", false).get());
            say("partitions with creation", () -> client.getPartitionsForTopic("plain", true).get());
            for (SubscriptionType type : SubscriptionType.values()) {
                say("batched " + type, () -> exchange(client, "b-" + type, type, true));
                say("unbatched " + type, () -> exchange(client, "u-" + type, type, false));
            }
            say("avro", () -> avro(client));
            say("auto consume", () -> autoConsume(client));
            say("type change", () -> client.newProducer(Schema.STRING).topic("avro").create());
            say("reader", () -> reader(client));
            say("seek", () -> seek(client));
            say("pattern", () -> pattern(client));
            say("exclusive", () -> exclusive(client));
            say("acknowledged with receipt", () -> acknowledged(client));
        }
        System.exit(0);
    }

    private static void say(String name, Step step) {
        try {
            System.out.println(name + ": " + step.run());
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            System.out.println(name + ": " + cause.getClass().getSimpleName());
        }
    }

    private static int exchange(PulsarClient client, String topic, SubscriptionType type, boolean batched)
            throws Exception {
        try (Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type)
                        .subscribe();
                Producer<byte[]> producer = producer(client, topic, type, batched)) {
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                sent.add(producer.newMessage().key("k" + i % 7).value(("" + i).getBytes()).sendAsync());
            }
            producer.flush();
            int sum = 0;
            for (int i = 0; i < 500; i++) {
                Message<byte[]> message = consumer.receive(60, TimeUnit.SECONDS);
                sum += Integer.parseInt(new String(message.getData()));
                consumer.acknowledge(message);
            }
            return sum;
        }
    }

    private static Producer<byte[]> producer(PulsarClient client, String topic, SubscriptionType type, boolean batched)
            throws Exception {
        BatcherBuilder batcher = type == SubscriptionType.Key_Shared ? BatcherBuilder.KEY_BASED : BatcherBuilder.DEFAULT;
        return client.newProducer().topic(topic).enableBatching(batched).batcherBuilder(batcher)
                .blockIfQueueFull(true).create();
    }

    private static String avro(PulsarClient client) throws Exception {
        try (Consumer<Flight> consumer = client.newConsumer(Schema.AVRO(Flight.class)).topic("avro")
                        .subscriptionName("s").subscribe();
                Producer<Flight> producer = client.newProducer(Schema.AVRO(Flight.class)).topic("avro").create()) {
            Flight flight = new Flight();
            flight.carrier = "UA";
            flight.delay = -3;
            producer.send(flight);
            Flight received = consumer.receive(60, TimeUnit.SECONDS).getValue();
            return received.carrier + " " + received.delay;
        }
    }

    private static Object autoConsume(PulsarClient client) throws Exception {
        try (Reader<?> reader = client.newReader(Schema.AUTO_CONSUME()).topic("avro")
                .startMessageId(MessageId.earliest).create()) {
            Object value = reader.readNext(60, TimeUnit.SECONDS).getValue();
            return ((org.apache.pulsar.client.api.schema.GenericRecord) value).getField("carrier");
        }
    }

    private static int reader(PulsarClient client) throws Exception {
        int count = 0;
        try (Reader<byte[]> reader = client.newReader().topic("b-Exclusive").startMessageId(MessageId.earliest)
                .create()) {
            while (reader.hasMessageAvailable()) {
                reader.readNext(60, TimeUnit.SECONDS);
                count++;
            }
        }
        return count;
    }

    private static String seek(PulsarClient client) throws Exception {
        try (Consumer<byte[]> consumer = client.newConsumer().topic("b-Exclusive").subscriptionName("seek")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            Message<byte[]> tenth = null;
            for (int i = 0; i < 10; i++) {
                tenth = consumer.receive(60, TimeUnit.SECONDS);
            }
            consumer.seek(tenth.getMessageId());
            String next = new String(consumer.receive(60, TimeUnit.SECONDS).getData());
            consumer.seek(0);
            return next + " " + new String(consumer.receive(60, TimeUnit.SECONDS).getData());
        }
    }

    private static int pattern(PulsarClient client) throws Exception {
        try (Consumer<byte[]> consumer = client.newConsumer().topicsPattern("persistent://public/default/u-.*")
                .subscriptionName("pattern").subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .subscribe()) {
            int count = 0;
            while (consumer.receive(count == 0 ? 10_000 : 500, TimeUnit.MILLISECONDS) != null) {
                count++;
            }
            return count;
        }
    }

    private static Object exclusive(PulsarClient client) throws Exception {
        try (Producer<byte[]> holder = client.newProducer().topic("mine").accessMode(ProducerAccessMode.Exclusive)
                .create()) {
            CompletableFuture<Producer<byte[]>> waiting = client.newProducer().topic("mine")
                    .accessMode(ProducerAccessMode.WaitForExclusive).createAsync();
            Thread.sleep(200);
            boolean early = waiting.isDone();
            holder.close();
            try (Producer<byte[]> next = waiting.get(60, TimeUnit.SECONDS)) {
                next.send(new byte[] {1});
                return early ? "too early" : "in turn";
            }
        }
    }

    private static String acknowledged(PulsarClient client) throws PulsarClientException {
        try (Consumer<byte[]> consumer = client.newConsumer().topic("u-Shared").subscriptionName("receipt")
                .subscriptionType(SubscriptionType.Shared).isAckReceiptEnabled(true)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
            consumer.acknowledge(consumer.receive(60, TimeUnit.SECONDS));
            return "yes";
        }
    }
}
