import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.impl.MessageIdImpl;
import org.apache.pulsar.common.naming.TopicDomain;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.policies.data.AutoSubscriptionCreationOverride;
import org.apache.pulsar.common.policies.data.AutoTopicCreationOverride;
import org.apache.pulsar.common.policies.data.ClusterData;
import org.apache.pulsar.common.policies.data.InactiveTopicDeleteMode;
import org.apache.pulsar.common.policies.data.InactiveTopicPolicies;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.TenantInfo;
import org.apache.pulsar.client.impl.schema.StringSchema;

/** What the Java admin client gets: one line per question. Arguments: service URL, web URL, cluster, unique word. */
public class Admin extends Questions {
    /** One message by itself, with everything a message can have; then three in one compressed batch. */
    static void fill(String serviceUrl, String topic) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(serviceUrl).build()) {
            try (Producer<byte[]> single = client.newProducer().topic(topic).enableBatching(false).create()) {
                single.newMessage().key("k:1").orderingKey(new byte[]{1, 2}).property("a b", "c=\u00fc\n")
                        .eventTime(1234567).deliverAt(1900000000000L).value("one".getBytes()).send();
            }
            try (Producer<byte[]> batched = client.newProducer().topic(topic).compressionType(CompressionType.ZSTD)
                    .batchingMaxPublishDelay(1, TimeUnit.MINUTES).create()) {
                for (String text : List.of("two", "three", "four")) {
                    batched.newMessage().keyBytes(text.getBytes()).property("i", text).value(text.getBytes()).sendAsync();
                }
                batched.flush();
            }
        }
    }

    static String shown(Message<byte[]> message) {
        return new String(message.getData()) + " " + message.getMessageId().toString().replaceFirst("^[0-9]+:", "L:")
                + " key=" + message.getKey() + " " + message.hasBase64EncodedKey() + " " + message.hasOrderingKey()
                + " " + message.getProperties().get("a b") + message.getProperties().get("i")
                + " " + message.getProperties().get("X-Pulsar-num-batch-message")
                + " " + message.getEventTime() + " " + message.getSequenceId() + " " + (message.getPublishTime() > 0);
    }

    static String shown(List<Message<byte[]>> messages) {
        return messages.stream().map(Admin::shown).collect(Collectors.joining("; "));
    }

    /** Single messages of {@code topic}, which is created here; {@code parted} is a partitioned topic. */
    /** A real broker refuses to begin while the expiry before, which it answered already, still runs. */
    static void expireOnceTheOneBeforeHasEnded(PulsarAdmin admin, String topic) throws Exception {
        for (int attempt = 1; ; attempt++) {
            try {
                admin.topics().expireMessages(topic, "s", 3600);
                return;
            } catch (PulsarAdminException.ConflictException stillRunning) {
                if (attempt == 100) {
                    throw stillRunning;
                }
                TimeUnit.MILLISECONDS.sleep(100);
            }
        }
    }

    static void messages(PulsarAdmin admin, String serviceUrl, String topic, String parted) throws Exception {
        admin.topics().createNonPartitionedTopic(topic);
        admin.topics().createSubscription(topic, "s", MessageId.earliest);
        fill(serviceUrl, topic);
        show("peek", () -> shown(admin.topics().peekMessages(topic, "s", 1)));
        show("peek more than there are", () -> shown(admin.topics().peekMessages(topic, "s", 9)));
        show("peek partitioned", () -> shown(admin.topics().peekMessages(parted, "s", 1)));
        show("peek nothing", () -> shown(admin.topics().peekMessages(topic + "-none", "s", 1)));
        show("examine first", () -> shown(admin.topics().examineMessage(topic, "earliest", 1)));
        show("examine second", () -> shown(admin.topics().examineMessage(topic, "earliest", 2)));
        show("examine last", () -> shown(admin.topics().examineMessage(topic, "latest", 1)));
        show("examine partitioned", () -> shown(admin.topics().examineMessage(parted, "latest", 1)));
        MessageIdImpl start = (MessageIdImpl) admin.topics().getMessageIdByTimestamp(topic, 1L);
        show("id by time", start::getEntryId);
        long ledger = start.getLedgerId();
        show("id by late time", () -> ((MessageIdImpl) admin.topics().getMessageIdByTimestamp(topic,
                4000000000000L)).getEntryId());
        show("by id", () -> shown(admin.topics().getMessagesById(topic, ledger, 0)));
        show("batch by id", () -> shown(admin.topics().getMessagesById(topic, ledger, 1)));
        show("by wrong id", () -> shown(admin.topics().getMessagesById(topic, 987654321L, 0)));
        act("reset behind it", () -> admin.topics().resetCursor(topic, "s", start, true));
        show("peek behind it", () -> shown(admin.topics().peekMessages(topic, "s", 1)));
        act("reset to it", () -> admin.topics().resetCursor(topic, "s", start, false));
        show("peek it", () -> shown(admin.topics().peekMessages(topic, "s", 1)));
        act("expire upto", () -> admin.topics().expireMessages(topic, "s", start, false));
        act("expire behind", () -> admin.topics().expireMessages(topic, "s",
                new MessageIdImpl(987654321L, 0, -1), false));
        act("expire nothing", () -> expireOnceTheOneBeforeHasEnded(admin, topic));
        act("expire everywhere", () -> admin.topics().expireMessagesForAllSubscriptions(topic, 3600));
        act("expire in partitions without backlog", () -> admin.topics().expireMessages(parted, "s", 1));
        act("expire of unknown", () -> admin.topics().expireMessages(topic, "none", 1));
        act("skip in partitioned", () -> admin.topics().skipMessages(parted, "s", 1));
        act("skip all in partitioned", () -> admin.topics().skipAllMessages(parted, "s"));
        act("update properties", () -> admin.topics().updateProperties(topic, Map.of("k", "v")));
        show("properties of it", () -> admin.topics().getProperties(topic));
        act("remove properties", () -> admin.topics().removeProperties(topic, "k"));
        act("update subscription properties",
                () -> admin.topics().updateSubscriptionProperties(topic, "s", Map.of("k", "v")));
        show("subscription properties", () -> admin.topics().getSubscriptionProperties(topic, "s"));
        act("truncate", () -> admin.topics().truncate(topic));
        act("truncate partitioned", () -> admin.topics().truncate(parted));
        show("peek after truncation", () -> shown(admin.topics().peekMessages(topic, "s", 9)));
        act("unload namespace", () -> admin.namespaces().unload(TopicName.get(topic).getNamespace()));
        act("unload bundle", () -> admin.namespaces().unloadNamespaceBundle(
                TopicName.get(topic).getNamespace(), "0x00000000_0x40000000"));
        act("unload no bundle", () -> admin.namespaces().unloadNamespaceBundle(
                TopicName.get(topic).getNamespace(), "0x00000000_0x12345678"));
        act("delete messages", () -> admin.topics().delete(topic, true));
    }

    public static void main(String[] arguments) throws Exception {
        String cluster = arguments[2];
        String tenant = "java-" + arguments[3];
        String ns = tenant + "/a";
        String topic = "persistent://" + ns + "/t x";
        String parted = "persistent://" + ns + "/p";
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(arguments[1]).build()) {
            act("health", () -> admin.brokers().healthcheck());
            show("broker is ready", () -> admin.brokers().getRuntimeConfigurations().get("allowAutoTopicCreation"));
            act("create cluster", () -> admin.clusters().createCluster("remote-" + arguments[3],
                    ClusterData.builder().serviceUrl("http://127.0.0.1:1").build()));
            show("get cluster", () -> admin.clusters().getCluster("remote-" + arguments[3]).getServiceUrl());
            act("create tenant", () -> admin.tenants().createTenant(tenant,
                    TenantInfo.builder().allowedClusters(Set.of(cluster)).build()));
            act("create namespace", () -> admin.namespaces().createNamespace(ns));
            act("create namespace with bundles", () -> admin.namespaces().createNamespace(tenant + "/b", 8));
            show("bundles", () -> admin.namespaces().getPolicies(tenant + "/b").bundles.getNumBundles());
            show("clusters of it", () -> admin.namespaces().getPolicies(tenant + "/b").replication_clusters
                    .equals(Set.of(cluster)));
            act("create namespace again", () -> admin.namespaces().createNamespace(ns));
            show("namespaces", () -> new TreeSet<>(admin.namespaces().getNamespaces(tenant)).size());
            show("unset auto creation", () -> admin.namespaces().getAutoTopicCreation(ns));
            show("unset retention", () -> admin.namespaces().getRetention(ns));
            show("unset ttl", () -> admin.namespaces().getNamespaceMessageTTL(ns));
            show("unset deduplication", () -> admin.namespaces().getDeduplicationStatus(ns));
            show("unset strategy", () -> admin.namespaces().getSchemaCompatibilityStrategy(ns));
            show("unset auto update", () -> admin.namespaces().getIsAllowAutoUpdateSchema(ns));
            act("set auto creation", () -> admin.namespaces().setAutoTopicCreation(ns,
                    AutoTopicCreationOverride.builder().allowAutoTopicCreation(true).topicType("partitioned")
                            .defaultNumPartitions(3).build()));
            show("auto creation", () -> admin.namespaces().getAutoTopicCreation(ns).getDefaultNumPartitions());
            act("remove auto creation", () -> admin.namespaces().removeAutoTopicCreation(ns));
            InactiveTopicPolicies kept = new InactiveTopicPolicies(
                    InactiveTopicDeleteMode.delete_when_subscriptions_caught_up, 3600, false);
            show("unset inactive topics", () -> admin.namespaces().getInactiveTopicPolicies(ns));
            act("set inactive topics", () -> admin.namespaces().setInactiveTopicPolicies(ns, kept));
            show("inactive topics", () -> admin.namespaces().getInactiveTopicPolicies(ns));
            show("unset auto subscription", () -> admin.namespaces().getAutoSubscriptionCreation(ns));
            act("set auto subscription", () -> admin.namespaces().setAutoSubscriptionCreation(ns,
                    AutoSubscriptionCreationOverride.builder().allowAutoSubscriptionCreation(true).build()));
            show("auto subscription", () -> admin.namespaces().getAutoSubscriptionCreation(ns)
                    .isAllowAutoSubscriptionCreation());
            act("remove auto subscription", () -> admin.namespaces().removeAutoSubscriptionCreation(ns));
            show("unset max topics", () -> admin.namespaces().getMaxTopicsPerNamespace(ns));
            act("set max topics", () -> admin.namespaces().setMaxTopicsPerNamespace(ns, 1));
            show("max topics", () -> admin.namespaces().getMaxTopicsPerNamespace(ns));
            act("too many partitions", () -> admin.topics().createPartitionedTopic(parted, 2));
            act("remove max topics", () -> admin.namespaces().removeMaxTopicsPerNamespace(ns));
            act("set retention", () -> admin.namespaces().setRetention(ns, new RetentionPolicies(-1, -1)));
            show("retention", () -> admin.namespaces().getRetention(ns).getRetentionTimeInMinutes());
            act("set clusters", () -> admin.namespaces().setNamespaceReplicationClusters(ns, Set.of(cluster), true));
            act("set unknown cluster",
                    () -> admin.namespaces().setNamespaceReplicationClusters(ns, Set.of("nowhere"), false));
            act("create topic", () -> admin.topics().createNonPartitionedTopic(topic, Map.of("k", "v")));
            act("create topic again", () -> admin.topics().createNonPartitionedTopic(topic));
            show("unset inactive topic", () -> admin.topicPolicies().getInactiveTopicPolicies(topic));
            show("applied inactive topic", () -> admin.topicPolicies().getInactiveTopicPolicies(topic, true));
            act("set inactive topic", () -> admin.topicPolicies().setInactiveTopicPolicies(topic,
                    new InactiveTopicPolicies(InactiveTopicDeleteMode.delete_when_no_subscriptions, 7200, false)));
            show("inactive topic", () -> admin.topicPolicies().getInactiveTopicPolicies(topic));
            act("remove inactive topic", () -> admin.topicPolicies().removeInactiveTopicPolicies(topic));
            show("removed inactive topic", () -> admin.topicPolicies().getInactiveTopicPolicies(topic));
            act("set inactive none",
                    () -> admin.topicPolicies().setInactiveTopicPolicies(topic + "-none", kept));
            show("properties", () -> admin.topics().getProperties(topic));
            act("create partitioned", () -> admin.topics().createPartitionedTopic(parted, 2, Map.of("a", "b")));
            show("metadata", () -> admin.topics().getPartitionedTopicMetadata(parted).partitions);
            show("metadata properties", () -> admin.topics().getPartitionedTopicMetadata(parted).properties);
            show("metadata of nothing", () -> admin.topics().getPartitionedTopicMetadata(parted + "-none"));
            act("set inactive partition",
                    () -> admin.topicPolicies().setInactiveTopicPolicies(parted + "-partition-0", kept));
            act("set inactive partitioned", () -> admin.topicPolicies().setInactiveTopicPolicies(parted, kept));
            show("inactive partitioned", () -> admin.topicPolicies().getInactiveTopicPolicies(parted));
            act("grow", () -> admin.topics().updatePartitionedTopic(parted, 3));
            act("shrink", () -> admin.topics().updatePartitionedTopic(parted, 1));
            show("list", () -> new TreeSet<>(admin.topics().getList(ns)).toString().replace(tenant, "T"));
            show("list persistent", () -> admin.topics().getList(ns, TopicDomain.persistent).size());
            show("partitioned list", () -> admin.topics().getPartitionedTopicList(ns).toString().replace(tenant, "T"));
            act("subscribe", () -> admin.topics().createSubscription(topic, "s", MessageId.earliest));
            act("subscribe again", () -> admin.topics().createSubscription(topic, "s", MessageId.latest));
            act("subscribe partitioned",
                    () -> admin.topics().createSubscription(parted, "s", MessageId.latest));
            show("subscriptions", () -> admin.topics().getSubscriptions(parted));
            show("stats", () -> admin.topics().getStats(topic).getSubscriptions().get("s").getMsgBacklog());
            show("partitioned stats", () -> admin.topics().getPartitionedStats(parted, true).getPartitions().size());
            show("partitioned stats metadata", () -> admin.topics().getPartitionedStats(parted, false).getMetadata().partitions);
            show("internal stats", () -> admin.topics().getInternalStats(topic).numberOfEntries);
            show("partitioned internal stats",
                    () -> admin.topics().getPartitionedInternalStats(parted).partitions.size());
            act("reset", () -> admin.topics().resetCursor(topic, "s", MessageId.earliest));
            act("reset to time", () -> admin.topics().resetCursor(topic, "s", 1000L));
            act("skip all", () -> admin.topics().skipAllMessages(topic, "s"));
            show("last message", () -> admin.topics().getLastMessageId(topic).toString().replaceAll("[0-9]+:-1", "n:-1"));
            show("lookup", () -> admin.lookups().lookupTopic(topic).equals(arguments[0]));
            show("partitioned lookup", () -> admin.lookups().lookupPartitionedTopic(parted).size());
            act("register schema", () -> admin.schemas().createSchema(topic, new StringSchema().getSchemaInfo()));
            show("schema", () -> admin.schemas().getSchemaInfo(topic).getType());
            show("schema version", () -> admin.schemas().getSchemaInfoWithVersion(topic).getVersion());
            show("all schemas", () -> admin.schemas().getAllSchemas(topic).size());
            act("delete schema", () -> admin.schemas().deleteSchema(topic));
            messages(admin, arguments[0], "persistent://" + ns + "/m", parted);
            act("unload", () -> admin.topics().unload(topic));
            act("terminate", () -> admin.topics().terminateTopic(topic));
            act("unsubscribe", () -> admin.topics().deleteSubscription(topic, "s"));
            act("unsubscribe again", () -> admin.topics().deleteSubscription(topic, "s"));
            String unstored = "non-persistent://" + ns + "/u";
            String unstoredParted = "non-persistent://" + ns + "/v";
            act("create unstored", () -> admin.topics().createNonPartitionedTopic(unstored));
            act("create unstored again", () -> admin.topics().createNonPartitionedTopic(unstored));
            act("create unstored partitioned", () -> admin.topics().createPartitionedTopic(unstoredParted, 2));
            show("unstored metadata", () -> admin.topics().getPartitionedTopicMetadata(unstoredParted).partitions);
            show("unstored list", () -> admin.topics().getList(ns, TopicDomain.non_persistent).toString()
                    .replace(tenant, "T"));
            show("unstored partitioned list", () -> admin.topics().getPartitionedTopicList(ns).size());
            show("topics of the namespace", () -> admin.namespaces().getTopics(ns).stream()
                    .filter(each -> each.startsWith("non-")).count());
            show("unstored stats", () -> admin.topics().getStats(unstored).getMsgInCounter());
            show("unstored internal stats", () -> admin.topics().getInternalStats(unstored).numberOfEntries);
            show("unstored partitioned stats",
                    () -> admin.topics().getPartitionedStats(unstoredParted, true).getMetadata().partitions);
            act("unstored subscription",
                    () -> admin.topics().createSubscription(unstored, "s", MessageId.latest));
            show("unstored subscriptions", () -> admin.topics().getSubscriptions(unstored));
            show("unstored last message", () -> admin.topics().getLastMessageId(unstored));
            act("grow unstored", () -> admin.topics().updatePartitionedTopic(unstoredParted, 3));
            act("delete unstored partitioned", () -> admin.topics().deletePartitionedTopic(unstoredParted));
            act("unload unstored", () -> admin.topics().unload(unstored));
            show("unstored after unload", () -> admin.topics().getPartitionedTopicMetadata(unstored).partitions);
            act("delete unstored", () -> admin.topics().delete(unstored));
            act("delete base", () -> admin.topics().delete(parted));
            act("delete partitioned", () -> admin.topics().deletePartitionedTopic(parted));
            act("delete", () -> admin.topics().delete(topic));
            act("delete again", () -> admin.topics().delete(topic));
            act("dynamic", () -> admin.brokers().updateDynamicConfiguration("nonsense", "1"));
            show("brokers", () -> List.copyOf(admin.brokers().getActiveBrokers(cluster)).size());
            act("delete tenant", () -> admin.tenants().deleteTenant(tenant));
            act("delete namespace", () -> admin.namespaces().deleteNamespace(ns));
            act("delete other namespace", () -> admin.namespaces().deleteNamespace(tenant + "/b"));
            act("delete empty tenant", () -> admin.tenants().deleteTenant(tenant));
            act("delete cluster", () -> admin.clusters().deleteCluster("remote-" + arguments[3]));
        }
    }
}
