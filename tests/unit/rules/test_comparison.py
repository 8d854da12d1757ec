"""What two clusters differ in: one row for each kind, and a law that lets Spark leave out what is equal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.adjustments import Difference, Severity
from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import NO_PERMISSIONS
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import AutoTopicCreation, BacklogQuota, RetentionPolicies
from interpulse.replication.change_forms import advice_of, request_of
from interpulse.rules.comparison import namespace_differences, topic_differences
from interpulse.rules.inventory import NamespaceState

T = TopicName.parse("a/b/t")
SYSTEM = TopicName.parse("a/b/__change_events")
P, N = ListedKind.PARTITIONED, ListedKind.NON_PARTITIONED
ORPHAN, M = ListedKind.ORPHAN_PARTITION, ListedKind.METADATA_ONLY
TOPIC_PATH = "/admin/v2/persistent/a/b/t"


def row(kind: ListedKind = P, partitions: int = 0, indexes: Any = None, topic: TopicName = T, **more: Any) -> TopicRow:
    return TopicRow(topic, kind, partitions, indexes, **more)


TOPICS = {
    "equal": (row(P, 4), row(P, 4), []),
    "equal, plain": (row(N), row(N), []),
    "missing": (row(P, 4), None, [("TOPIC_MISSING", f"PUT {TOPIC_PATH}/partitions?createLocalTopicOnly=true 4")]),
    "missing, plain": (row(N), None, [("TOPIC_MISSING", f"PUT {TOPIC_PATH} {{}}")]),
    "missing, system": (row(P, 1, topic=SYSTEM), None, [("TOPIC_MISSING", None)]),
    "fewer partitions": (
        row(P, 4),
        row(P, 2),
        [("TOPIC_PARTITIONS", f"POST {TOPIC_PATH}/partitions?updateLocalTopicOnly=true 4")],
    ),
    "more partitions": (row(P, 2), row(P, 4), [("PARTITIONS_CANNOT_SHRINK", None)]),
    "another type": (row(N), row(P, 4), [("TOPIC_TYPE_MISMATCH", None)]),
    "only there": (None, row(P, 4), [("REMOTE_ONLY_TOPIC", None)]),
    "only there, system": (None, row(P, 1, topic=SYSTEM), []),
    "orphans here": (row(ORPHAN, 0, (0, 1)), None, [("ORPHAN_PARTITION", None)]),
    "orphans beyond the count": (row(P, 1, (0, 1)), row(P, 1), [("ORPHAN_PARTITION", None)]),
    "orphans there": (
        row(P, 2),
        row(ORPHAN, 0, (0,)),
        [
            ("ORPHAN_PARTITION", None),
            ("TOPIC_MISSING", f"PUT {TOPIC_PATH}/partitions?createLocalTopicOnly=true 2"),
        ],
    ),
    "a partition lacks there": (row(P, 3), row(P, 3, (0, 2)), [("MISSING_PARTITION", None)]),
    "metadata alone": (row(M, 2, ()), row(P, 2), [("METADATA_ONLY", None)]),
    "both kinds here": (row(P, 1, (-1, 0)), row(P, 1), [("TOPIC_TYPE_MISMATCH", None)]),
    "schema missing": (row(N, schema_hash="x"), row(N), [("SCHEMA_MISSING", None)]),
    "schema different": (row(N, schema_hash="x"), row(N, schema_hash="y"), [("SCHEMA_DIFFERENT", None)]),
    "schema only there": (row(N), row(N, schema_hash="y"), []),
    "subscription missing": (
        row(N, subscriptions=("a", "b")),
        row(N, subscriptions=("b", "c")),
        [("SUBSCRIPTION_MISSING", None)],
    ),
    "subscriptions not asked for": (row(N, subscriptions=("a",)), row(N), []),
    "subscriptions of brokers and jobs": (
        row(N, subscriptions=("__compaction", "interpulse.p")),
        row(N, subscriptions=()),
        [],
    ),
    "not readable": (row(N, error="refused"), None, []),
}


@pytest.mark.parametrize(("source", "target", "expected"), TOPICS.values(), ids=TOPICS)
def test_topic_when_compared_then_has_these_differences(source: Any, target: Any, expected: Any) -> None:
    found = topic_differences(source, target)
    assert [(str(each.kind), _request(each)) for each in found] == expected
    assert all(advice_of(each, "west") and each.namespace == T.namespace_name for each in found)


def _request(difference: Difference) -> str | None:
    if difference.change is None:
        return None
    made = request_of(difference.change, local_only=True)
    return f"{made.method} {made.path} {made.body}"


@given(st.sampled_from([P, N]), st.integers(1, 9), st.none() | st.just("x"), st.none() | st.just(("a", "b")))
def test_topic_when_healthy_and_equal_then_no_rule_finds_anything(
    kind: Any, partitions: int, schema: Any, subscriptions: Any
) -> None:
    """The comparison leaves such rows to the join of Spark."""
    one = row(kind, partitions if kind is P else 0, schema_hash=schema, subscriptions=subscriptions)
    assert topic_differences(one, one) == []


NAMESPACE = NamespaceName.parse("a/b")
SETTINGS = {"allowAutoTopicCreation": "true", "allowAutoTopicCreationType": "non-partitioned"}


def state(settings: dict[str, str] | None = None, **policies: Any) -> NamespaceState:
    stored = NamespacePolicies(**policies)
    return NamespaceState(stored, SETTINGS | (settings or {}))


QUOTA = BacklogQuota.from_json({"limitSize": 1024, "policy": "producer_request_hold"})
PATH = "/admin/v2/namespaces/a/b"
NAMESPACES = {
    "equal": (state(), state(), []),
    "missing": (state(), None, [("NAMESPACE_MISSING", f"PUT {PATH} {{'replication_clusters': ['west']}}")]),
    "only there": (None, state(), []),
    "deduplication": (
        state(deduplication_enabled=True),
        state(),
        [("DEDUPLICATION", f"POST {PATH}/deduplication True")],
    ),
    "deduplication only there": (
        state(),
        state(deduplication_enabled=True),
        [("DEDUPLICATION", f"DELETE {PATH}/deduplication None")],
    ),
    "retention": (
        state(retention=RetentionPolicies(5, 6)),
        state(retention=RetentionPolicies(5, 7)),
        [("RETENTION", f"POST {PATH}/retention {RetentionPolicies(5, 6).to_json()}")],
    ),
    "message ttl": (state(message_ttl_seconds=3), state(), [("MESSAGE_TTL", f"POST {PATH}/messageTTL 3")]),
    "backlog quota": (
        state(backlog_quotas={"destination_storage": QUOTA}),
        state(),
        [
            (
                "BACKLOG_QUOTA",
                f"POST {PATH}/backlogQuota?backlogQuotaType=destination_storage {QUOTA.to_json()}",
            )
        ],
    ),
    "permission": (state(granted=NO_PERMISSIONS.grant("app", ["produce"])), state(), [("PERMISSION", None)]),
    "clusters": (state(replication_clusters=("east", "west")), state(), [("REPLICATION_CLUSTERS", None)]),
    "auto creation of the broker": (
        state(),
        state({"allowAutoTopicCreation": "false"}),
        [
            (
                "AUTO_TOPIC_CREATION",
                f"POST {PATH}/autoTopicCreation {AutoTopicCreation(True, 'non-partitioned').to_json()}",
            )
        ],
    ),
    "schema strategy": (
        state(schema_compatibility_strategy="BACKWARD"),
        state(),
        [("SCHEMA_COMPATIBILITY_STRATEGY", f"PUT {PATH}/schemaCompatibilityStrategy BACKWARD")],
    ),
}


@pytest.mark.parametrize(("source", "target", "expected"), NAMESPACES.values(), ids=NAMESPACES)
def test_namespace_when_compared_then_has_these_differences(source: Any, target: Any, expected: Any) -> None:
    found = namespace_differences("west", NAMESPACE, source, target)
    assert [(str(each.kind), _request(each)) for each in found] == expected


def test_clusters_of_a_namespace_when_unequal_then_are_only_told() -> None:
    (found,) = namespace_differences("west", NAMESPACE, state(replication_clusters=("east", "west")), state())
    assert found.severity is Severity.INFO


ORIGINS = {
    "set here": (state(message_ttl_seconds=3), state(), "message_ttl_in_seconds", "namespace", "broker"),
    "set there": (state(), state(deduplication_enabled=False), "deduplicationEnabled", "broker", "namespace"),
    "in force by the brokers": (
        state(),
        state({"schemaCompatibilityStrategy": "NONE"}),
        "schema_compatibility_strategy",
        "broker",
        "broker",
    ),
    "quota of one kind": (
        state(backlog_quotas={"message_age": QUOTA}),
        state(),
        "backlog_quota_map.message_age",
        "namespace",
        "broker",
    ),
    "no policy": (state(replication_clusters=("east", "west")), state(), "replication_clusters", None, None),
}


@pytest.mark.parametrize(("source", "target", "field", "here", "there"), ORIGINS.values(), ids=ORIGINS)
def test_policy_when_different_then_says_what_it_is_called_and_where_each_side_has_it_from(
    source: Any, target: Any, field: str, here: str | None, there: str | None
) -> None:
    (found,) = namespace_differences("west", NAMESPACE, source, target)
    assert (found.field, found.source_origin, found.target_origin) == (field, here, there)


def test_topic_when_different_then_says_in_what() -> None:
    (fewer,) = topic_differences(row(P, 4), row(P, 2))
    (missing,) = topic_differences(row(P, 4), None)
    assert (fewer.field, missing.field) == ("partitions", None)
