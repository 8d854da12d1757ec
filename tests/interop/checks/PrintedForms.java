import com.fasterxml.jackson.databind.ObjectWriter;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.impl.BatchMessageIdImpl;
import org.apache.pulsar.client.impl.MessageIdImpl;
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
            printMessages(admin, "persistent://" + namespace + "/talk");
        }
    }

    /** The topic "talk" holds messages, and its subscription "s" waits for all of them. */
    private static void printMessages(PulsarAdmin admin, String talk) throws Exception {
        List<Message<byte[]>> messages = admin.topics().peekMessages(talk, "s", 9);
        StringBuilder peeked = new StringBuilder();
        for (Message<byte[]> message : messages) {
            peeked.append(peeked.isEmpty() ? "" : "\n" + "-".repeat(73) + "\n\n").append(form(message, ""));
        }
        printText("topics peek-messages " + talk + " -s s -n 9", peeked.toString());
        printText("topics examine-messages " + talk, form(admin.topics().examineMessage(talk, "latest", 1), ""));
        printText("topics examine-messages " + talk + " -i earliest -m 2",
                form(admin.topics().examineMessage(talk, "earliest", 2), ""));
        MessageIdImpl first = (MessageIdImpl) messages.get(0).getMessageId();
        printText("topics get-message-by-id " + talk + " -l " + first.getLedgerId() + " -e " + first.getEntryId(),
                form(admin.topics().getMessageById(talk, first.getLedgerId(), first.getEntryId()),
                        "\nRedelivery count: 0"));
        print("topics get-message-id " + talk + " -d 2001-01-01T00:00:00Z",
                admin.topics().getMessageIdByTimestamp(talk, 978307200000L));
        printText("topics get-properties " + talk, pairs(admin.topics().getProperties(talk)));
        printText("topics get-subscription-properties " + talk + " -s s", ObjectMapperFactory.getMapper().writer()
                .writeValueAsString(admin.topics().getSubscriptionProperties(talk, "s")));
    }

    /** As Pulsar's command line tool prints a message; {@code more} comes behind the times. */
    private static String form(Message<byte[]> message, String more) {
        MessageIdImpl id = (MessageIdImpl) message.getMessageId();
        String place = id.getLedgerId() + ":" + id.getEntryId();
        String head = id instanceof BatchMessageIdImpl batched
                ? "Batch Message ID: " + place + ":" + batched.getBatchIndex()
                : "Message ID: " + place;
        String properties = message.getProperties().isEmpty() ? "" : "\nProperties:\n" + pairs(message.getProperties());
        return head + "\nPublish time: " + message.getPublishTime() + "\nEvent time: " + message.getEventTime() + more
                + properties + "\n" + ByteBufUtil.prettyHexDump(Unpooled.wrappedBuffer(message.getData()));
    }

    private static String pairs(Map<String, String> pairs) {
        return pairs.entrySet().stream().map(each -> each.getKey() + "    " + each.getValue())
                .collect(Collectors.joining("\n"));
    }

    private static void print(String command, Object value) throws Exception {
        printText(command, WRITER.writeValueAsString(value));
    }

    private static void printText(String command, String text) {
        System.out.println("# " + command);
        System.out.println(text);
    }
}
