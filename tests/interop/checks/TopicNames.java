import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.common.naming.SystemTopicNames;
import org.apache.pulsar.common.naming.TopicName;

/**
 * What Pulsar makes of names: each argument is one in base64. Prints a line for each: "invalid", or its parts in base64
 * separated by blanks: complete name, partition index, base name, the name of its partition 0, encoded local name, schema
 * name, then whether it is a system topic and whether it is internal to transactions.
 */
public class TopicNames {
    public static void main(String[] arguments) {
        for (String argument : arguments) {
            String text = new String(Base64.getDecoder().decode(argument), StandardCharsets.UTF_8);
            String line;
            try {
                line = describe(TopicName.get(text));
            } catch (RuntimeException refused) {
                line = "invalid";
            }
            System.out.println(line);
        }
    }

    private static String describe(TopicName name) {
        return String.join(" ", encode(name.toString()), Integer.toString(name.getPartitionIndex()),
                encode(name.getPartitionedTopicName()), encode(name.getPartition(0).toString()),
                encode(name.getEncodedLocalName()), encode(name.getSchemaName()), Boolean.toString(NamespaceService.isSystemServiceNamespace(
                        name.getNamespace()) || SystemTopicNames.isSystemTopic(name)),
                Boolean.toString(SystemTopicNames.isTransactionInternalName(name)));
    }

    private static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
