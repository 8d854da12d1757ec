import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.*;

/** Which keys a reader with ranges gets, what was there and what comes; one line each. Argument: the service URL. */
public class KeyRanges {
    static List<String> read(Reader<byte[]> reader, int atMost) throws PulsarClientException {
        List<String> keys = new ArrayList<>();
        Message<byte[]> message;
        while (keys.size() < atMost && (message = reader.readNext(keys.isEmpty() ? 60 : 3, TimeUnit.SECONDS)) != null) {
            keys.add(message.getKey());
        }
        return keys;
    }

    public static void main(String[] arguments) throws Exception {
        String topic = "persistent://public/default/key-ranges-" + System.nanoTime();
        try (PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
                Producer<byte[]> producer = client.newProducer().topic(topic).enableBatching(false).create()) {
            ReaderBuilder<byte[]> readers = client.newReader().topic(topic).startMessageId(MessageId.earliest);
            try (Reader<byte[]> low = readers.clone().keyHashRange(Range.of(0, 9999), Range.of(20000, 32767)).create()) {
                for (int number = 0; number < 50; number++) producer.newMessage().key("k" + number).send();
                System.out.println("as they come: " + String.join(" ", read(low, 1000)));
            }
            try (Reader<byte[]> high = readers.clone().keyHashRange(Range.of(32768, 65535)).create()) {
                System.out.println("from the log: " + String.join(" ", read(high, 1000)));
            }
        }
    }
}
