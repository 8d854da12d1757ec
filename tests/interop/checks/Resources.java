import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.Topics;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.MessageIdImpl;
import org.apache.pulsar.common.policies.data.BookieAffinityGroupData;
import org.apache.pulsar.common.policies.data.DispatchRate;
import org.apache.pulsar.common.policies.data.PersistencePolicies;
import org.apache.pulsar.common.policies.data.TenantInfo;
import org.apache.pulsar.common.stats.AnalyzeSubscriptionBacklogResult;

/**
 * What the Java admin client gets about resources beyond the life of topics: one line per question. Arguments: service
 * URL, web URL, cluster, unique word, and `refused` for what is answered to setting what this broker does not offer.
 */
public class Resources extends Questions {
    static DispatchRate rate(int messages) {
        return DispatchRate.builder().dispatchThrottlingRateInMsg(messages).dispatchThrottlingRateInByte(7)
                .relativeToPublishRate(false).ratePeriodInSecond(2).build();
    }

    public static void main(String[] arguments) throws Exception {
        String cluster = arguments[2];
        String tenant = "resources-" + arguments[3];
        String namespace = tenant + "/ns";
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(arguments[1]).build();
                PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build()) {
            admin.tenants().createTenant(tenant, TenantInfo.builder().allowedClusters(Set.of(cluster)).build());
            admin.namespaces().createNamespace(namespace);
            if (arguments.length > 4) {
                refusals(admin, namespace);
                return;
            }
            properties(admin.namespaces(), namespace);
            policies(admin, namespace);
            neverSet(admin, namespace);
            backlogs(admin, client, "persistent://" + namespace + "/backlog");
            brokers(admin, cluster, namespace);
        }
    }

    static void properties(Namespaces namespaces, String namespace) throws Exception {
        show("properties", () -> namespaces.getProperties(namespace));
        act("set properties", () -> namespaces.setProperties(namespace, Map.of("a", "b", "c", "d e")));
        act("set property", () -> namespaces.setProperty(namespace, "x", "y"));
        show("properties", () -> new TreeMap<>(namespaces.getProperties(namespace)));
        show("property", () -> namespaces.getProperty(namespace, "c"));
        show("no property", () -> namespaces.getProperty(namespace, "none"));
        show("remove property", () -> namespaces.removeProperty(namespace, "x"));
        show("remove no property", () -> namespaces.removeProperty(namespace, "none"));
        show("properties in policies", () -> new TreeMap<>(namespaces.getPolicies(namespace).properties));
        act("clear properties", () -> namespaces.clearProperties(namespace));
        show("properties", () -> namespaces.getProperties(namespace));
        show("properties of nothing", () -> namespaces.getProperties(namespace + "-none"));
    }

    static void policies(PulsarAdmin admin, String namespace) throws Exception {
        Namespaces namespaces = admin.namespaces();
        show("expiration", () -> namespaces.getSubscriptionExpirationTime(namespace));
        act("set expiration", () -> namespaces.setSubscriptionExpirationTime(namespace, 5));
        show("expiration", () -> namespaces.getSubscriptionExpirationTime(namespace));
        show("expiration in policies", () -> namespaces.getPolicies(namespace).subscription_expiration_time_minutes);
        act("set negative expiration", () -> namespaces.setSubscriptionExpirationTime(namespace, -1));
        act("remove expiration", () -> namespaces.removeSubscriptionExpirationTime(namespace));
        show("expiration", () -> namespaces.getSubscriptionExpirationTime(namespace));
        show("rate", () -> namespaces.getReplicatorDispatchRate(namespace));
        act("set rate", () -> namespaces.setReplicatorDispatchRate(namespace, rate(5)));
        show("rate", () -> namespaces.getReplicatorDispatchRate(namespace));
        show("rates in policies", () -> namespaces.getPolicies(namespace).replicatorDispatchRate);
        String topic = "persistent://" + namespace + "/policies";
        admin.topics().createPartitionedTopic(topic, 2);
        show("applied rate of topic", () -> admin.topicPolicies().getReplicatorDispatchRate(topic, true));
        act("remove rate", () -> namespaces.removeReplicatorDispatchRate(namespace));
        show("rate", () -> namespaces.getReplicatorDispatchRate(namespace));
        show("rate of topic", () -> admin.topicPolicies().getReplicatorDispatchRate(topic));
        act("set rate of topic", () -> admin.topicPolicies().setReplicatorDispatchRate(topic, rate(6)));
        show("rate of topic", () -> admin.topicPolicies().getReplicatorDispatchRate(topic));
        act("remove rate of topic", () -> admin.topicPolicies().removeReplicatorDispatchRate(topic));
        show("rate of topic", () -> admin.topicPolicies().getReplicatorDispatchRate(topic));
        show("expiration of topic", () -> admin.topicPolicies().getSubscriptionExpirationTime(topic));
        act("set expiration of topic", () -> admin.topicPolicies().setSubscriptionExpirationTime(topic, 3));
        act("remove expiration of topic", () -> admin.topicPolicies().removeSubscriptionExpirationTime(topic));
        show("rate of nothing", () -> admin.topicPolicies().getReplicatorDispatchRate(topic + "-none"));
    }

    static void neverSet(PulsarAdmin admin, String namespace) throws Exception {
        Namespaces namespaces = admin.namespaces();
        show("persistence", () -> namespaces.getPersistence(namespace));
        act("set persistence", () -> namespaces.setPersistence(namespace, new PersistencePolicies(1, 1, 1, 10.0)));
        show("persistence", () -> namespaces.getPersistence(namespace));
        act("remove persistence", () -> namespaces.removePersistence(namespace));
        show("persistence", () -> namespaces.getPersistence(namespace));
        show("offload threshold", () -> namespaces.getOffloadThreshold(namespace));
        show("offload seconds", () -> namespaces.getOffloadThresholdInSeconds(namespace));
        show("offload lag", () -> namespaces.getOffloadDeleteLagMs(namespace));
        show("offload policies", () -> namespaces.getOffloadPolicies(namespace));
        act("clear offload lag", () -> namespaces.clearOffloadDeleteLag(namespace));
        act("remove offload policies", () -> namespaces.removeOffloadPolicies(namespace));
        show("anti-affinity group", () -> namespaces.getNamespaceAntiAffinityGroup(namespace));
        act("remove bookie affinity", () -> namespaces.deleteBookieAffinityGroup(namespace));
        show("bookie affinity", () -> namespaces.getBookieAffinityGroup(namespace));
        show("resource group", () -> namespaces.getNamespaceResourceGroup(namespace));
        act("remove resource group", () -> namespaces.removeNamespaceResourceGroup(namespace));
        show("entry filters", () -> namespaces.getNamespaceEntryFilters(namespace));
        String topic = "persistent://" + namespace + "/policies";
        show("persistence of topic", () -> admin.topicPolicies().getPersistence(topic));
        act("remove persistence of topic", () -> admin.topicPolicies().removePersistence(topic));
        show("offload policies of topic", () -> admin.topicPolicies().getOffloadPolicies(topic));
        act("remove offload policies of topic", () -> admin.topicPolicies().removeOffloadPolicies(topic));
        show("entry filters of topic", () -> admin.topicPolicies().getEntryFiltersPerTopic(topic, false));
        show("shadow topics", () -> admin.topics().getShadowTopics(topic));
    }

    static void backlogs(PulsarAdmin admin, PulsarClient client, String topic) throws Exception {
        Topics topics = admin.topics();
        List<MessageId> ids = new ArrayList<>();
        try (Producer<byte[]> producer = client.newProducer().topic(topic).producerName("p").enableBatching(false).create();
                Consumer<byte[]> consumer = client.newConsumer().topic(topic).subscriptionName("s")
                        .subscriptionType(SubscriptionType.Shared).subscribe()) {
            for (int number = 0; number < 6; number++) {
                ids.add(producer.send(new byte[100]));
            }
            Message<byte[]> first = consumer.receive();
            consumer.receive();
            Message<byte[]> third = consumer.receive();
            consumer.acknowledge(first);
            consumer.acknowledge(third);
        }
        long all = topics.getBacklogSizeByMessageId(topic, MessageId.earliest);
        List<Long> sixths = new ArrayList<>();
        for (MessageId id : ids) {
            sixths.add(topics.getBacklogSizeByMessageId(topic, id) * 6 / all);
        }
        System.out.println("sixths of everything behind each message: " + sixths);
        show("behind latest", () -> topics.getBacklogSizeByMessageId(topic, MessageId.latest) == all);
        show("behind nothing", () -> topics.getBacklogSizeByMessageId(topic + "-none", MessageId.earliest));
        MessageIdImpl second = (MessageIdImpl) ids.get(1);
        show("analysis", () -> counted(topics.analyzeSubscriptionBacklog(topic, "s", Optional.empty()), second));
        show("analysis of a part", () -> counted(topics.analyzeSubscriptionBacklog(topic, "s", Optional.of(ids.get(3))), second));
        show("analysis with a limit", () -> counted(topics.analyzeSubscriptionBacklog(topic, "s", Optional.empty(), 2), second));
        show("analysis of no subscription", () -> topics.analyzeSubscriptionBacklog(topic, "none", Optional.empty()));
        admin.topics().createPartitionedTopic(topic + "-parted", 2);
        admin.topics().createSubscription(topic + "-parted", "s", MessageId.earliest);
        show("analysis of all partitions", () -> topics.analyzeSubscriptionBacklog(topic + "-parted", "s", Optional.empty()));
        show("analysis of a partition", () -> counted(
                topics.analyzeSubscriptionBacklog(topic + "-parted-partition-0", "s", Optional.empty()), second));
        show("size of all partitions", () -> topics.getBacklogSizeByMessageId(topic + "-parted", MessageId.earliest));
        show("replicated status", () -> topics.getReplicatedSubscriptionStatus(topic, "s").values());
    }

    static String counted(AnalyzeSubscriptionBacklogResult found, MessageIdImpl second) {
        String places = found.getFirstMessageId() == null ? "nowhere" : place(found.getFirstMessageId(), second) + ".."
                + place(found.getLastMessageId(), second);
        return found.getEntries() + " " + found.getMessages() + " " + found.getMarkerMessages() + " "
                + found.getFilterAcceptedEntries() + " " + found.getFilterRejectedEntries() + " " + found.isAborted() + " "
                + places;
    }

    /** Ledgers have other numbers elsewhere. */
    static String place(String position, MessageIdImpl known) {
        return position.replace(known.getLedgerId() + ":", "L:");
    }

    static void brokers(PulsarAdmin admin, String cluster, String namespace) throws Exception {
        String broker = admin.brokers().getActiveBrokers(cluster).get(0);
        String bundle = namespace + "/" + admin.lookups().getBundleRange("persistent://" + namespace + "/backlog");
        show("owned bundle", () -> admin.brokers().getOwnedNamespaces(cluster, broker).get(bundle));
        show("bundles of no broker", () -> admin.brokers().getOwnedNamespaces(cluster, "nowhere:1"));
        show("leader", () -> admin.brokers().getLeaderBroker().getBrokerId().equals(broker));
        show("version", () -> admin.brokers().getVersion().startsWith("5.0.0"));
        act("check of backlog quotas", () -> admin.brokers().backlogQuotaCheck());
    }

    /** The status, and whether it came at once. */
    static void refused(String name, Action action) {
        long begun = System.nanoTime();
        act(name, action);
        System.out.println(name + " at once: " + (System.nanoTime() - begun < 5_000_000_000L));
    }

    static void refusals(PulsarAdmin admin, String namespace) throws Exception {
        PersistencePolicies persistence = new PersistencePolicies(2, 2, 1, 0.0);  // more than one copy
        Namespaces namespaces = admin.namespaces();
        refused("persistence", () -> namespaces.setPersistence(namespace, persistence));
        refused("offload threshold", () -> namespaces.setOffloadThreshold(namespace, 5));
        refused("offload seconds", () -> namespaces.setOffloadThresholdInSeconds(namespace, 5));
        refused("offload lag", () -> namespaces.setOffloadDeleteLag(namespace, 5, java.util.concurrent.TimeUnit.SECONDS));
        refused("anti-affinity group", () -> namespaces.setNamespaceAntiAffinityGroup(namespace, "g"));
        refused("bookie affinity", () -> namespaces.setBookieAffinityGroup(namespace,
                BookieAffinityGroupData.builder().bookkeeperAffinityGroupPrimary("g").build()));
        String topic = "persistent://" + namespace + "/t";
        admin.topics().createNonPartitionedTopic(topic);
        refused("persistence of topic", () -> admin.topicPolicies().setPersistence(topic, persistence));
    }
}
