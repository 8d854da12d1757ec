import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.impl.PulsarClientImpl;
import org.apache.pulsar.common.naming.TopicName;

/**
 * SERVICE_URL WEB_URL: puts the questions of standard input to a broker, each a line "front end TAB question TAB topic", and
 * answers each with a line: "= answer" or "! status or exception TAB message".
 */
public class FrontEnds {
    private static final String SUBSCRIPTION = "s";
    private static PulsarClient binary;
    private static PulsarClient http;
    private static PulsarAdmin admin;

    public static void main(String[] arguments) throws Exception {
        binary = connect(arguments[0]);
        http = connect(arguments[1]);
        admin = PulsarAdmin.builder().serviceHttpUrl(arguments[1]).build();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            System.out.println(answer(parts[0], parts[1], parts[2]));
        }
        System.out.flush();
        System.exit(0);
    }

    private static PulsarClient connect(String url) throws Exception {
        return PulsarClient.builder().serviceUrl(url).operationTimeout(60, TimeUnit.SECONDS)
                .lookupTimeout(60, TimeUnit.SECONDS).build();
    }

    private static String answer(String frontEnd, String question, String topic) {
        try {
            return "= " + (frontEnd.equals("java-admin") ? administer(question, topic)
                    : ask(frontEnd.equals("java") ? binary : http, question, topic));
        } catch (PulsarAdminException refusal) {
            return refused(String.valueOf(refusal.getStatusCode()), refusal.getMessage());
        } catch (ExecutionException refusal) {
            return refused(refusal.getCause().getClass().getSimpleName(), refusal.getCause().getMessage());
        } catch (Exception refusal) {
            return refused(refusal.getClass().getSimpleName(), refusal.getMessage());
        }
    }

    private static String refused(String name, String message) {
        return "! " + name + "\t" + String.valueOf(message).replaceAll("\\s+", " ");
    }

    private static String ask(PulsarClient client, String question, String topic) throws Exception {
        switch (question) {
            case "partitions":
                return partitions(topic, client.getPartitionsForTopic(topic, false).get());
            case "partitions create":
                return partitions(topic, client.getPartitionsForTopic(topic, true).get());
            case "lookup", "http lookup":
                ((PulsarClientImpl) client).getLookup().getBroker(TopicName.get(topic)).get();
                return "ok";
            case "open producer":
                client.newProducer().topic(topic).create().close();
                return "ok";
            case "open consumer":
                client.newConsumer().topic(topic).subscriptionName(SUBSCRIPTION).subscribe().close();
                return "ok";
            default:
                throw new IllegalArgumentException(question);
        }
    }

    private static String partitions(String topic, List<String> names) {
        return names.equals(List.of(topic)) ? "0" : String.valueOf(names.size());
    }

    private static String administer(String question, String topic) throws Exception {
        String[] words = question.split(" ");
        boolean force = words[words.length - 1].equals("force");
        if (question.startsWith("create partitioned")) {
            admin.topics().createPartitionedTopic(topic, Integer.parseInt(words[2]));
        } else if (question.startsWith("create subscription")) {
            admin.topics().createSubscription(topic, SUBSCRIPTION, MessageId.latest);
            if (words[words.length - 1].equals("again")) {
                admin.topics().createSubscription(topic, SUBSCRIPTION, MessageId.latest);
            }
        } else if (question.equals("create missed")) {
            admin.topics().createMissedPartitions(topic);
        } else if (question.equals("create")) {
            admin.topics().createNonPartitionedTopic(topic);
        } else if (question.startsWith("expand")) {
            admin.topics().updatePartitionedTopic(topic, Integer.parseInt(words[1]), false, force);
        } else if (question.startsWith("delete partitioned")) {
            admin.topics().deletePartitionedTopic(topic, force);
        } else if (question.startsWith("delete")) {
            admin.topics().delete(topic, force);
        } else if (question.equals("partitions")) {
            return String.valueOf(admin.topics().getPartitionedTopicMetadata(topic).partitions);
        } else if (question.equals("http lookup")) {
            admin.lookups().lookupTopic(topic);
            return "ok";
        } else if (question.equals("list")) {
            return String.join(" ", admin.topics().getList(TopicName.get(topic).getNamespace()));
        } else if (question.equals("list partitioned")) {
            return String.join(" ", admin.topics().getPartitionedTopicList(TopicName.get(topic).getNamespace()));
        } else if (question.equals("stats")) {
            admin.topics().getStats(topic);
            return "ok";
        } else {
            throw new IllegalArgumentException(question);
        }
        return "204";
    }
}
