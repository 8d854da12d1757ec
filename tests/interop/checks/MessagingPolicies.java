import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.TopicPolicies;
import org.apache.pulsar.client.admin.Topics;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.common.policies.data.AutoSubscriptionCreationOverride;
import org.apache.pulsar.common.policies.data.BacklogQuota;
import org.apache.pulsar.common.policies.data.BacklogQuota.BacklogQuotaType;
import org.apache.pulsar.common.policies.data.BacklogQuota.RetentionPolicy;
import org.apache.pulsar.common.policies.data.DelayedDeliveryPolicies;
import org.apache.pulsar.common.policies.data.DispatchRate;
import org.apache.pulsar.common.policies.data.Policies;
import org.apache.pulsar.common.policies.data.PublishRate;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.SchemaCompatibilityStrategy;
import org.apache.pulsar.common.policies.data.SubscribeRate;
import org.apache.pulsar.common.policies.data.TenantInfo;

/** What the Java admin client gets about policies: one line per question. Arguments: web URL, cluster, unique word. */
public class MessagingPolicies extends Questions {
    /** What is set, what comes back, and what is left when it is taken away. */
    static void tour(String name, Question get, Action set, Action remove) {
        show(name + " before", get);
        show(name + " set", () -> {
            set.run();
            return "done";
        });
        show(name + " after", get);
        show(name + " removed", () -> {
            remove.run();
            return "done";
        });
        show(name + " left", get);
    }

    static DispatchRate dispatch(int messages) {
        return DispatchRate.builder().dispatchThrottlingRateInMsg(messages).dispatchThrottlingRateInByte(7)
                .relativeToPublishRate(true).ratePeriodInSecond(2).build();
    }

    static BacklogQuota quota(long size, int seconds) {
        return BacklogQuota.builder().limitSize(size).limitTime(seconds)
                .retentionPolicy(RetentionPolicy.consumer_backlog_eviction).build();
    }

    static DelayedDeliveryPolicies delayed() {
        return DelayedDeliveryPolicies.builder().active(true).tickTime(2000).maxDeliveryDelayInMillis(9000).build();
    }

    static Set<String> types(Set<SubscriptionType> types) {
        Set<String> names = new TreeSet<>();
        if (types != null) {
            types.forEach(type -> names.add(type.name()));
        }
        return names;
    }

    static Map<String, String> quotas(Map<BacklogQuotaType, BacklogQuota> quotas) {
        Map<String, String> shown = new TreeMap<>();
        quotas.forEach((type, quota) -> shown.put(type.name(), quota.toString()));
        return shown;
    }

    static void ofNamespace(Namespaces admin, String ns) {
        tour("publish rate", () -> admin.getPublishRate(ns), () -> admin.setPublishRate(ns, new PublishRate(5, 6L)),
                () -> admin.removePublishRate(ns));
        tour("dispatch rate", () -> admin.getDispatchRate(ns), () -> admin.setDispatchRate(ns, dispatch(5)),
                () -> admin.removeDispatchRate(ns));
        tour("subscription dispatch rate", () -> admin.getSubscriptionDispatchRate(ns),
                () -> admin.setSubscriptionDispatchRate(ns, dispatch(6)),
                () -> admin.removeSubscriptionDispatchRate(ns));
        tour("subscribe rate", () -> admin.getSubscribeRate(ns),
                () -> admin.setSubscribeRate(ns, new SubscribeRate(3, 10)), () -> admin.removeSubscribeRate(ns));
        tour("max producers", () -> admin.getMaxProducersPerTopic(ns), () -> admin.setMaxProducersPerTopic(ns, 3),
                () -> admin.removeMaxProducersPerTopic(ns));
        tour("max consumers", () -> admin.getMaxConsumersPerTopic(ns), () -> admin.setMaxConsumersPerTopic(ns, 3),
                () -> admin.removeMaxConsumersPerTopic(ns));
        tour("max consumers per subscription", () -> admin.getMaxConsumersPerSubscription(ns),
                () -> admin.setMaxConsumersPerSubscription(ns, 3), () -> admin.removeMaxConsumersPerSubscription(ns));
        tour("max subscriptions", () -> admin.getMaxSubscriptionsPerTopic(ns),
                () -> admin.setMaxSubscriptionsPerTopic(ns, 3), () -> admin.removeMaxSubscriptionsPerTopic(ns));
        tour("max unacked per consumer", () -> admin.getMaxUnackedMessagesPerConsumer(ns),
                () -> admin.setMaxUnackedMessagesPerConsumer(ns, 3),
                () -> admin.removeMaxUnackedMessagesPerConsumer(ns));
        tour("max unacked per subscription", () -> admin.getMaxUnackedMessagesPerSubscription(ns),
                () -> admin.setMaxUnackedMessagesPerSubscription(ns, 3),
                () -> admin.removeMaxUnackedMessagesPerSubscription(ns));
        tour("delayed delivery", () -> admin.getDelayedDelivery(ns),
                () -> admin.setDelayedDeliveryMessages(ns, delayed()),
                () -> admin.removeDelayedDeliveryMessages(ns));
        tour("compaction threshold", () -> admin.getCompactionThreshold(ns),
                () -> admin.setCompactionThreshold(ns, 3_000_000_000L), () -> admin.removeCompactionThreshold(ns));
        tour("snapshot interval", () -> admin.getDeduplicationSnapshotInterval(ns),
                () -> admin.setDeduplicationSnapshotInterval(ns, 7),
                () -> admin.removeDeduplicationSnapshotInterval(ns));
        tour("subscription types", () -> types(admin.getSubscriptionTypesEnabled(ns)),
                () -> admin.setSubscriptionTypesEnabled(ns, Set.of(SubscriptionType.Shared)),
                () -> admin.removeSubscriptionTypesEnabled(ns));
        tour("encryption", () -> admin.getEncryptionRequiredStatus(ns),
                () -> admin.setEncryptionRequiredStatus(ns, true), () -> admin.setEncryptionRequiredStatus(ns, false));
        tour("size quota", () -> quotas(admin.getBacklogQuotaMap(ns)).get("destination_storage"),
                () -> admin.setBacklogQuota(ns, quota(1000, -1), BacklogQuotaType.destination_storage),
                () -> admin.removeBacklogQuota(ns, BacklogQuotaType.destination_storage));
        tour("age quota", () -> quotas(admin.getBacklogQuotaMap(ns)).get("message_age"),
                () -> admin.setBacklogQuota(ns, quota(-1, 60), BacklogQuotaType.message_age),
                () -> admin.removeBacklogQuota(ns, BacklogQuotaType.message_age));
        show("negative", () -> {
            admin.setMaxProducersPerTopic(ns, -1);
            return "done";
        });
    }

    static void ofTopic(TopicPolicies admin, Topics topics, String topic) {
        tour("publish rate", () -> admin.getPublishRate(topic),
                () -> admin.setPublishRate(topic, new PublishRate(5, 6L)), () -> admin.removePublishRate(topic));
        tour("dispatch rate", () -> admin.getDispatchRate(topic, true),
                () -> admin.setDispatchRate(topic, dispatch(5)), () -> admin.removeDispatchRate(topic));
        tour("subscription dispatch rate", () -> admin.getSubscriptionDispatchRate(topic),
                () -> admin.setSubscriptionDispatchRate(topic, dispatch(6)),
                () -> admin.removeSubscriptionDispatchRate(topic));
        tour("subscribe rate", () -> admin.getSubscribeRate(topic, true),
                () -> admin.setSubscribeRate(topic, new SubscribeRate(3, 10)),
                () -> admin.removeSubscribeRate(topic));
        tour("max producers", () -> admin.getMaxProducers(topic), () -> admin.setMaxProducers(topic, 3),
                () -> admin.removeMaxProducers(topic));
        tour("max producers in force", () -> admin.getMaxProducers(topic, true),
                () -> admin.setMaxProducers(topic, 3), () -> admin.removeMaxProducers(topic));
        tour("max consumers", () -> admin.getMaxConsumers(topic), () -> admin.setMaxConsumers(topic, 3),
                () -> admin.removeMaxConsumers(topic));
        tour("max consumers per subscription", () -> admin.getMaxConsumersPerSubscription(topic),
                () -> admin.setMaxConsumersPerSubscription(topic, 3),
                () -> admin.removeMaxConsumersPerSubscription(topic));
        tour("max subscriptions", () -> admin.getMaxSubscriptionsPerTopic(topic),
                () -> admin.setMaxSubscriptionsPerTopic(topic, 3), () -> admin.removeMaxSubscriptionsPerTopic(topic));
        tour("max unacked on consumer", () -> admin.getMaxUnackedMessagesOnConsumer(topic, true),
                () -> admin.setMaxUnackedMessagesOnConsumer(topic, 3),
                () -> admin.removeMaxUnackedMessagesOnConsumer(topic));
        tour("max unacked on subscription", () -> admin.getMaxUnackedMessagesOnSubscription(topic, true),
                () -> admin.setMaxUnackedMessagesOnSubscription(topic, 3),
                () -> admin.removeMaxUnackedMessagesOnSubscription(topic));
        tour("max message size", () -> admin.getMaxMessageSize(topic), () -> admin.setMaxMessageSize(topic, 1000),
                () -> admin.removeMaxMessageSize(topic));
        tour("retention", () -> admin.getRetention(topic),
                () -> admin.setRetention(topic, new RetentionPolicies(10, 20)), () -> admin.removeRetention(topic));
        tour("message ttl", () -> admin.getMessageTTL(topic), () -> admin.setMessageTTL(topic, 60),
                () -> admin.removeMessageTTL(topic));
        tour("message ttl in force", () -> admin.getMessageTTL(topic, true), () -> admin.setMessageTTL(topic, 60),
                () -> admin.removeMessageTTL(topic));
        tour("delayed delivery", () -> admin.getDelayedDeliveryPolicy(topic, true),
                () -> admin.setDelayedDeliveryPolicy(topic, delayed()),
                () -> admin.removeDelayedDeliveryPolicy(topic));
        tour("deduplication", () -> admin.getDeduplicationStatus(topic),
                () -> admin.setDeduplicationStatus(topic, true), () -> admin.removeDeduplicationStatus(topic));
        tour("snapshot interval", () -> admin.getDeduplicationSnapshotInterval(topic),
                () -> admin.setDeduplicationSnapshotInterval(topic, 7),
                () -> admin.removeDeduplicationSnapshotInterval(topic));
        tour("compaction threshold", () -> admin.getCompactionThreshold(topic, true),
                () -> admin.setCompactionThreshold(topic, 3_000_000_000L),
                () -> admin.removeCompactionThreshold(topic));
        tour("subscription types", () -> types(admin.getSubscriptionTypesEnabled(topic)),
                () -> admin.setSubscriptionTypesEnabled(topic, Set.of(SubscriptionType.Shared)),
                () -> admin.removeSubscriptionTypesEnabled(topic));
        tour("auto subscription", () -> admin.getAutoSubscriptionCreation(topic, true),
                () -> admin.setAutoSubscriptionCreation(topic,
                        AutoSubscriptionCreationOverride.builder().allowAutoSubscriptionCreation(false).build()),
                () -> admin.removeAutoSubscriptionCreation(topic));
        tour("strategy", () -> admin.getSchemaCompatibilityStrategy(topic, false),
                () -> admin.setSchemaCompatibilityStrategy(topic, SchemaCompatibilityStrategy.BACKWARD),
                () -> admin.removeSchemaCompatibilityStrategy(topic));
        tour("validation", () -> topics.getSchemaValidationEnforced(topic, true),
                () -> topics.setSchemaValidationEnforced(topic, true),
                () -> topics.setSchemaValidationEnforced(topic, false));
        tour("size quota", () -> quotas(admin.getBacklogQuotaMap(topic)),
                () -> admin.setBacklogQuota(topic, quota(1000, -1), BacklogQuotaType.destination_storage),
                () -> admin.removeBacklogQuota(topic, BacklogQuotaType.destination_storage));
        tour("age quota in force", () -> quotas(admin.getBacklogQuotaMap(topic, true)).get("message_age"),
                () -> admin.setBacklogQuota(topic, quota(-1, 60), BacklogQuotaType.message_age),
                () -> admin.removeBacklogQuota(topic, BacklogQuotaType.message_age));
        show("negative", () -> {
            admin.setMaxProducers(topic, -1);
            return "done";
        });
        show("of a partition", () -> admin.getMaxProducers(topic + "-partition-0"));
        show("of nothing", () -> admin.getMaxProducers(topic + "x"));
    }

    /** The document as the client reads it, of what is set. */
    static String document(Policies policies) {
        return String.join(" ", String.valueOf(policies.max_producers_per_topic),
                String.valueOf(policies.publishMaxMessageRate), String.valueOf(policies.topicDispatchRate),
                String.valueOf(policies.subscription_types_enabled), String.valueOf(policies.encryption_required),
                quotas(policies.backlog_quota_map).get("destination_storage"), String.valueOf(policies.delayed_delivery_policies));
    }

    public static void main(String[] arguments) throws Exception {
        String cluster = arguments[1];
        String tenant = "policies-" + arguments[2];
        String namespace = tenant + "/n";
        String topic = "persistent://" + namespace + "/t";
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(arguments[0]).build()) {
            admin.tenants().createTenant(tenant, TenantInfo.builder().allowedClusters(Set.of(cluster)).build());
            admin.namespaces().createNamespace(namespace);
            admin.topics().createPartitionedTopic(topic, 2);
            ofNamespace(admin.namespaces(), namespace);
            ofTopic(admin.topicPolicies(), admin.topics(), topic);
            admin.namespaces().setMaxProducersPerTopic(namespace, 5);
            admin.namespaces().setPublishRate(namespace, new PublishRate(5, 6L));
            admin.namespaces().setDispatchRate(namespace, dispatch(5));
            admin.namespaces().setSubscriptionTypesEnabled(namespace, Set.of(SubscriptionType.Shared));
            admin.namespaces().setEncryptionRequiredStatus(namespace, true);
            admin.namespaces().setBacklogQuota(namespace, quota(1000, -1), BacklogQuotaType.destination_storage);
            admin.namespaces().setDelayedDeliveryMessages(namespace, delayed());
            show("document", () -> document(admin.namespaces().getPolicies(namespace)));
            show("in force", () -> admin.topicPolicies().getDispatchRate(topic, true));
            admin.topicPolicies().setMaxProducers(topic, 3);
            admin.topicPolicies().deleteTopicPolicies(topic);
            show("all taken away", () -> admin.topicPolicies().getMaxProducers(topic));
        }
    }
}
