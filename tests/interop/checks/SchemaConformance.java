import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericEnumSymbol;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.util.Utf8;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.SchemaInfoProvider;
import org.apache.pulsar.client.impl.schema.AvroBaseStructSchema;
import org.apache.pulsar.client.impl.schema.KeyValueSchemaImpl;
import org.apache.pulsar.client.impl.schema.generic.GenericAvroRecord;
import org.apache.pulsar.client.impl.schema.generic.GenericSchemaImpl;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;
import org.apache.pulsar.common.schema.SchemaInfo;
import org.apache.pulsar.common.schema.SchemaType;

/**
 * Cases on standard input, one JSON object a line; answers on standard output, in the same order.
 *
 * <p>A case has {@code written}, the schema of the payloads, {@code wanted}, the schema that they are read as, a
 * {@code value}, and {@code payloads} in base64. A payload is {@code [value]} or, of a SEPARATED pair,
 * {@code [value, key]}. The answer has {@code payload}, what the client makes of the value, and {@code read}: the
 * values that it reads from its own payload and from each given one, or {@code {"error": ".."}}.
 *
 * <p>A schema is {@code {"type": "AVRO", "definition": ".."}}, {@code {"type": "INT64"}}, or
 * {@code {"type": "KEY_VALUE", "key": .., "value": .., "encoding": "INLINE"}}.
 *
 * <p>Values are JSON: a union is null or {@code {"<index of its branch>": value}}, a map {@code [[key, value]..]}, bytes
 * are text of ISO-8859-1, float and double the bits as a number.
 */
public class SchemaConformance {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final byte[] VERSION = ByteBuffer.allocate(8).putLong(0).array();

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(mapper.writeValueAsString(answer(mapper.readTree(line))));
        }
        out.flush();
        System.exit(0);
    }

    private static ObjectNode answer(JsonNode asked) {
        ObjectNode answer = NODES.objectNode();
        ArrayNode read = answer.putArray("read");
        List<byte[][]> payloads = new ArrayList<>();
        Codec written = codec(asked.get("written"), asked.get("written"));
        Codec wanted = codec(asked.get("written"), asked.get("wanted"));
        try {
            byte[][] own = written.write(asked.get("value"));
            answer.set("payload", encoded(own));
            payloads.add(own);
        } catch (Exception | StackOverflowError error) {
            answer.putObject("payload").put("error", error.toString());
            payloads.add(null);
        }
        asked.get("payloads").forEach(given -> payloads.add(decoded(given)));
        for (byte[][] payload : payloads) {
            try {
                read.add(payload == null ? NODES.objectNode().put("error", "not written") : wanted.read(payload));
            } catch (Exception | StackOverflowError error) {
                read.addObject().put("error", error.toString());
            }
        }
        return answer;
    }

    private static JsonNode encoded(byte[][] payload) {
        ArrayNode parts = NODES.arrayNode();
        for (byte[] part : payload) {
            parts.add(part == null ? null : Base64.getEncoder().encodeToString(part));
        }
        return parts;
    }

    private static byte[][] decoded(JsonNode payload) {
        byte[][] parts = new byte[payload.size()][];
        for (int index = 0; index < parts.length; index++) {
            JsonNode part = payload.get(index);
            parts[index] = part.isNull() ? null : Base64.getDecoder().decode(part.asText());
        }
        return parts;
    }

    /** Values of one schema, between their JSON, the objects of the client, and payloads. */
    private interface Codec {
        Schema<Object> schema();

        Object object(JsonNode value);

        JsonNode value(Object object);

        default byte[][] write(JsonNode value) {
            return new byte[][] {schema().encode(object(value))};
        }

        default JsonNode read(byte[][] payload) {
            return value(schema().decode(payload[0], VERSION));
        }
    }

    private static Codec codec(JsonNode written, JsonNode wanted) {
        return switch (wanted.get("type").asText()) {
            case "AVRO" -> new AvroCodec(written, wanted);
            case "KEY_VALUE" -> new PairCodec(written, wanted);
            default -> new PrimitiveCodec(SchemaType.valueOf(wanted.get("type").asText()));
        };
    }

    private static SchemaInfo info(JsonNode schema) {
        return SchemaInfo.builder().name("s").type(SchemaType.valueOf(schema.get("type").asText()))
                .schema(schema.get("definition").asText().getBytes(StandardCharsets.UTF_8)).properties(Map.of()).build();
    }

    /** Knows one schema, as that of every version. */
    private record OneVersion(SchemaInfo info) implements SchemaInfoProvider {
        @Override
        public CompletableFuture<SchemaInfo> getSchemaByVersion(byte[] version) {
            return CompletableFuture.completedFuture(info);
        }

        @Override
        public CompletableFuture<SchemaInfo> getLatestSchema() {
            return CompletableFuture.completedFuture(info);
        }

        @Override
        public String getTopicName() {
            return "persistent://public/default/t";
        }
    }

    @SuppressWarnings("unchecked")
    private static Schema<Object> untyped(Schema<?> schema) {
        return (Schema<Object>) schema;
    }

    private record PrimitiveCodec(SchemaType type) implements Codec {
        @Override
        public Schema<Object> schema() {
            return untyped(switch (type) {
                case BYTES -> Schema.BYTES;
                case STRING -> Schema.STRING;
                case BOOLEAN -> Schema.BOOL;
                case INT8 -> Schema.INT8;
                case INT16 -> Schema.INT16;
                case INT32 -> Schema.INT32;
                case INT64 -> Schema.INT64;
                case FLOAT -> Schema.FLOAT;
                case DOUBLE -> Schema.DOUBLE;
                default -> throw new IllegalArgumentException("no case has " + type);
            });
        }

        @Override
        public Object object(JsonNode value) {
            return switch (type) {
                case BYTES -> latin(value);
                case STRING -> value.asText();
                case BOOLEAN -> value.asBoolean();
                case INT8 -> (byte) value.asInt();
                case INT16 -> (short) value.asInt();
                case INT32 -> value.asInt();
                case INT64 -> value.asLong();
                case FLOAT -> Float.intBitsToFloat(value.asInt());
                default -> Double.longBitsToDouble(value.asLong());
            };
        }

        @Override
        public JsonNode value(Object object) {
            return plain(object);
        }
    }

    private static final class AvroCodec implements Codec {
        private final GenericSchemaImpl schema;

        AvroCodec(JsonNode written, JsonNode wanted) {
            schema = GenericSchemaImpl.of(info(wanted), true);
            schema.setSchemaInfoProvider(new OneVersion(info(written)));
        }

        @Override
        public Schema<Object> schema() {
            return untyped(schema);
        }

        @Override
        public Object object(JsonNode value) {
            org.apache.avro.Schema avro = ((AvroBaseStructSchema<?>) schema).getAvroSchema();
            return new GenericAvroRecord(null, avro, schema.getFields(), (GenericData.Record) avroObject(avro, value));
        }

        @Override
        public JsonNode value(Object object) {
            GenericAvroRecord record = (GenericAvroRecord) object;
            return avroValue(((AvroBaseStructSchema<?>) schema).getAvroSchema(), record.getAvroRecord());
        }
    }

    private static final class PairCodec implements Codec {
        private final Codec key;
        private final Codec value;
        private final KeyValueSchemaImpl<Object, Object> schema;

        PairCodec(JsonNode written, JsonNode wanted) {
            key = codec(written.get("key"), wanted.get("key"));
            value = codec(written.get("value"), wanted.get("value"));
            KeyValueEncodingType encoding = KeyValueEncodingType.valueOf(wanted.get("encoding").asText());
            schema = pair(key, value, encoding);
            Codec writtenKey = codec(written.get("key"), written.get("key"));
            Codec writtenValue = codec(written.get("value"), written.get("value"));
            schema.setSchemaInfoProvider(new OneVersion(pair(writtenKey, writtenValue, encoding).getSchemaInfo()));
        }

        private static KeyValueSchemaImpl<Object, Object> pair(Codec key, Codec value, KeyValueEncodingType encoding) {
            return (KeyValueSchemaImpl<Object, Object>) KeyValueSchemaImpl.of(key.schema(), value.schema(), encoding);
        }

        @Override
        public Schema<Object> schema() {
            return untyped(schema);
        }

        @Override
        public Object object(JsonNode given) {
            return new KeyValue<>(of(key, given.get("key")), of(value, given.get("value")));
        }

        private static Object of(Codec part, JsonNode given) {
            return given.isNull() ? null : part.object(given);
        }

        @Override
        public JsonNode value(Object object) {
            KeyValue<?, ?> pair = (KeyValue<?, ?>) object;
            ObjectNode found = NODES.objectNode();
            found.set("key", pair.getKey() == null ? NODES.nullNode() : key.value(pair.getKey()));
            found.set("value", pair.getValue() == null ? NODES.nullNode() : value.value(pair.getValue()));
            return found;
        }

        private boolean isSeparated() {
            return schema.getKeyValueEncodingType() == KeyValueEncodingType.SEPARATED;
        }

        @Override
        public byte[][] write(JsonNode given) {
            KeyValue<?, ?> pair = (KeyValue<?, ?>) object(given);
            if (!isSeparated()) {
                return new byte[][] {schema().encode(pair)};
            }
            return new byte[][] {encoded(value, pair.getValue()), encoded(key, pair.getKey())};
        }

        /** As the client's message builder: a null value is none of the payload. */
        private static byte[] encoded(Codec part, Object object) {
            return object == null ? null : part.schema().encode(object);
        }

        @Override
        public JsonNode read(byte[][] payload) {
            return value(isSeparated() ? schema.decode(payload[1], payload[0], VERSION)
                    : schema.decode(payload[0], VERSION));
        }
    }

    private static byte[] latin(JsonNode text) {
        return text.asText().getBytes(StandardCharsets.ISO_8859_1);
    }

    private static JsonNode plain(Object object) {
        if (object instanceof byte[] raw) {
            return NODES.textNode(new String(raw, StandardCharsets.ISO_8859_1));
        }
        if (object instanceof Float number) {
            return NODES.numberNode(Float.floatToIntBits(number));
        }
        if (object instanceof Double number) {
            return NODES.numberNode(Double.doubleToLongBits(number));
        }
        if (object instanceof Boolean flag) {
            return NODES.booleanNode(flag);
        }
        return object instanceof Number number ? NODES.numberNode(number.longValue()) : NODES.textNode(object.toString());
    }

    private static Object avroObject(org.apache.avro.Schema schema, JsonNode value) {
        switch (schema.getType()) {
            case NULL:
                return null;
            case BOOLEAN:
                return value.asBoolean();
            case INT:
                return value.asInt();
            case LONG:
                return value.asLong();
            case FLOAT:
                return Float.intBitsToFloat(value.asInt());
            case DOUBLE:
                return Double.longBitsToDouble(value.asLong());
            case STRING:
                return new Utf8(value.asText());
            case BYTES:
                return ByteBuffer.wrap(latin(value));
            case FIXED:
                return new GenericData.Fixed(schema, latin(value));
            case ENUM:
                return new GenericData.EnumSymbol(schema, value.asText());
            case ARRAY: {
                List<Object> items = new ArrayList<>();
                value.forEach(item -> items.add(avroObject(schema.getElementType(), item)));
                return items;
            }
            case MAP: {
                Map<Object, Object> entries = new LinkedHashMap<>();
                value.forEach(entry -> entries.put(new Utf8(entry.get(0).asText()),
                        avroObject(schema.getValueType(), entry.get(1))));
                return entries;
            }
            case UNION: {
                if (value.isNull()) {
                    return null;
                }
                String branch = value.fieldNames().next();
                return avroObject(schema.getTypes().get(Integer.parseInt(branch)), value.get(branch));
            }
            default: {
                GenericData.Record record = new GenericData.Record(schema);
                schema.getFields().forEach(
                        field -> record.put(field.pos(), avroObject(field.schema(), value.get(field.name()))));
                return record;
            }
        }
    }

    private static JsonNode avroValue(org.apache.avro.Schema schema, Object object) {
        switch (schema.getType()) {
            case NULL:
                return NODES.nullNode();
            case BYTES: {
                byte[] raw = new byte[((ByteBuffer) object).remaining()];
                ((ByteBuffer) object).duplicate().get(raw);
                return plain(raw);
            }
            case FIXED:
                return plain(((GenericFixed) object).bytes());
            case ENUM:
                return NODES.textNode(((GenericEnumSymbol<?>) object).toString());
            case ARRAY: {
                ArrayNode items = NODES.arrayNode();
                ((Iterable<?>) object).forEach(item -> items.add(avroValue(schema.getElementType(), item)));
                return items;
            }
            case MAP: {
                ArrayNode entries = NODES.arrayNode();
                ((Map<?, ?>) object).forEach((key, value) -> entries.add(NODES.arrayNode().add(key.toString())
                        .add(avroValue(schema.getValueType(), value))));
                return entries;
            }
            case UNION: {
                if (object == null) {
                    return NODES.nullNode();
                }
                int branch = GenericData.get().resolveUnion(schema, object);
                ObjectNode chosen = NODES.objectNode();
                chosen.set(String.valueOf(branch), avroValue(schema.getTypes().get(branch), object));
                return chosen;
            }
            case RECORD: {
                GenericData.Record record = (GenericData.Record) object;
                ObjectNode fields = NODES.objectNode();
                schema.getFields().forEach(
                        field -> fields.set(field.name(), avroValue(field.schema(), record.get(field.pos()))));
                return fields;
            }
            default:
                return plain(object);
        }
    }
}
