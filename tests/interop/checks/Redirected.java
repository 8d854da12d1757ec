import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.*;

/**
 * A producer and a consumer of the Java client whose namespace is fenced and then moved to another broker, and back.
 * One line per message with the broker that the producer is connected to. Arguments: service URL and web URL of each.
 */
public class Redirected {
    static final String TOPIC = "persistent://public/default/orders";
    static final HttpClient HTTP = HttpClient.newHttpClient();

    static void role(String webUrl, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(webUrl + "/admin/v2/namespaces/public/default/failover"))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) throw new IllegalStateException(answer.body());
    }

    public static void main(String[] arguments) throws Exception {
        String[][] sites = {{arguments[0], arguments[1]}, {arguments[2], arguments[3]}};
        try (PulsarClient client = PulsarClient.builder().serviceUrl(sites[0][0]).build();
                Consumer<byte[]> consumer = client.newConsumer().topic(TOPIC).subscriptionName("s")
                        .subscriptionType(SubscriptionType.Shared).subscribe();
                Producer<String> producer = client.newProducer(Schema.STRING).topic(TOPIC)
                        .sendTimeout(120, TimeUnit.SECONDS).create()) {
            for (int change = 0; change < 3; change++) {
                String[] here = sites[(change + 1) % 2], there = sites[change % 2];
                CompletableFuture<MessageId> waiting = null;
                if (change > 0) {
                    role(here[1], "{\"role\":\"fenced\",\"epoch\":" + change + "}");
                    waiting = producer.sendAsync("waiting " + change);
                    Thread.sleep(1500);
                    role(there[1], "{\"role\":\"active\",\"epoch\":" + change + "}");
                    role(here[1], "{\"role\":\"moved\",\"epoch\":" + change + ",\"url\":\"" + there[0] + "\"}");
                    waiting.get(120, TimeUnit.SECONDS);
                }
                producer.send("at " + change);
                for (int expected = waiting == null ? 1 : 2; expected > 0; expected--) {
                    Message<byte[]> message = consumer.receive(120, TimeUnit.SECONDS);
                    consumer.acknowledge(message);
                    System.out.println(new String(message.getData()));
                }
                Thread.sleep(1500); // acknowledgements are grouped, and the consumer is redirected when it has drained
            }
        }
    }
}
