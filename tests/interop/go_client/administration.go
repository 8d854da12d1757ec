package main

import (
	"maps"
	"slices"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/rest"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

func init() {
	register("admin_tenants_and_namespaces", tenantsAndNamespaces)
	register("admin_topics", adminTopics)
	register("admin_subscriptions", adminSubscriptions)
	register("admin_namespace_policies", namespacePolicies)
	register("admin_brokers_and_clusters", brokersAndClusters)
	register("admin_namespace_resources", namespaceResources)
	register("admin_topic_resources", topicResources)
	register("admin_owned_bundles", ownedBundles)
	registerFor("not offered", "admin_not_offered", notOffered)
}

func status(err error) int {
	if refused, ok := err.(rest.Error); ok {
		return refused.Code
	}
	return 0
}

func tenantsAndNamespaces(r *bench) {
	clusters, err := r.admin.Clusters().List()
	check(err)
	tenant := utils.TenantData{Name: "go-tenant", AllowedClusters: clusters, AdminRoles: []string{"someone"}}
	check(r.admin.Tenants().Create(tenant))
	equal("tenant twice", status(r.admin.Tenants().Create(tenant)), 409)
	stored, err := r.admin.Tenants().Get("go-tenant")
	check(err)
	require(slices.Equal(stored.AdminRoles, []string{"someone"}), "admin roles %v", stored.AdminRoles)
	check(r.admin.Namespaces().CreateNamespace("go-tenant/ns"))
	equal("namespace twice", status(r.admin.Namespaces().CreateNamespace("go-tenant/ns")), 409)
	names, err := r.admin.Namespaces().GetNamespaces("go-tenant")
	check(err)
	require(slices.Equal(names, []string{"go-tenant/ns"}), "namespaces %v", names)
	policies, err := r.admin.Namespaces().GetPolicies("go-tenant/ns")
	check(err)
	equal("bundles", policies.Bundles.NumBundles, 4)
	equal("tenant that is not empty", status(r.admin.Tenants().Delete("go-tenant")), 409)
	check(r.admin.Namespaces().DeleteNamespace("go-tenant/ns"))
	check(r.admin.Tenants().Delete("go-tenant"))
	_, err = r.admin.Tenants().Get("go-tenant")
	equal("tenant that is gone", status(err), 404)
}

func adminTopics(r *bench) {
	plain, parted := r.topicName(r.topic("plain")), r.topicName(r.topic("parted"))
	check(r.admin.Topics().Create(plain, 0))
	check(r.admin.Topics().CreateWithProperties(parted, 3, map[string]string{"owner": "me"}))
	equal("plain topic twice", status(r.admin.Topics().Create(plain, 0)), 409)
	equal("partitioned topic twice", status(r.admin.Topics().Create(parted, 3)), 409)
	metadata, err := r.admin.Topics().GetMetadata(parted)
	check(err)
	equal("partitions", metadata.Partitions, 3)
	properties, err := r.admin.Topics().GetProperties(parted)
	check(err)
	equal("property", properties["owner"], "me")
	namespace, err := utils.GetNamespaceName("public/default")
	check(err)
	partitioned, plainTopics, err := r.admin.Topics().List(*namespace)
	check(err)
	require(slices.Contains(partitioned, parted.String()), "partitioned topics %v", partitioned)
	require(slices.Contains(plainTopics, plain.String()), "topics %v", plainTopics)
	found, err := r.admin.Topics().Lookup(plain)
	check(err)
	require(found.BrokerURL != "", "lookup %v", found)
	equal("fewer partitions", status(r.admin.Topics().Update(parted, 2)), 422)
	check(r.admin.Topics().Update(parted, 4))
	stats, err := r.admin.Topics().GetPartitionedStats(parted, true)
	check(err)
	equal("partitions in the statistics", len(stats.Partitions), 4)
	internal, err := r.admin.Topics().GetInternalStats(plain)
	check(err)
	equal("entries", internal.NumberOfEntries, 0)
	check(r.admin.Topics().Delete(parted, false, false))
	check(r.admin.Topics().Delete(plain, false, true))
	_, err = r.admin.Topics().GetStats(plain)
	equal("statistics of a topic that is gone", status(err), 404)
}

func adminSubscriptions(r *bench) {
	topic := r.topicName(r.topic("t"))
	producer := r.producer(pulsar.ProducerOptions{Topic: topic.String(), DisableBatching: true})
	ids := sendNumbers(producer, 10, nil)
	check(r.admin.Subscriptions().Create(topic, "s", utils.Earliest))
	equal("subscription twice", status(r.admin.Subscriptions().Create(topic, "s", utils.Earliest)), 409)
	messages, err := r.admin.Subscriptions().PeekMessages(topic, "s", 3)
	check(err)
	require(len(messages) == 3 && string(messages[2].GetPayload()) == "2", "peeked %v", messages)
	check(r.admin.Subscriptions().SkipMessages(topic, "s", 4))
	backlog := func() int64 {
		stats, err := r.admin.Topics().GetStats(topic)
		check(err)
		return stats.Subscriptions["s"].MsgBacklog
	}
	equal("backlog", backlog(), 6)
	check(r.admin.Subscriptions().ResetCursorToMessageID(topic, "s", utils.MessageID{
		LedgerID: ids[2].LedgerID(), EntryID: ids[2].EntryID(), PartitionIndex: -1,
	}))
	equal("backlog after the reset", backlog(), 8)
	check(r.admin.Subscriptions().ClearBacklog(topic, "s"))
	equal("backlog after clearing", backlog(), 0)
	check(r.admin.Subscriptions().Delete(topic, "s"))
	equal("subscription that is gone", status(r.admin.Subscriptions().Delete(topic, "s")), 404)
	last, err := r.admin.Topics().GetLastMessageID(topic)
	check(err)
	equal("last entry", last.EntryID, ids[9].EntryID())
}

func namespacePolicies(r *bench) {
	const name = "public/go-policies"
	check(r.admin.Namespaces().CreateNamespace(name))
	namespaces := r.admin.Namespaces()
	check(namespaces.SetNamespaceMessageTTL(name, 60))
	ttl, err := namespaces.GetNamespaceMessageTTL(name)
	check(err)
	equal("time to live", ttl, 60)
	check(namespaces.SetRetention(name, utils.NewRetentionPolicies(10, 20)))
	retention, err := namespaces.GetRetention(name)
	check(err)
	equal("retention", *retention, utils.NewRetentionPolicies(10, 20))
	check(namespaces.SetBacklogQuota(name, utils.NewBacklogQuota(1000, 0, utils.ProducerException), utils.DestinationStorage))
	quotas, err := namespaces.GetBacklogQuotaMap(name)
	check(err)
	equal("backlog quota", quotas[utils.DestinationStorage].Policy, utils.ProducerException)
	parsed, err := utils.GetNamespaceName(name)
	check(err)
	check(namespaces.SetMaxProducersPerTopic(*parsed, 3))
	producers, err := namespaces.GetMaxProducersPerTopic(*parsed)
	check(err)
	equal("producers per topic", producers, 3)
	check(namespaces.SetPublishRate(*parsed, utils.PublishRate{PublishThrottlingRateInMsg: 10, PublishThrottlingRateInByte: -1}))
	rate, err := namespaces.GetPublishRate(*parsed)
	check(err)
	equal("publish rate", rate.PublishThrottlingRateInMsg, 10)
	check(namespaces.SetDeduplicationStatus(name, true))
	check(namespaces.DeleteNamespace(name))
}

func brokersAndClusters(r *bench) {
	clusters, err := r.admin.Clusters().List()
	check(err)
	values, err := r.admin.Brokers().GetRuntimeConfigurations()
	check(err)
	own := values["clusterName"]
	require(slices.Contains(clusters, own), "clusters %v without %s", clusters, own)
	data, err := r.admin.Clusters().Get(own)
	check(err)
	require(data.BrokerServiceURL != "" || data.ServiceURL != "", "cluster %v", data)
	brokers, err := r.admin.Brokers().GetActiveBrokers(own)
	check(err)
	equal("brokers", len(brokers), 1)
	check(r.admin.Brokers().HealthCheck())
}

func namespaceResources(r *bench) {
	const name = "public/go-resources"
	check(r.admin.Namespaces().CreateNamespace(name))
	namespaces := r.admin.Namespaces()
	parsed, err := utils.GetNamespaceName(name)
	check(err)
	properties := func() map[string]string {
		found, err := namespaces.GetProperties(*parsed)
		check(err)
		return found
	}
	equal("properties", len(properties()), 0)
	check(namespaces.UpdateProperties(*parsed, map[string]string{"a": "b"}))
	check(namespaces.UpdateProperties(*parsed, map[string]string{"c": "d"}))
	require(maps.Equal(properties(), map[string]string{"a": "b", "c": "d"}), "properties %v", properties())
	check(namespaces.RemoveProperties(*parsed))
	equal("properties", len(properties()), 0)

	expiration := func() int {
		minutes, err := namespaces.GetSubscriptionExpirationTime(*parsed)
		check(err)
		return minutes
	}
	equal("expiration that is not set", expiration(), -1)
	check(namespaces.SetSubscriptionExpirationTime(*parsed, 60))
	equal("expiration", expiration(), 60)
	check(namespaces.RemoveSubscriptionExpirationTime(*parsed))
	equal("expiration that was removed", expiration(), -1)

	rate := utils.DispatchRate{DispatchThrottlingRateInMsg: 10, DispatchThrottlingRateInByte: -1, RatePeriodInSecond: 2}
	check(namespaces.SetReplicatorDispatchRate(*parsed, rate))
	found, err := namespaces.GetReplicatorDispatchRate(*parsed)
	check(err)
	equal("replicator rate", found, rate)

	threshold, err := namespaces.GetOffloadThreshold(*parsed)
	check(err)
	equal("offload threshold", threshold, -1)
	seconds, err := namespaces.GetOffloadThresholdInSeconds(*parsed)
	check(err)
	equal("offload threshold in seconds", seconds, -1)
	_, err = namespaces.GetOffloadDeleteLag(*parsed)
	check(err)
	persistence, err := namespaces.GetPersistence(name)
	check(err)
	require(persistence == nil || *persistence == utils.PersistencePolicies{}, "persistence %v", persistence)
	check(namespaces.RemovePersistence(name))
	check(namespaces.ClearOffloadDeleteLag(*parsed))
	check(namespaces.DeleteBookieAffinityGroup(name))
	_, err = namespaces.GetBookieAffinityGroup(name)
	check(err)
	_, err = namespaces.GetNamespaceAntiAffinityGroup(name)
	check(err)
	check(namespaces.DeleteNamespace(name))
}

func topicResources(r *bench) {
	topic := r.topicName(r.topic("t"))
	check(r.admin.Topics().Create(topic, 0))
	rate := utils.DispatchRateData{
		DispatchThrottlingRateInMsg: 10, DispatchThrottlingRateInByte: -1, RatePeriodInSecond: 2,
	}
	check(r.admin.Topics().SetReplicatorDispatchRate(topic, rate))
	found, err := r.admin.Topics().GetReplicatorDispatchRate(topic)
	check(err)
	equal("replicator rate", *found, rate)
	check(r.admin.Topics().RemoveReplicatorDispatchRate(topic))
	_, err = r.admin.Topics().GetPersistence(topic)
	check(err)
	check(r.admin.Topics().RemovePersistence(topic))
	_, err = r.admin.Topics().GetOffloadPolicies(topic)
	check(err)
	check(r.admin.Topics().RemoveOffloadPolicies(topic))
	status, err := r.admin.Topics().OffloadStatus(topic)
	check(err)
	equal("offloading", status.Status, utils.NOTRUN)
}

func ownedBundles(r *bench) {
	topic := r.topicName(r.topic("t"))
	r.producer(pulsar.ProducerOptions{Topic: topic.String()})
	bundle, err := r.admin.Topics().GetBundleRange(topic)
	check(err)
	leader, err := r.admin.Brokers().GetLeaderBroker()
	check(err)
	values, err := r.admin.Brokers().GetRuntimeConfigurations()
	check(err)
	owned, err := r.admin.Brokers().GetOwnedNamespaces(values["clusterName"], leader.BrokerID)
	check(err)
	status, found := owned["public/default/"+bundle]
	require(found, "%s is not among %v", bundle, owned)
	require(status.IsActive, "%s is not active", bundle)
}

// notOffered sets what our broker does not offer: a refusal comes at once, this client does not try again.
func notOffered(r *bench) {
	const name = "public/default"
	parsed, err := utils.GetNamespaceName(name)
	check(err)
	topic := r.topicName(r.topic("t"))
	check(r.admin.Topics().Create(topic, 0))
	namespaces := r.admin.Namespaces()
	check(namespaces.SetPersistence(name, utils.NewPersistencePolicies(1, 1, 1, 10)))
	check(namespaces.RemovePersistence(name))
	for what, set := range map[string]func() error{
		"more than one copy": func() error { return namespaces.SetPersistence(name, utils.NewPersistencePolicies(2, 2, 1, 0)) },
		"offload threshold": func() error { return namespaces.SetOffloadThreshold(*parsed, 5) },
		"offload seconds":   func() error { return namespaces.SetOffloadThresholdInSeconds(*parsed, 5) },
		"offload lag":       func() error { return namespaces.SetOffloadDeleteLag(*parsed, 5) },
		"anti-affinity":     func() error { return namespaces.SetNamespaceAntiAffinityGroup(name, "g") },
		"bookie affinity": func() error {
			return namespaces.SetBookieAffinityGroup(name, utils.BookieAffinityGroupData{BookkeeperAffinityGroupPrimary: "g"})
		},
		"more than one copy of a topic": func() error {
			return r.admin.Topics().SetPersistence(topic, utils.PersistenceData{
				BookkeeperEnsemble: 2, BookkeeperWriteQuorum: 2, BookkeeperAckQuorum: 2,
			})
		},
		"offload policies of a topic": func() error {
			return r.admin.Topics().SetOffloadPolicies(topic, utils.OffloadPolicies{})
		},
	} {
		begun := time.Now()
		equal(what, status(set()), 501)
		require(time.Since(begun) < 30*time.Second, "%s was refused after %v", what, time.Since(begun))
	}
}
