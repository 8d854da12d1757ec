import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.common.naming.TopicDomain;
import org.apache.pulsar.common.policies.data.AutoSubscriptionCreationOverride;
import org.apache.pulsar.common.policies.data.AutoTopicCreationOverride;
import org.apache.pulsar.common.policies.data.ClusterData;
import org.apache.pulsar.common.policies.data.InactiveTopicDeleteMode;
import org.apache.pulsar.common.policies.data.InactiveTopicPolicies;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.TenantInfo;
import org.apache.pulsar.client.impl.schema.StringSchema;

/** What the Java admin client gets: one line per question. Arguments: service URL, web URL, cluster, unique word. */
public class Admin {
    interface Question {
        Object ask() throws Exception;
    }

    static void show(String name, Question question) {
        Object answer;
        try {
            answer = question.ask();
        } catch (PulsarAdminException refusal) {
            answer = refusal.getClass().getSimpleName() + " " + refusal.getStatusCode();
        } catch (Exception error) {
            answer = error.toString();
        }
        System.out.println(name + ": " + answer);
    }

    static void act(String name, org.apache.pulsar.client.admin.PulsarAdmin admin, Action action) {
        show(name, () -> {
            action.run();
            return "done";
        });
    }

    interface Action {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        String cluster = arguments[2];
        String tenant = "java-" + arguments[3];
        String ns = tenant + "/a";
        String topic = "persistent://" + ns + "/t x";
        String parted = "persistent://" + ns + "/p";
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(arguments[1]).build()) {
            act("health", admin, () -> admin.brokers().healthcheck());
            show("broker is ready", () -> admin.brokers().getRuntimeConfigurations().get("allowAutoTopicCreation"));
            act("create cluster", admin, () -> admin.clusters().createCluster("remote-" + arguments[3],
                    ClusterData.builder().serviceUrl("http://127.0.0.1:1").build()));
            show("get cluster", () -> admin.clusters().getCluster("remote-" + arguments[3]).getServiceUrl());
            act("create tenant", admin, () -> admin.tenants().createTenant(tenant,
                    TenantInfo.builder().allowedClusters(Set.of(cluster)).build()));
            act("create namespace", admin, () -> admin.namespaces().createNamespace(ns));
            act("create namespace with bundles", admin, () -> admin.namespaces().createNamespace(tenant + "/b", 8));
            show("bundles", () -> admin.namespaces().getPolicies(tenant + "/b").bundles.getNumBundles());
            show("clusters of it", () -> admin.namespaces().getPolicies(tenant + "/b").replication_clusters
                    .equals(Set.of(cluster)));
            act("create namespace again", admin, () -> admin.namespaces().createNamespace(ns));
            show("namespaces", () -> new TreeSet<>(admin.namespaces().getNamespaces(tenant)).size());
            show("unset auto creation", () -> admin.namespaces().getAutoTopicCreation(ns));
            show("unset retention", () -> admin.namespaces().getRetention(ns));
            show("unset ttl", () -> admin.namespaces().getNamespaceMessageTTL(ns));
            show("unset deduplication", () -> admin.namespaces().getDeduplicationStatus(ns));
            show("unset strategy", () -> admin.namespaces().getSchemaCompatibilityStrategy(ns));
            show("unset auto update", () -> admin.namespaces().getIsAllowAutoUpdateSchema(ns));
            act("set auto creation", admin, () -> admin.namespaces().setAutoTopicCreation(ns,
                    AutoTopicCreationOverride.builder().allowAutoTopicCreation(true).topicType("partitioned")
                            .defaultNumPartitions(3).build()));
            show("auto creation", () -> admin.namespaces().getAutoTopicCreation(ns).getDefaultNumPartitions());
            act("remove auto creation", admin, () -> admin.namespaces().removeAutoTopicCreation(ns));
            InactiveTopicPolicies kept = new InactiveTopicPolicies(
                    InactiveTopicDeleteMode.delete_when_subscriptions_caught_up, 3600, false);
            show("unset inactive topics", () -> admin.namespaces().getInactiveTopicPolicies(ns));
            act("set inactive topics", admin, () -> admin.namespaces().setInactiveTopicPolicies(ns, kept));
            show("inactive topics", () -> admin.namespaces().getInactiveTopicPolicies(ns));
            show("unset auto subscription", () -> admin.namespaces().getAutoSubscriptionCreation(ns));
            act("set auto subscription", admin, () -> admin.namespaces().setAutoSubscriptionCreation(ns,
                    AutoSubscriptionCreationOverride.builder().allowAutoSubscriptionCreation(true).build()));
            show("auto subscription", () -> admin.namespaces().getAutoSubscriptionCreation(ns)
                    .isAllowAutoSubscriptionCreation());
            act("remove auto subscription", admin, () -> admin.namespaces().removeAutoSubscriptionCreation(ns));
            show("unset max topics", () -> admin.namespaces().getMaxTopicsPerNamespace(ns));
            act("set max topics", admin, () -> admin.namespaces().setMaxTopicsPerNamespace(ns, 1));
            show("max topics", () -> admin.namespaces().getMaxTopicsPerNamespace(ns));
            act("too many partitions", admin, () -> admin.topics().createPartitionedTopic(parted, 2));
            act("remove max topics", admin, () -> admin.namespaces().removeMaxTopicsPerNamespace(ns));
            act("set retention", admin, () -> admin.namespaces().setRetention(ns, new RetentionPolicies(-1, -1)));
            show("retention", () -> admin.namespaces().getRetention(ns).getRetentionTimeInMinutes());
            act("set clusters", admin, () -> admin.namespaces().setNamespaceReplicationClusters(ns, Set.of(cluster), true));
            act("set unknown cluster", admin,
                    () -> admin.namespaces().setNamespaceReplicationClusters(ns, Set.of("nowhere"), false));
            act("create topic", admin, () -> admin.topics().createNonPartitionedTopic(topic, Map.of("k", "v")));
            act("create topic again", admin, () -> admin.topics().createNonPartitionedTopic(topic));
            show("unset inactive topic", () -> admin.topicPolicies().getInactiveTopicPolicies(topic));
            show("applied inactive topic", () -> admin.topicPolicies().getInactiveTopicPolicies(topic, true));
            act("set inactive topic", admin, () -> admin.topicPolicies().setInactiveTopicPolicies(topic,
                    new InactiveTopicPolicies(InactiveTopicDeleteMode.delete_when_no_subscriptions, 7200, false)));
            show("inactive topic", () -> admin.topicPolicies().getInactiveTopicPolicies(topic));
            act("remove inactive topic", admin, () -> admin.topicPolicies().removeInactiveTopicPolicies(topic));
            show("removed inactive topic", () -> admin.topicPolicies().getInactiveTopicPolicies(topic));
            act("set inactive none", admin,
                    () -> admin.topicPolicies().setInactiveTopicPolicies(topic + "-none", kept));
            show("properties", () -> admin.topics().getProperties(topic));
            act("create partitioned", admin, () -> admin.topics().createPartitionedTopic(parted, 2, Map.of("a", "b")));
            show("metadata", () -> admin.topics().getPartitionedTopicMetadata(parted).partitions);
            show("metadata properties", () -> admin.topics().getPartitionedTopicMetadata(parted).properties);
            show("metadata of nothing", () -> admin.topics().getPartitionedTopicMetadata(parted + "-none"));
            act("set inactive partition", admin,
                    () -> admin.topicPolicies().setInactiveTopicPolicies(parted + "-partition-0", kept));
            act("set inactive partitioned", admin, () -> admin.topicPolicies().setInactiveTopicPolicies(parted, kept));
            show("inactive partitioned", () -> admin.topicPolicies().getInactiveTopicPolicies(parted));
            act("grow", admin, () -> admin.topics().updatePartitionedTopic(parted, 3));
            act("shrink", admin, () -> admin.topics().updatePartitionedTopic(parted, 1));
            show("list", () -> new TreeSet<>(admin.topics().getList(ns)).toString().replace(tenant, "T"));
            show("list persistent", () -> admin.topics().getList(ns, TopicDomain.persistent).size());
            show("partitioned list", () -> admin.topics().getPartitionedTopicList(ns).toString().replace(tenant, "T"));
            act("subscribe", admin, () -> admin.topics().createSubscription(topic, "s", MessageId.earliest));
            act("subscribe again", admin, () -> admin.topics().createSubscription(topic, "s", MessageId.latest));
            act("subscribe partitioned", admin,
                    () -> admin.topics().createSubscription(parted, "s", MessageId.latest));
            show("subscriptions", () -> admin.topics().getSubscriptions(parted));
            show("stats", () -> admin.topics().getStats(topic).getSubscriptions().get("s").getMsgBacklog());
            show("partitioned stats", () -> admin.topics().getPartitionedStats(parted, true).getPartitions().size());
            show("partitioned stats metadata", () -> admin.topics().getPartitionedStats(parted, false).getMetadata().partitions);
            show("internal stats", () -> admin.topics().getInternalStats(topic).numberOfEntries);
            show("partitioned internal stats",
                    () -> admin.topics().getPartitionedInternalStats(parted).partitions.size());
            act("reset", admin, () -> admin.topics().resetCursor(topic, "s", MessageId.earliest));
            act("reset to time", admin, () -> admin.topics().resetCursor(topic, "s", 1000L));
            act("skip all", admin, () -> admin.topics().skipAllMessages(topic, "s"));
            show("last message", () -> admin.topics().getLastMessageId(topic).toString().replaceAll("[0-9]+:-1", "n:-1"));
            show("lookup", () -> admin.lookups().lookupTopic(topic).equals(arguments[0]));
            show("partitioned lookup", () -> admin.lookups().lookupPartitionedTopic(parted).size());
            act("register schema", admin, () -> admin.schemas().createSchema(topic, new StringSchema().getSchemaInfo()));
            show("schema", () -> admin.schemas().getSchemaInfo(topic).getType());
            show("schema version", () -> admin.schemas().getSchemaInfoWithVersion(topic).getVersion());
            show("all schemas", () -> admin.schemas().getAllSchemas(topic).size());
            act("delete schema", admin, () -> admin.schemas().deleteSchema(topic));
            act("unload", admin, () -> admin.topics().unload(topic));
            act("terminate", admin, () -> admin.topics().terminateTopic(topic));
            act("unsubscribe", admin, () -> admin.topics().deleteSubscription(topic, "s"));
            act("unsubscribe again", admin, () -> admin.topics().deleteSubscription(topic, "s"));
            act("delete base", admin, () -> admin.topics().delete(parted));
            act("delete partitioned", admin, () -> admin.topics().deletePartitionedTopic(parted));
            act("delete", admin, () -> admin.topics().delete(topic));
            act("delete again", admin, () -> admin.topics().delete(topic));
            act("dynamic", admin, () -> admin.brokers().updateDynamicConfiguration("nonsense", "1"));
            show("brokers", () -> List.copyOf(admin.brokers().getActiveBrokers(cluster)).size());
            act("delete tenant", admin, () -> admin.tenants().deleteTenant(tenant));
            act("delete namespace", admin, () -> admin.namespaces().deleteNamespace(ns));
            act("delete other namespace", admin, () -> admin.namespaces().deleteNamespace(tenant + "/b"));
            act("delete empty tenant", admin, () -> admin.tenants().deleteTenant(tenant));
            act("delete cluster", admin, () -> admin.clusters().deleteCluster("remote-" + arguments[3]));
        }
    }
}
