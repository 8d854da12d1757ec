"""Requests about namespaces and their policies."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import AutoTopicCreation, InactiveTopicPolicies, RetentionPolicies
from tests.support.stub_web import StubWeb

NAMESPACE = NamespaceName("t", "ns")
ROOT = "/admin/v2/namespaces/t/ns"

Call = Callable[[AdminClient], Awaitable[Any]]


@pytest.mark.parametrize(
    ("call", "method", "target", "body"),
    [
        (lambda a: a.namespaces.create(NAMESPACE), "PUT", ROOT, None),
        (
            lambda a: a.namespaces.create("t/ns", clusters=["x"], bundles=3),
            "PUT",
            ROOT,
            {"replication_clusters": ["x"], "bundles": {"numBundles": 3}},
        ),
        (lambda a: a.namespaces.delete(NAMESPACE, force=True), "DELETE", f"{ROOT}?force=true", None),
        (lambda a: a.namespaces.unload(NAMESPACE), "PUT", f"{ROOT}/unload", None),
        (lambda a: a.namespaces.update_properties("t/ns", {"a": "b"}), "PUT", f"{ROOT}/properties", {"a": "b"}),
        (lambda a: a.namespaces.clear_properties("t/ns"), "DELETE", f"{ROOT}/properties", None),
        (lambda a: a.namespaces.set_property("t/ns", "a b", "c/d"), "PUT", f"{ROOT}/property/a%20b/c%2Fd", None),
        (lambda a: a.namespaces.remove_property("t/ns", "a"), "DELETE", f"{ROOT}/property/a", None),
        (
            lambda a: a.namespaces.unload(NAMESPACE, bundle="0x00_0xff", destination_broker="b:1"),
            "PUT",
            f"{ROOT}/0x00_0xff/unload?destinationBroker=b%3A1",
            None,
        ),
        (
            lambda a: a.namespaces.set_replication_clusters(NAMESPACE, ("x", "y")),
            "POST",
            f"{ROOT}/replication",
            ["x", "y"],
        ),
        (
            lambda a: a.namespaces.set_replication_clusters(NAMESPACE, ["x"], partitions_compared=True),
            "POST",
            f"{ROOT}/replication?compareTopicPartitions=true",
            ["x"],
        ),
        (lambda a: a.namespaces.set_allowed_clusters(NAMESPACE, ["x"]), "POST", f"{ROOT}/allowedClusters", ["x"]),
        (
            lambda a: a.namespaces.set_auto_topic_creation(NAMESPACE, AutoTopicCreation(True, "partitioned", 2)),
            "POST",
            f"{ROOT}/autoTopicCreation",
            {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2},
        ),
        (lambda a: a.namespaces.remove_auto_topic_creation(NAMESPACE), "DELETE", f"{ROOT}/autoTopicCreation", None),
        (
            lambda a: a.namespaces.set_auto_subscription_creation(NAMESPACE, False),
            "POST",
            f"{ROOT}/autoSubscriptionCreation",
            {"allowAutoSubscriptionCreation": False},
        ),
        (
            lambda a: a.namespaces.remove_auto_subscription_creation(NAMESPACE),
            "DELETE",
            f"{ROOT}/autoSubscriptionCreation",
            None,
        ),
        (lambda a: a.namespaces.set_deduplication(NAMESPACE, True), "POST", f"{ROOT}/deduplication", True),
        (lambda a: a.namespaces.remove_deduplication(NAMESPACE), "DELETE", f"{ROOT}/deduplication", None),
        (
            lambda a: a.namespaces.set_retention(NAMESPACE, RetentionPolicies(-1, 10)),
            "POST",
            f"{ROOT}/retention",
            {"retentionTimeInMinutes": -1, "retentionSizeInMB": 10},
        ),
        (lambda a: a.namespaces.remove_retention(NAMESPACE), "DELETE", f"{ROOT}/retention", None),
        (lambda a: a.namespaces.set_message_ttl(NAMESPACE, 0), "POST", f"{ROOT}/messageTTL", 0),
        (lambda a: a.namespaces.remove_message_ttl(NAMESPACE), "DELETE", f"{ROOT}/messageTTL", None),
        (
            lambda a: a.namespaces.set_inactive_topic_policies(NAMESPACE, InactiveTopicPolicies("m", 5, False)),
            "POST",
            f"{ROOT}/inactiveTopicPolicies",
            {"inactiveTopicDeleteMode": "m", "maxInactiveDurationSeconds": 5, "deleteWhileInactive": False},
        ),
        (
            lambda a: a.namespaces.remove_inactive_topic_policies(NAMESPACE),
            "DELETE",
            f"{ROOT}/inactiveTopicPolicies",
            None,
        ),
        (lambda a: a.namespaces.set_max_topics(NAMESPACE, 7), "POST", f"{ROOT}/maxTopicsPerNamespace", 7),
        (lambda a: a.namespaces.remove_max_topics(NAMESPACE), "DELETE", f"{ROOT}/maxTopicsPerNamespace", None),
        (
            lambda a: a.namespaces.set_auto_update_schema_allowed(NAMESPACE, False),
            "POST",
            f"{ROOT}/isAllowAutoUpdateSchema",
            False,
        ),
        (
            lambda a: a.namespaces.set_auto_update_schema_allowed(NAMESPACE, False, with_replicator=True),
            "POST",
            f"{ROOT}/isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=true",
            False,
        ),
        (
            lambda a: a.namespaces.set_schema_compatibility_strategy(NAMESPACE, "FULL"),
            "PUT",
            f"{ROOT}/schemaCompatibilityStrategy",
            "FULL",
        ),
        (
            lambda a: a.namespaces.set_schema_validation_enforced(NAMESPACE, True),
            "POST",
            f"{ROOT}/schemaValidationEnforced",
            True,
        ),
    ],
)
async def test_change_when_asked_for_then_request_is_as_pulsars(
    web: StubWeb, admin: AdminClient, call: Call, method: str, target: str, body: Any
) -> None:
    assert await call(admin) is None
    assert (web.last.method, web.last.target, web.last.body) == (method, target, body)


@pytest.mark.parametrize(
    ("name", "path", "answer", "value"),
    [
        ("replication_clusters", "replication", ["x"], ["x"]),
        ("allowed_clusters", "allowedClusters", [], []),
        ("replication_status", "replication/status", [{"topic": "x"}], [{"topic": "x"}]),
        ("auto_topic_creation", "autoTopicCreation", {"allowAutoTopicCreation": False}, AutoTopicCreation(False)),
        ("auto_topic_creation", "autoTopicCreation", None, None),
        ("auto_subscription_creation", "autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False}, False),
        ("auto_subscription_creation", "autoSubscriptionCreation", None, None),
        ("deduplication", "deduplication", False, False),
        ("deduplication", "deduplication", None, None),
        ("retention", "retention", {"retentionTimeInMinutes": 1, "retentionSizeInMB": -1}, RetentionPolicies(1, -1)),
        ("retention", "retention", None, None),
        ("message_ttl", "messageTTL", 0, 0),
        ("message_ttl", "messageTTL", None, None),
        ("max_topics", "maxTopicsPerNamespace", 3, 3),
        ("max_topics", "maxTopicsPerNamespace", None, None),
        ("auto_update_schema_allowed", "isAllowAutoUpdateSchema", False, False),
        ("schema_compatibility_strategy", "schemaCompatibilityStrategy", "UNDEFINED", "UNDEFINED"),
        ("schema_validation_enforced", "schemaValidationEnforced", True, True),
    ],
)
@pytest.mark.parametrize("empty_status", [200, 204])
async def test_policy_when_read_then_unset_is_none(
    web: StubWeb, admin: AdminClient, name: str, path: str, answer: Any, value: Any, empty_status: int
) -> None:
    """Unset policies are 200 with no body in Pulsar 5.0.0-M1 and 204 in other versions."""
    web.answer("GET", f"{ROOT}/{path}", answer, status=empty_status if answer is None else 200)
    assert await getattr(admin.namespaces, name)(NAMESPACE) == value


async def test_auto_topic_creation_when_applied_is_wanted_then_asks_for_it(web: StubWeb, admin: AdminClient) -> None:
    await admin.namespaces.auto_topic_creation(NAMESPACE)
    await admin.namespaces.auto_topic_creation(NAMESPACE, applied=True)
    assert [asked.target for asked in web.asked] == [
        f"{ROOT}/autoTopicCreation",
        f"{ROOT}/autoTopicCreation?applied=true",
    ]


async def test_policies_when_read_then_unknown_fields_are_kept(web: StubWeb, admin: AdminClient) -> None:
    body = {"replication_clusters": ["x"], "deleted": False, "properties": {"a": "b"}, "fromTheFuture": {}}
    web.answer("GET", ROOT, body)
    assert await admin.namespaces.policies_json(NAMESPACE) == body
    policies = await admin.namespaces.policies(NAMESPACE)
    assert (policies.replication_clusters, policies.properties) == (("x",), {"a": "b"})
    assert policies.other == {"fromTheFuture": {}}


async def test_lists_when_asked_then_come_as_complete_names(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", "/admin/v2/namespaces/t", ["t/ns"])
    web.answer("GET", f"{ROOT}/topics", ["persistent://t/ns/x"])
    assert await admin.namespaces.list("t") == ["t/ns"]
    assert await admin.namespaces.topics(NAMESPACE, mode="PERSISTENT") == ["persistent://t/ns/x"]
    assert web.last.target == f"{ROOT}/topics?mode=PERSISTENT&includeSystemTopic=false"


async def test_namespace_when_created_with_policies_then_all_are_sent(web: StubWeb, admin: AdminClient) -> None:
    policies = NamespacePolicies(message_ttl_seconds=7, allow_auto_update_schema=False)
    await admin.namespaces.create(NAMESPACE, clusters=["x"], bundles=3, policies=policies)
    assert web.last.body == policies.to_json() | {"replication_clusters": ["x"], "bundles": {"numBundles": 3}}
