import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;

/**
 * SERVICE_URL WEB_URL TOPIC: creates TOPIC with two partitions over the admin API, publishes five messages with keys and
 * reads them back; prints the number of partitions and the values in the order they were sent.
 */
public class RoundTrip {
    public static void main(String[] args) throws Exception {
        String topic = args[2];
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(args[1]).build();
                PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
            admin.topics().createPartitionedTopic(topic, 2);
            System.out.println(admin.topics().getPartitionedTopicMetadata(topic).partitions);
            try (Producer<String> producer = client.newProducer(Schema.STRING).topic(topic).create()) {
                for (int i = 0; i < 5; i++) {
                    producer.newMessage().key("k").value("message " + i).send();
                }
            }
            try (Reader<String> reader =
                    client.newReader(Schema.STRING).topic(topic).startMessageId(MessageId.earliest).create()) {
                for (int i = 0; i < 5; i++) {
                    Message<String> message = reader.readNext(60, TimeUnit.SECONDS);
                    System.out.println(message == null ? "nothing" : message.getValue());
                }
            }
        }
        System.exit(0);
    }
}
