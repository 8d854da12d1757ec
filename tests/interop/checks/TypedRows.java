import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.common.schema.KeyValue;

/**
 * SERVICE_URL TOPIC..: what the first message of each topic says to a consumer of any schema, one line per topic.
 */
public class TypedRows {
    public static void main(String[] args) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
            for (int index = 1; index < args.length; index++) {
                try (Reader<GenericRecord> reader = client.newReader(Schema.AUTO_CONSUME()).topic(args[index])
                        .startMessageId(MessageId.earliest).create()) {
                    Message<GenericRecord> message = reader.readNext(60, TimeUnit.SECONDS);
                    System.out.println(message == null ? "nothing" : shown(message.getValue()));
                }
            }
        }
        System.exit(0);
    }

    private static String shown(Object value) {
        if (value instanceof KeyValue<?, ?> pair) {
            return shown(pair.getKey()) + "->" + shown(pair.getValue());
        }
        if (!(value instanceof GenericRecord record)) {
            return String.valueOf(value);
        }
        if (record.getFields() == null || record.getFields().isEmpty()) {
            return shown(record.getNativeObject());
        }
        return record.getFields().stream().map(field -> field.getName() + "=" + shown(record.getField(field)))
                .collect(Collectors.joining(" "));
    }
}
