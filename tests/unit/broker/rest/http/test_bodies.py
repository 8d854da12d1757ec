"""The table of bodies: what official clients write fits, whole; what this broker does not do is refused by name."""

import json
from typing import Any

import pytest

from interpulse.broker.rest.http import bodies
from interpulse.broker.rest.http.fields import Body, checked_fields
from interpulse.model.errors import InvalidRequest

# As the Java admin client 5.0.0-M1 sends them; the policies are those of Policies() and of the Go client's default.
JAVA_POLICIES = json.loads(
    '{"auth_policies":{"namespace_auth":{},"destination_auth":{},"subscription_auth_roles":{}},'
    '"replication_clusters":[],"allowed_clusters":[],"bundles":{"numBundles":4},"backlog_quota_map":{},'
    '"clusterDispatchRate":{},"topicDispatchRate":{},"subscriptionDispatchRate":{},"replicatorDispatchRate":{},'
    '"clusterSubscribeRate":{},"publishMaxMessageRate":{},"latency_stats_sample_rate":{},"deleted":false,'
    '"encryption_required":false,"subscription_auth_mode":"None","offload_threshold":-1,'
    '"offload_threshold_in_seconds":-1,"schema_compatibility_strategy":"UNDEFINED",'
    '"is_allow_auto_update_schema_with_replicator":true,"schema_validation_enforced":false,'
    '"subscription_types_enabled":[],"properties":{},"migrated":false}'
)
GO_POLICIES = json.loads(
    '{"bundles":null,"persistence":null,"retention_policies":null,"schema_validation_enforced":false,'
    '"deduplicationEnabled":null,"deleted":false,"encryption_required":false,"message_ttl_in_seconds":null,'
    '"max_producers_per_topic":null,"max_consumers_per_topic":null,"max_consumers_per_subscription":null,'
    '"compaction_threshold":null,"offload_threshold":-1,"offload_deletion_lag_ms":null,"antiAffinityGroup":"",'
    '"replication_clusters":[],"latency_stats_sample_rate":{},"backlog_quota_map":{},"topicDispatchRate":{},'
    '"subscriptionDispatchRate":{},"replicatorDispatchRate":{},"publishMaxMessageRate":{},"clusterSubscribeRate":{},'
    '"autoTopicCreationOverride":null,"schema_auto_update_compatibility_strategy":"Full",'
    '"schema_compatibility_strategy":"UNDEFINED","auth_policies":{"namespace_auth":{},"destination_auth":{},'
    '"subscription_auth_roles":{}},"subscription_auth_mode":"None","is_allow_auto_update_schema":null}'
)
JAVA_CLUSTER = json.loads(
    '{"serviceUrl":"http://127.0.0.1:1","brokerClientTlsEnabled":false,"tlsAllowInsecureConnection":false,'
    '"brokerClientTlsEnabledWithKeyStore":false,"brokerClientTlsTrustStoreType":"JKS",'
    '"brokerClientTlsKeyStoreType":"JKS","brokerClientSslFactoryPlugin":"org.example.Factory"}'
)
JAVA_BATCH_ID = json.loads(
    '{"ledgerId":3,"entryId":4,"partitionIndex":-1,"batchIndex":2,"batchSize":0,"outstandingAcksInSameBatch":0,'
    '"originalBatchSize":0}'
)
JAVA_TOPIC_ID = json.loads(
    '{"ownerTopic":"persistent://t/a/t-partition-1","topicName":"","topicPartitionName":"","innerMessageId":'
    '{"ledgerId":3,"entryId":4,"partitionIndex":1,"batchIndex":-1,"batchSize":0},"batchIndex":-1,"batchSize":0,'
    '"ledgerId":3,"entryId":4,"partitionIndex":1}'
)
JAVA_RESET = {"ledgerId": 3, "entryId": 4, "partitionIndex": -1, "batchIndex": -1, "excluded": True}


@pytest.mark.parametrize(
    ("body", "given"),
    [
        pytest.param(bodies.NAMESPACE_POLICIES, JAVA_POLICIES, id="policies-java"),
        pytest.param(bodies.NAMESPACE_POLICIES, GO_POLICIES, id="policies-go"),
        pytest.param(bodies.CLUSTER, JAVA_CLUSTER, id="cluster-java"),
        pytest.param(bodies.CLUSTER, JAVA_CLUSTER | {"migrated": False, "migratedClusterUrl": None}, id="older"),
        pytest.param(bodies.NEW_SUBSCRIPTION, JAVA_BATCH_ID, id="subscription-batch-id"),
        pytest.param(bodies.NEW_SUBSCRIPTION, JAVA_TOPIC_ID, id="subscription-topic-id"),
        pytest.param(bodies.NEW_SUBSCRIPTION, JAVA_RESET | {"excluded": False}, id="subscription-java"),
        pytest.param(bodies.RESET_POSITION, JAVA_RESET, id="reset-java"),
        pytest.param(
            bodies.PARTITIONED_TOPIC, {"partitions": 3, "deleted": False, "properties": {"a": "b"}}, id="partitioned"
        ),
    ],
)
def test_body_when_an_official_client_wrote_it_then_it_is_taken(body: Body, given: dict[str, Any]) -> None:
    checked = checked_fields(body, given)
    assert {name: given[name] for name in checked} == checked


@pytest.mark.parametrize(
    ("body", "given", "words"),
    [
        (bodies.RESET_POSITION, JAVA_RESET | {"properties": {"a": "b"}}, "properties of a message id has no effect"),
        (bodies.NEW_SUBSCRIPTION, JAVA_RESET, "excluded of a new subscription has no effect"),
        (
            bodies.NAMESPACE_POLICIES,
            {"persistence": {"managedLedgerStorageClassName": "x"}},
            "managedLedgerStorageClassName of a persistence policy has no effect",
        ),
        (bodies.NAMESPACE_POLICIES, {"offload_threshold": 5}, "offload_threshold of the policies"),
        (bodies.NAMESPACE_POLICIES, {"antiAffinityGroup": "a"}, "not by load or affinity"),
    ],
)
def test_body_when_a_field_asks_for_what_is_not_done_then_is_refused_by_name(
    body: Body, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        checked_fields(body, given)
