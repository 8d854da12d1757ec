import com.google.protobuf.Duration;
import com.google.protobuf.StringValue;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.Date;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.schema.GenericObject;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/**
 * SERVICE_URL WEB_URL NAMESPACE: schemas as Java applications use them, one line per step, "name: result".
 */
public class Schemas {
    public static class Flight {
        public String carrier;
        public int delay;
    }

    /** What a Flight may become. */
    public static class Grown {
        public String carrier;
        public int delay;
        public String gate;
    }

    /** What it may not: the field is of another type. */
    public static class Broken {
        public String carrier;
        public String delay;
    }

    private interface Step {
        Object run() throws Exception;
    }

    private static PulsarClient client;
    private static PulsarAdmin admin;
    private static String namespace;

    private static final Schema<Flight> FLIGHT = avro(Flight.class);
    private static final Schema<Grown> GROWN = avro(Grown.class);
    private static final Schema<Broken> BROKEN = avro(Broken.class);

    public static void main(String[] args) throws Exception {
        client = PulsarClient.builder().serviceUrl(args[0]).build();
        admin = PulsarAdmin.builder().serviceHttpUrl(args[1]).build();
        namespace = args[2];
        for (KeyValueEncodingType encoding : KeyValueEncodingType.values()) {
            say("pair " + encoding, () -> pair(encoding));
            say("pair grown " + encoding, () -> produce("pair-" + encoding, Schema.KeyValue(Schema.STRING, GROWN, encoding)));
            say("pair broken " + encoding, () -> produce("pair-" + encoding, Schema.KeyValue(Schema.STRING, BROKEN, encoding)));
            say("pair other key " + encoding, () -> produce("pair-" + encoding, Schema.KeyValue(FLIGHT, FLIGHT, encoding)));
            say("pair of any " + encoding, () -> pairOfAny(encoding));
        }
        say("first", () -> produce("avro", FLIGHT));
        say("grown", () -> produce("avro", GROWN));
        say("broken", () -> produce("avro", BROKEN));
        say("versions", () -> admin.schemas().getAllSchemas(topic("avro")).size());
        say("json", () -> produce("avro", Schema.JSON(Flight.class)));
        say("consumer of the first", () -> consume("avro", FLIGHT));
        say("consumer broken", () -> consume("avro", BROKEN));
        say("consumer of bytes", () -> consume("avro", Schema.BYTES));
        say("one message of another", () -> perMessage(GROWN));
        say("one message broken", () -> perMessage(BROKEN));
        say("any bytes that fit", () -> anyBytes(FLIGHT.encode(flight())));
        say("any bytes that do not", () -> anyBytes(new byte[] {1}));
        say("any record", () -> anyRecord());
        say("compatible", () -> admin.schemas().testCompatibility(topic("avro"), GROWN.getSchemaInfo()));
        say("uploaded broken", () -> upload(BROKEN));
        say("uploaded again", () -> upload(FLIGHT));
        say("version", () -> admin.schemas().getVersionBySchema(topic("avro"), GROWN.getSchemaInfo()));
        say("pair over rest", () -> admin.schemas().getSchemaInfo(topic("pair-INLINE")).getType());
        say("versions read", () -> versions());
        say("native", () -> protobuf("native", Schema.PROTOBUF_NATIVE(Duration.class)));
        say("native of any", () -> nativeOfAny());
        say("native of another", () -> produce("native", Schema.PROTOBUF_NATIVE(StringValue.class)));
        say("native over rest", () -> admin.schemas().getSchemaInfo(topic("native")).getType());
        say("protobuf", () -> protobuf("protobuf", Schema.PROTOBUF(Duration.class)));
        say("protobuf of another", () -> produce("protobuf", Schema.PROTOBUF(StringValue.class)));
        say("json record", () -> json());
        say("numbers", () -> List.of(primitive(Schema.INT8, (byte) -1), primitive(Schema.INT16, (short) 2),
                primitive(Schema.INT32, 3), primitive(Schema.INT64, 4L), primitive(Schema.FLOAT, 0.5f),
                primitive(Schema.DOUBLE, 0.25), primitive(Schema.BOOL, true)));
        say("times", () -> List.of(primitive(Schema.LOCAL_DATE, LocalDate.EPOCH), primitive(Schema.INSTANT, Instant.EPOCH),
                primitive(Schema.LOCAL_TIME, LocalTime.NOON), primitive(Schema.DATE, new Date(5)).getTime(),
                primitive(Schema.TIMESTAMP, new Timestamp(6)).getTime(), primitive(Schema.TIME, new Time(7)).getTime(),
                primitive(Schema.LOCAL_DATE_TIME, LocalDate.EPOCH.atStartOfDay())));
        say("number for text", () -> produce("INT32", Schema.STRING));
        System.exit(0);
    }

    private static <T> Schema<T> avro(Class<T> of) {
        return Schema.AVRO(SchemaDefinition.<T>builder().withPojo(of).build());
    }

    private static String topic(String name) {
        return "persistent://" + namespace + "/" + name;
    }

    private static Flight flight() {
        Flight flight = new Flight();
        flight.carrier = "UA";
        flight.delay = -3;
        return flight;
    }

    private static void say(String name, Step step) {
        try {
            System.out.println(name + ": " + step.run());
        } catch (Exception error) {
            System.out.println(name + ": " + error.getClass().getSimpleName());
        }
    }

    private static <T> Consumer<T> subscribe(String name, Schema<T> schema) throws Exception {
        return client.newConsumer(schema).topic(topic(name)).subscriptionName(UUID.randomUUID().toString())
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
    }

    private static <T> Message<T> receive(Consumer<T> consumer) throws Exception {
        Message<T> message = consumer.receive(60, TimeUnit.SECONDS);
        if (message == null) {
            throw new IllegalStateException("nothing came");
        }
        return message;
    }

    private static Object pair(KeyValueEncodingType encoding) throws Exception {
        Schema<KeyValue<String, Flight>> schema = Schema.KeyValue(Schema.STRING, FLIGHT, encoding);
        String name = "pair-" + encoding;
        try (Producer<KeyValue<String, Flight>> producer = client.newProducer(schema).topic(topic(name)).create();
                Consumer<KeyValue<String, Flight>> consumer = subscribe(name, schema)) {
            producer.send(new KeyValue<>("k", flight()));
            Message<KeyValue<String, Flight>> message = receive(consumer);
            KeyValue<String, Flight> value = message.getValue();
            return value.getKey() + " " + value.getValue().carrier + " " + value.getValue().delay + " " + message.hasKey();
        }
    }

    private static Object pairOfAny(KeyValueEncodingType encoding) throws Exception {
        try (Consumer<GenericRecord> consumer = subscribe("pair-" + encoding, Schema.AUTO_CONSUME())) {
            GenericObject object = receive(consumer).getValue();
            KeyValue<?, ?> value = (KeyValue<?, ?>) object.getNativeObject();
            return value.getKey() + " " + ((GenericRecord) value.getValue()).getField("carrier");
        }
    }

    private static Object produce(String name, Schema<?> schema) throws Exception {
        client.newProducer(schema).topic(topic(name)).create().close();
        return "taken";
    }

    private static Object consume(String name, Schema<?> schema) throws Exception {
        subscribe(name, schema).close();
        return "taken";
    }

    private static <T> Object perMessage(Schema<T> schema) throws Exception {
        try (Producer<Flight> producer = client.newProducer(FLIGHT).topic(topic("avro")).create()) {
            T value = schema == (Object) GROWN ? cast(new Grown()) : cast(new Broken());
            producer.newMessage(schema).value(value).send();
            return "sent";
        }
    }

    @SuppressWarnings("unchecked")
    private static <T> T cast(Object value) {
        return (T) value;
    }

    private static Object anyBytes(byte[] bytes) throws Exception {
        produce("any", FLIGHT);
        try (Producer<byte[]> producer = client.newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(topic("any")).create()) {
            producer.send(bytes);
            return "sent";
        }
    }

    private static Object anyRecord() throws Exception {
        try (Consumer<GenericRecord> consumer = subscribe("any", Schema.AUTO_CONSUME())) {
            GenericRecord value = receive(consumer).getValue();
            return List.of(value.getField("carrier"), value.getField("delay"));
        }
    }

    /** A record of each version, read with the first definition; then in the definition it was written with. */
    private static Object versions() throws Exception {
        String name = "versions";
        produce(name, FLIGHT);
        try (Producer<Flight> old = client.newProducer(FLIGHT).topic(topic(name)).create();
                Producer<Grown> grown = client.newProducer(GROWN).topic(topic(name)).create();
                Consumer<Flight> typed = subscribe(name, FLIGHT);
                Consumer<GenericRecord> any = subscribe(name, Schema.AUTO_CONSUME())) {
            Grown flight = new Grown();
            flight.carrier = "DL";
            flight.gate = "A1";
            old.send(flight());
            grown.send(flight);
            return List.of(receive(typed).getValue().carrier, receive(typed).getValue().carrier,
                    receive(any).getValue().getFields().size(), receive(any).getValue().getFields().size());
        }
    }

    private static Object protobuf(String name, Schema<Duration> schema) throws Exception {
        try (Producer<Duration> producer = client.newProducer(schema).topic(topic(name)).create();
                Consumer<Duration> consumer = subscribe(name, schema)) {
            producer.send(Duration.newBuilder().setSeconds(7).build());
            return receive(consumer).getValue().getSeconds();
        }
    }

    private static Object nativeOfAny() throws Exception {
        try (Consumer<GenericRecord> consumer = subscribe("native", Schema.AUTO_CONSUME())) {
            return receive(consumer).getValue().getField("seconds");
        }
    }

    private static Object json() throws Exception {
        Schema<Flight> schema = Schema.JSON(Flight.class);
        try (Producer<Flight> producer = client.newProducer(schema).topic(topic("json")).create();
                Consumer<Flight> consumer = subscribe("json", schema);
                Consumer<GenericRecord> any = subscribe("json", Schema.AUTO_CONSUME())) {
            producer.send(flight());
            return List.of(receive(consumer).getValue().delay, receive(any).getValue().getField("carrier"));
        }
    }

    private static <T> T primitive(Schema<T> schema, T value) throws Exception {
        String name = schema.getSchemaInfo().getType().name();
        try (Producer<T> producer = client.newProducer(schema).topic(topic(name)).create();
                Consumer<T> consumer = subscribe(name, schema)) {
            producer.send(value);
            return receive(consumer).getValue();
        }
    }

    private static Object upload(Schema<?> schema) throws Exception {
        admin.schemas().createSchema(topic("avro"), schema.getSchemaInfo());
        return "taken";
    }
}
