import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import javax.tools.ToolProvider;
import org.apache.pulsar.client.api.Schema;

/**
 * JSON schemas of classes. The first line of standard input is an object of Java sources by their class names, which are
 * compiled; each further line is a case, answered by a line on standard output.
 *
 * <p>A case has {@code class}, a {@code value} or null for none, and {@code payloads}, text. The answer has
 * {@code definition} and {@code properties}, the schema that the client makes of the class, {@code payload}, the text that
 * it makes of the value, and {@code read}: what it reads from each of the payloads, or {@code {"error": ".."}}.
 *
 * <p>Values are JSON: an object by its fields, a map {@code [[key, value]..]}, bytes text of ISO-8859-1, float and double
 * their bits, moments and local times microseconds, dates days, times of day milliseconds, other numbers text.
 */
public class JsonConformance {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final Instant EPOCH = Instant.EPOCH;

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        ClassLoader classes = compiled(mapper.readTree(in.readLine()));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(mapper.writeValueAsString(answer(classes, mapper.readTree(line))));
        }
        out.flush();
        System.exit(0);
    }

    private static ClassLoader compiled(JsonNode sources) throws Exception {
        Path folder = Files.createTempDirectory("json-conformance");
        List<String> arguments = new ArrayList<>(List.of("-nowarn", "-d", folder.toString(), "-cp",
                System.getProperty("java.class.path")));
        for (Map.Entry<String, JsonNode> source : sources.properties()) {
            Path file = folder.resolve(source.getKey() + ".java");
            Files.writeString(file, source.getValue().asText());
            arguments.add(file.toString());
        }
        int code = ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(new String[0]));
        if (code != 0) {
            throw new IllegalArgumentException("the sources do not compile");
        }
        return new URLClassLoader(new URL[] {folder.toUri().toURL()}, JsonConformance.class.getClassLoader());
    }

    @SuppressWarnings("unchecked")
    private static ObjectNode answer(ClassLoader classes, JsonNode asked) throws Exception {
        Class<Object> type = (Class<Object>) classes.loadClass(asked.get("class").asText());
        Schema<Object> schema = Schema.JSON(type);
        ObjectNode answer = NODES.objectNode();
        answer.put("definition", schema.getSchemaInfo().getSchemaDefinition());
        schema.getSchemaInfo().getProperties().forEach(answer.putObject("properties")::put);
        if (!asked.get("value").isNull()) {
            answer.put("payload", text(schema.encode(object(type, asked.get("value")))));
        }
        ArrayNode read = answer.putArray("read");
        for (JsonNode payload : asked.get("payloads")) {
            try {
                read.add(node(type, schema.decode(payload.asText().getBytes(StandardCharsets.UTF_8))));
            } catch (Exception error) {
                read.addObject().put("error", String.valueOf(error));
            }
        }
        return answer;
    }

    private static String text(byte[] raw) {
        return new String(raw, StandardCharsets.UTF_8);
    }

    private static Instant instant(JsonNode micros) {
        return EPOCH.plus(micros.asLong(), ChronoUnit.MICROS);
    }

    private static long micros(Instant instant) {
        return Math.addExact(Math.multiplyExact(instant.getEpochSecond(), 1_000_000L), instant.getNano() / 1000);
    }

    /** The object of a value. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object object(Type type, JsonNode value) throws Exception {
        if (value.isNull()) {
            return null;
        }
        if (type instanceof ParameterizedType generic) {
            Type[] parts = generic.getActualTypeArguments();
            if (parts.length == 1) {
                List<Object> items = new ArrayList<>();
                for (JsonNode item : value) {
                    items.add(object(parts[0], item));
                }
                return items;
            }
            Map<Object, Object> entries = new LinkedHashMap<>();
            for (JsonNode entry : value) {
                entries.put(object(parts[0], entry.get(0)), object(parts[1], entry.get(1)));
            }
            return entries;
        }
        Class<?> kind = (Class<?>) type;
        if (kind.isEnum()) {
            return Enum.valueOf((Class) kind, value.asText());
        }
        return switch (kind.getName()) {
            case "boolean", "java.lang.Boolean" -> value.asBoolean();
            case "byte", "java.lang.Byte" -> (byte) value.asInt();
            case "short", "java.lang.Short" -> (short) value.asInt();
            case "char", "java.lang.Character" -> (char) value.asInt();
            case "int", "java.lang.Integer" -> value.asInt();
            case "long", "java.lang.Long" -> value.asLong();
            case "float", "java.lang.Float" -> Float.intBitsToFloat(value.asInt());
            case "double", "java.lang.Double" -> Double.longBitsToDouble(value.asLong());
            case "java.lang.String" -> value.asText();
            case "[B" -> value.asText().getBytes(StandardCharsets.ISO_8859_1);
            case "java.math.BigDecimal" -> new BigDecimal(value.asText());
            case "java.math.BigInteger" -> new BigInteger(value.asText());
            case "java.util.UUID" -> UUID.fromString(value.asText());
            case "java.time.Instant" -> instant(value);
            case "java.time.ZonedDateTime" -> instant(value).atZone(ZoneOffset.UTC);
            case "java.time.OffsetDateTime" -> instant(value).atOffset(ZoneOffset.UTC);
            case "java.time.LocalDateTime" -> LocalDateTime.ofInstant(instant(value), ZoneOffset.UTC);
            case "java.time.LocalDate" -> LocalDate.ofEpochDay(value.asLong());
            case "java.time.LocalTime" -> LocalTime.ofNanoOfDay(value.asLong() * 1_000_000);
            case "java.util.Date" -> new Date(Math.floorDiv(value.asLong(), 1000L));
            case "java.sql.Timestamp" -> new Timestamp(Math.floorDiv(value.asLong(), 1000L));
            default -> {
                Object made = kind.getConstructor().newInstance();
                for (Field field : kind.getFields()) {
                    field.set(made, object(field.getGenericType(), value.get(field.getName())));
                }
                yield made;
            }
        };
    }

    /** The value of an object. */
    private static JsonNode node(Type type, Object value) throws Exception {
        if (value == null) {
            return NODES.nullNode();
        }
        if (type instanceof ParameterizedType generic) {
            Type[] parts = generic.getActualTypeArguments();
            ArrayNode items = NODES.arrayNode();
            if (parts.length == 1) {
                for (Object item : (List<?>) value) {
                    items.add(node(parts[0], item));
                }
                return items;
            }
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                items.addArray().add(node(parts[0], entry.getKey())).add(node(parts[1], entry.getValue()));
            }
            return items;
        }
        Class<?> kind = (Class<?>) type;
        if (kind.isEnum()) {
            return NODES.textNode(((Enum<?>) value).name());
        }
        return switch (kind.getName()) {
            case "boolean", "java.lang.Boolean" -> NODES.booleanNode((Boolean) value);
            case "char", "java.lang.Character" -> NODES.numberNode((int) (Character) value);
            case "byte", "short", "int", "long", "java.lang.Byte", "java.lang.Short", "java.lang.Integer",
                    "java.lang.Long" -> NODES.numberNode(((Number) value).longValue());
            case "float", "java.lang.Float" -> NODES.numberNode(Float.floatToIntBits((Float) value));
            case "double", "java.lang.Double" -> NODES.numberNode(Double.doubleToLongBits((Double) value));
            case "java.lang.String", "java.math.BigDecimal", "java.math.BigInteger", "java.util.UUID" ->
                NODES.textNode(value.toString());
            case "[B" -> NODES.textNode(new String((byte[]) value, StandardCharsets.ISO_8859_1));
            case "java.time.Instant" -> NODES.numberNode(micros((Instant) value));
            case "java.time.ZonedDateTime" -> NODES.numberNode(micros(((ZonedDateTime) value).toInstant()));
            case "java.time.OffsetDateTime" -> NODES.numberNode(micros(((OffsetDateTime) value).toInstant()));
            case "java.time.LocalDateTime" ->
                NODES.numberNode(micros(((LocalDateTime) value).toInstant(ZoneOffset.UTC)));
            case "java.time.LocalDate" -> NODES.numberNode(((LocalDate) value).toEpochDay());
            case "java.time.LocalTime" -> NODES.numberNode(((LocalTime) value).toNanoOfDay() / 1_000_000);
            case "java.util.Date", "java.sql.Timestamp" -> NODES.numberNode(((Date) value).getTime() * 1000);
            default -> {
                ObjectNode fields = NODES.objectNode();
                for (Field field : kind.getFields()) {
                    fields.set(field.getName(), node(field.getGenericType(), field.get(value)));
                }
                yield fields;
            }
        };
    }
}
