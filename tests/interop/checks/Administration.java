import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.common.policies.data.BundlesData;
import org.apache.pulsar.common.policies.data.ClusterData;
import org.apache.pulsar.common.policies.data.FailureDomain;
import org.apache.pulsar.common.policies.data.Policies;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.TenantInfo;

/**
 * Clusters, tenants, namespaces and the clusters of single topics through the Java admin client: one line per question.
 * Arguments: web URL, cluster, unique word.
 */
public class Administration extends Questions {
    public static void main(String[] arguments) throws Exception {
        String cluster = arguments[1];
        String remote = "remote-" + arguments[2];
        String tenant = "java-" + arguments[2];
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(arguments[0]).build()) {
            clusters(admin, cluster, remote);
            tenants(admin, cluster, remote, tenant);
            namespaces(admin, cluster, tenant);
            schemaSwitch(admin, tenant + "/switch");
            topics(admin, cluster, remote, tenant + "/topics");
        }
    }

    private static void clusters(PulsarAdmin admin, String cluster, String remote) {
        ClusterData data = ClusterData.builder().serviceUrl("http://127.0.0.1:1").brokerClientKeyFilePath("/k.pem")
                .brokerClientTlsKeyStore("/k.jks").build();
        for (String name : List.of(remote, remote + "-b")) {
            act("create cluster", () -> admin.clusters().createCluster(name, data));
        }
        show("files of keys", () -> admin.clusters().getCluster(remote).getBrokerClientKeyFilePath()
                + admin.clusters().getCluster(remote).getBrokerClientTlsKeyStore());
        show("unset peers", () -> admin.clusters().getPeerClusterNames(remote));
        act("set peers", () -> admin.clusters().updatePeerClusterNames(remote,
                new LinkedHashSet<>(List.of(remote + "-b"))));
        show("peers", () -> admin.clusters().getPeerClusterNames(remote).size());
        act("peer of itself", () -> admin.clusters().updatePeerClusterNames(remote,
                new LinkedHashSet<>(List.of(remote))));
        act("no peers", () -> admin.clusters().updatePeerClusterNames(remote, new LinkedHashSet<>()));
        show("peers", () -> admin.clusters().getPeerClusterNames(remote));
        show("failure domains", () -> admin.clusters().getFailureDomains(remote));
        act("create failure domain", () -> admin.clusters().createFailureDomain(remote, "d",
                FailureDomain.builder().brokers(Set.of("a:8080")).build()));
        act("same broker in another", () -> admin.clusters().createFailureDomain(remote, "e",
                FailureDomain.builder().brokers(Set.of("a:8080")).build()));
        act("update failure domain", () -> admin.clusters().updateFailureDomain(remote, "d",
                FailureDomain.builder().brokers(Set.of("b:8080")).build()));
        show("failure domain", () -> admin.clusters().getFailureDomain(remote, "d").getBrokers());
        show("failure domains", () -> new TreeMap<>(admin.clusters().getFailureDomains(remote)).keySet());
        act("delete failure domain", () -> admin.clusters().deleteFailureDomain(remote, "d"));
        show("deleted failure domain", () -> admin.clusters().getFailureDomain(remote, "d"));
        show("clusters", () -> admin.clusters().getClusters().containsAll(List.of(cluster, remote)));
        act("delete cluster", () -> admin.clusters().deleteCluster(remote + "-b"));
    }

    private static void tenants(PulsarAdmin admin, String cluster, String remote, String tenant) {
        act("tenant without clusters", () -> admin.tenants().createTenant(tenant,
                TenantInfo.builder().allowedClusters(Set.of()).build()));
        act("create tenant", () -> admin.tenants().createTenant(tenant,
                TenantInfo.builder().adminRoles(Set.of("a")).allowedClusters(Set.of(cluster, remote)).build()));
        act("role with blank", () -> admin.tenants().updateTenant(tenant,
                TenantInfo.builder().adminRoles(Set.of("a ")).allowedClusters(Set.of(cluster, remote)).build()));
        show("roles", () -> admin.tenants().getTenantInfo(tenant).getAdminRoles());
    }

    private static void namespaces(PulsarAdmin admin, String cluster, String tenant) {
        String ns = tenant + "/full";
        Policies policies = new Policies();
        policies.bundles = BundlesData.builder().numBundles(2).build();
        policies.retention_policies = new RetentionPolicies(10, 5);
        policies.message_ttl_in_seconds = 7;
        act("create with policies", () -> admin.namespaces().createNamespace(ns, policies));
        show("retention", () -> admin.namespaces().getRetention(ns));
        show("ttl", () -> admin.namespaces().getNamespaceMessageTTL(ns));
        show("clusters", () -> admin.namespaces().getNamespaceReplicationClusters(ns).equals(List.of(cluster)));
        show("bundles", () -> admin.namespaces().getBundles(ns).getBoundaries());
        act("create by bundles", () -> admin.namespaces().createNamespace(tenant + "/few",
                BundlesData.builder().numBundles(3).build()));
        show("bundles", () -> admin.namespaces().getBundles(tenant + "/few").getNumBundles());
        act("split", () -> admin.namespaces().splitNamespaceBundle(ns, "0x00000000_0x80000000", true, null));
        act("split again", () -> admin.namespaces().splitNamespaceBundle(ns, "0x00000000_0x80000000", true, null));
        act("split by nonsense", () -> admin.namespaces().splitNamespaceBundle(ns, "0x00000000_0x40000000", true,
                "nonsense"));
        show("bundles", () -> admin.namespaces().getBundles(ns).getBoundaries());
        subscriptions(admin, ns);
        act("delete", () -> admin.namespaces().deleteNamespace(tenant + "/few"));
    }

    private static void subscriptions(PulsarAdmin admin, String ns) {
        String topic = "persistent://" + ns + "/t";
        act("create topic", () -> admin.topics().createPartitionedTopic(topic, 2));
        show("loaded", () -> isLoaded(admin, topic + "-partition-0") && isLoaded(admin, topic + "-partition-1"));
        act("subscribe", () -> admin.topics().createSubscription(topic, "a/b", MessageId.earliest));
        act("clear all", () -> admin.namespaces().clearNamespaceBacklog(ns));
        act("clear one", () -> admin.namespaces().clearNamespaceBacklogForSubscription(ns, "a/b"));
        act("clear of bundle", () -> admin.namespaces().clearNamespaceBundleBacklog(ns, "0x80000000_0xffffffff"));
        act("clear of no bundle", () -> admin.namespaces().clearNamespaceBundleBacklog(ns, "0x80000000_0x90000000"));
        act("unsubscribe bundle", () -> admin.namespaces().unsubscribeNamespaceBundle(ns, "0x40000000_0x80000000",
                "a/b"));
        act("unsubscribe", () -> admin.namespaces().unsubscribeNamespace(ns, "a/b"));
        show("subscriptions", () -> admin.topics().getSubscriptions(topic));
    }

    /** For some moments after a split a real broker fails to load topics: it drops their policies while reading them. */
    private static boolean isLoaded(PulsarAdmin admin, String topic) throws Exception {
        for (int attempt = 1; attempt < 50; attempt++) {
            try {
                admin.topics().getLastMessageId(topic);
                return true;
            } catch (PulsarAdminException.ServerSideErrorException error) {
                Thread.sleep(200);
            }
        }
        return false;
    }

    private static void schemaSwitch(PulsarAdmin admin, String ns) {
        act("create", () -> admin.namespaces().createNamespace(ns));
        act("forbid", () -> admin.namespaces().setIsAllowAutoUpdateSchema(ns, false, null));
        showSwitch(admin, ns);
        act("forbid replicators too", () -> admin.namespaces().setIsAllowAutoUpdateSchema(ns, false, false));
        showSwitch(admin, ns);
        act("say nothing of them", () -> admin.namespaces().setIsAllowAutoUpdateSchema(ns, false, null));
        showSwitch(admin, ns);
        act("meaningless", () -> admin.namespaces().setIsAllowAutoUpdateSchema(ns, true, false));
        showSwitch(admin, ns);
        act("allow", () -> admin.namespaces().setIsAllowAutoUpdateSchema(ns, true, true));
        showSwitch(admin, ns);
    }

    private static void showSwitch(PulsarAdmin admin, String ns) {
        show("switch", () -> admin.namespaces().getIsAllowAutoUpdateSchema(ns) + " "
                + admin.namespaces().getPolicies(ns).is_allow_auto_update_schema_with_replicator);
    }

    private static void topics(PulsarAdmin admin, String cluster, String remote, String ns) {
        String topic = "persistent://" + ns + "/t";
        act("create", () -> admin.namespaces().createNamespace(ns));
        act("create topic", () -> admin.topics().createNonPartitionedTopic(topic));
        show("unset clusters", () -> admin.topics().getReplicationClusters(topic, false));
        show("clusters in force", () -> admin.topics().getReplicationClusters(topic, true).equals(Set.of(cluster)));
        act("set clusters", () -> admin.topics().setReplicationClusters(topic, List.of(cluster, remote)));
        show("clusters", () -> new TreeSet<>(admin.topics().getReplicationClusters(topic, false)).size());
        act("without the local one", () -> admin.topics().setReplicationClusters(topic, List.of(remote)));
        act("unknown one", () -> admin.topics().setReplicationClusters(topic, List.of(cluster, "nowhere")));
        act("remove clusters", () -> admin.topics().removeReplicationClusters(topic));
        show("unset clusters", () -> admin.topics().getReplicationClusters(topic, false));
        act("of a partition", () -> admin.topics().setReplicationClusters(topic + "-partition-0", List.of(cluster)));
        act("by topic policies", () -> admin.topicPolicies().setReplicationClusters(topic, List.of(cluster)));
        show("unset deduplication", () -> admin.topics().getDeduplicationStatus(topic));
        act("deduplicate", () -> admin.topics().setDeduplicationStatus(topic, true));
        show("deduplication", () -> admin.topics().getDeduplicationStatus(topic));
        act("remove deduplication", () -> admin.topics().removeDeduplicationStatus(topic));
        show("deduplication in force", () -> admin.topics().getDeduplicationStatus(topic, true));
    }
}
