"""Names in paths of the admin API, and the operations on policies."""

from __future__ import annotations

import pytest

from interpulse.model import operations
from interpulse.model.errors import InvalidRequest, InvalidTopicName
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.operations import (
    Access,
    AdminRequest,
    Clusters,
    Encoded,
    Namespaces,
    Operation,
    Schemas,
    Subscriptions,
    Topics,
    policy_operations,
)
from interpulse.model.policies.catalogue import NAMESPACE_CALLS, TOPIC_CALLS

TABLES = [table for table in vars(operations).values() if isinstance(table, type) and table is not Operation]
OPERATIONS = [entry for table in TABLES for entry in vars(table).values() if isinstance(entry, Operation)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (Topics.GET_STATS.path_of("a/b/c d%"), "/admin/v2/persistent/a/b/c+d%25/stats"),
        (Topics.DELETE.path_of(TopicName.parse("non-persistent://a/b/c")), "/admin/v2/non-persistent/a/b/c"),
        (Topics.LIST.path_of("persistent", NamespaceName.parse("a/b")), "/admin/v2/persistent/a/b"),
        (Schemas.GET_VERSION.path_of("a/b/c-partition-1", 3), "/admin/v2/schemas/a/b/c/schema/3"),
        (
            Subscriptions.SKIP.path_of("a/b/c", "s /%", 5),
            "/admin/v2/persistent/a/b/c/subscription/s%2B%252F%2525/skip/5",
        ),
        (Clusters.GET_DOMAIN.path_of("a/b", "d e"), "/admin/v2/clusters/a%2Fb/failureDomains/d%20e"),
        (Namespaces.CLEAR_ONE.path_of("a/b", Encoded("s+%25")), "/admin/v2/namespaces/a/b/clearBacklog/s+%25"),
    ],
)
def test_names_are_encoded_in_a_path(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    ("operation", "words"),
    [(Clusters.GET, "cluster"), (Clusters.GET_DOMAIN, "failure domain"), (Subscriptions.DELETE, "subscription")],
)
def test_empty_name_is_refused(operation: Operation, words: str) -> None:
    names = [] if operation is Clusters.GET else ["a/b/c"]
    with pytest.raises(InvalidRequest, match=f"The name of a {words} must not be empty"):
        operation.path_of(*names, "")


def test_text_that_names_no_topic_is_refused() -> None:
    with pytest.raises(InvalidTopicName):
        Topics.UNLOAD.path_of("a/b")


def test_request_has_its_query_body_and_subject() -> None:
    request = Topics.EXPAND.request("a/b/c", body=4, force=True, note="x y")
    path = "/admin/v2/persistent/a/b/c/partitions?force=true&note=x+y"
    assert request == AdminRequest("POST", path, 4, "topic")
    assert request.to_json() == {"method": "POST", "path": path, "body": 4}


def test_operations_are_described_once() -> None:
    assert len(OPERATIONS) > 100
    assert len({(operation.method, operation.path) for operation in OPERATIONS}) == len(OPERATIONS)


def test_policy_without_delete_is_removed_by_its_setter() -> None:
    snapshots = policy_operations(NAMESPACE_CALLS["deduplication_snapshot_seconds"])
    assert snapshots.remove is snapshots.set
    assert policy_operations(TOPIC_CALLS["retention"]).remove.method == "DELETE"


def test_delayed_delivery_of_namespaces_needs_a_super_user() -> None:
    of_namespaces, of_topics = (
        policy_operations(calls["delayed_delivery"]) for calls in (NAMESPACE_CALLS, TOPIC_CALLS)
    )
    permissions = [operation.permission for operation in (*of_namespaces, *of_topics)]
    assert permissions == [Access.POLICY, Access.SUPER_USER, Access.SUPER_USER, *[Access.POLICY] * 3]
