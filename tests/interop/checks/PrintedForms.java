import com.fasterxml.jackson.databind.ObjectWriter;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.util.ObjectMapperFactory;

/**
 * Prints what a namespace and its topic "typed" look like, with the mapper that Pulsar's own command line tool prints
 * with. Arguments: web service URL, cluster, namespace. A line "# command" stands before each form.
 */
public class PrintedForms {
    private static final ObjectWriter WRITER = ObjectMapperFactory.create().writerWithDefaultPrettyPrinter();

    public static void main(String[] arguments) throws Exception {
        String cluster = arguments[1];
        String namespace = arguments[2];
        String topic = "persistent://" + namespace + "/typed";
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(arguments[0]).build()) {
            print("clusters get " + cluster, admin.clusters().getCluster(cluster));
            print("tenants get public", admin.tenants().getTenantInfo("public"));
            print("namespaces policies " + namespace, admin.namespaces().getPolicies(namespace));
            print("namespaces get-retention " + namespace, admin.namespaces().getRetention(namespace));
            print("topics get-partitioned-topic-metadata " + topic, admin.topics().getPartitionedTopicMetadata(topic));
            print("topics last-message-id " + topic, admin.topics().getLastMessageId(topic));
            print("topics stats-internal " + topic, admin.topics().getInternalStats(topic));
            printText("schemas get " + topic, admin.schemas().getSchemaInfoWithVersion(topic).toString());
            printText("schemas get " + topic + " -v 0", admin.schemas().getSchemaInfo(topic, 0).toString());
            print("schemas get " + topic + " -a", admin.schemas().getAllSchemas(topic).get(0));
            printText("topics lookup " + topic, admin.lookups().lookupTopic(topic));
            printText("topics bundle-range " + topic, admin.lookups().getBundleRange(topic));
        }
    }

    private static void print(String command, Object value) throws Exception {
        printText(command, WRITER.writeValueAsString(value));
    }

    private static void printText(String command, String text) {
        System.out.println("# " + command);
        System.out.println(text);
    }
}
