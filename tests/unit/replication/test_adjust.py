"""Plans of clusters, and their adjustment: the order, where it stops, and when the clusters are stored."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.adjustments import AdjustmentPlan, ChangeStatus, ClusterPlan, Outcome
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import MetadataError, NamespaceNotFound, OperationTimeout
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.model.operations import AdminRequest
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import NON_PARTITIONED, PARTITIONED, AutoTopicCreation
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.replication.adjust import Enabling, adjust, plan_document, preview
from interpulse.replication.change_forms import request_of
from tests.support.namespace_snapshots import NamespaceSnapshot, differences, plan_of
from tests.support.stub_web import StubWeb

DEMO = NamespaceName.parse("demo/a")
TOPIC = TopicName.parse("persistent://demo/a/p")
ROOT = "/admin/v2/namespaces/demo/a"
PARTITIONS = "/admin/v2/persistent/demo/a/p/partitions"
STRATEGY = f"{ROOT}/schemaCompatibilityStrategy"
REMOTES = ("north", "west")


class Local:
    """The standard: one topic of four partitions, schemas that are compatible backward."""

    def __init__(self) -> None:
        self.count = 4
        self.deleted = False

    async def policies(self, namespace: NamespaceName) -> NamespacePolicies:
        if self.deleted:
            raise NamespaceNotFound(str(namespace))
        return NamespacePolicies(schema_compatibility_strategy="BACKWARD", allow_auto_update_schema=True)

    async def settings(self) -> Mapping[str, str]:
        return {}

    async def partitioned(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Mapping[TopicName, int | None]:
        return {TOPIC: None}

    async def stored(self, namespace: NamespaceName, domains: Sequence[Domain]) -> Sequence[TopicName]:
        return []

    async def metadata(self, topic: TopicName) -> PartitionedTopicMetadata:
        return PartitionedTopicMetadata(self.count)


class Stored:
    """Counts how often the replication clusters were stored."""

    def __init__(self, error: Exception | None = None) -> None:
        self.times = 0
        self._error = error

    async def __call__(self) -> None:
        if self._error:
            raise self._error
        self.times += 1


@pytest.fixture
def remotes() -> Iterator[dict[str, StubWeb]]:
    """Two clusters that differ before the changes, and not any more when they are asked again."""
    with ExitStack() as stack:
        webs = {name: stack.enter_context(StubWeb()) for name in REMOTES}
        for name, web in webs.items():
            for strategy, count in (("FULL", 2), ("BACKWARD", 4)):
                web.answer("GET", ROOT, {"replication_clusters": [name], "schema_compatibility_strategy": strategy})
                web.answer("GET", PARTITIONS, {"partitions": count})
            web.answer("GET", "/admin/v2/brokers/configuration/runtime", {})
            web.answer("GET", "/admin/v2/persistent/demo/a/partitioned", [str(TOPIC)])
            web.answer("GET", "/admin/v2/non-persistent/demo/a/partitioned", [])
            web.answer("GET", "/admin/v2/persistent/demo/a", [])
        yield webs


def enabling(remotes: Mapping[str, StubWeb]) -> Enabling:
    added = {name: ClusterData(service_url=web.url) for name, web in remotes.items()}
    return Enabling(DEMO, "east", ("east", *REMOTES), added)


def connect(cluster: str, data: ClusterData) -> AdminClient:
    return AdminClient(data.service_url or "", timeout_ms=60_000)


def changes_asked(web: StubWeb) -> list[str]:
    return [each.target for each in web.asked if each.method != "GET"]


def statuses(plan: AdjustmentPlan) -> list[list[ChangeStatus | None]]:
    return [[change.status for change in cluster.changes] for cluster in plan.clusters]


async def test_preview_changes_and_stores_nothing(remotes: dict[str, StubWeb]) -> None:
    plan = await preview(enabling(remotes), Local(), connect)
    assert (plan.outcome, plan.applied) == (Outcome.NEEDS_ADJUSTMENT, None)
    assert statuses(plan) == [[None, None], [None, None]]
    assert [changes_asked(web) for web in remotes.values()] == [[], []]


async def test_plans_have_the_same_digest_while_they_say_the_same(remotes: dict[str, StubWeb]) -> None:
    before, then, again = [await preview(enabling(remotes), Local(), connect) for _ in range(3)]
    assert then.digest == again.digest != before.digest
    assert len(then.digest) == 64


async def test_policies_are_changed_before_partitions_and_the_end_is_stored(remotes: dict[str, StubWeb]) -> None:
    store = Stored()
    plan = await adjust(enabling(remotes), Local(), connect, store)
    assert (plan.applied, store.times, plan.http_status) == (True, 1, 200)
    assert statuses(plan) == [[ChangeStatus.DONE] * 2] * 2
    for web in remotes.values():
        assert changes_asked(web) == [STRATEGY, f"{PARTITIONS}?updateLocalTopicOnly=true"]


async def test_conflict_with_one_cluster_keeps_the_other_from_being_changed(remotes: dict[str, StubWeb]) -> None:
    store, local = Stored(), Local()
    local.count = 1
    plan = await adjust(enabling(remotes), local, connect, store)
    assert (plan.outcome, plan.applied, plan.http_status, store.times) == (Outcome.CONFLICT, False, 409, 0)
    assert [changes_asked(web) for web in remotes.values()] == [[], []]


async def test_failure_on_one_cluster_leaves_the_next_one_alone(remotes: dict[str, StubWeb]) -> None:
    remotes["north"].answer("PUT", STRATEGY, {"reason": "not now"}, status=503)
    store = Stored()
    plan = await adjust(enabling(remotes), Local(), connect, store)
    assert (plan.applied, plan.http_status, store.times) == (False, 503, 0)
    assert statuses(plan) == [[ChangeStatus.FAILED, ChangeStatus.PENDING], [ChangeStatus.PENDING] * 2]
    assert plan.reason == "Cluster north could not be adjusted: not now"
    assert changes_asked(remotes["west"]) == []


async def test_token_that_expires_meanwhile_is_told_as_such(remotes: dict[str, StubWeb]) -> None:
    remotes["north"].answer("PUT", STRATEGY, {"reason": "token expired"}, status=401)
    plan = await adjust(enabling(remotes), Local(), connect, Stored())
    assert (plan.applied, plan.http_status, plan.reason) == (
        False,
        401,
        "Cluster north could not be adjusted: token expired",
    )


async def test_namespace_that_disappears_meanwhile_stops_the_run(remotes: dict[str, StubWeb]) -> None:
    remotes["north"].answer("PUT", STRATEGY, {"reason": "Namespace does not exist"}, status=404)
    plan = await adjust(enabling(remotes), Local(), connect, Stored())
    assert (plan.applied, plan.http_status) == (False, 404)


async def test_change_that_is_not_answered_in_time_counts_as_failed(remotes: dict[str, StubWeb]) -> None:
    class Slow(AdminClient):
        async def send(self, request: AdminRequest) -> None:
            raise OperationTimeout(f"{request.path} was not answered within 10 ms")

    store = Stored()
    plan = await adjust(enabling(remotes), Local(), lambda cluster, data: Slow(data.service_url or ""), store)
    assert (plan.applied, plan.http_status, store.times) == (False, 500, 0)
    assert statuses(plan)[0] == [ChangeStatus.FAILED, ChangeStatus.PENDING]
    assert plan.reason is not None
    assert "not answered within 10 ms" in plan.reason


async def test_source_that_changes_meanwhile_is_noticed_before_anything_is_stored(remotes: dict[str, StubWeb]) -> None:
    local, store = Local(), Stored()

    class Growing(AdminClient):
        async def close(self) -> None:
            local.count = 5
            await super().close()

    plan = await adjust(enabling(remotes), local, lambda cluster, data: Growing(data.service_url or ""), store)
    assert (plan.applied, plan.http_status, store.times) == (False, 409, 0)
    assert plan.reason is not None
    assert "TOPIC_PARTITIONS of persistent://demo/a/p on north" in plan.reason


async def test_store_that_fails_is_no_success_and_what_was_done_is_told(remotes: dict[str, StubWeb]) -> None:
    plan = await adjust(enabling(remotes), Local(), connect, Stored(MetadataError("disk full")))
    assert (plan.applied, plan.http_status) == (False, 500)
    assert plan.reason is not None
    assert "stored and put in force here: disk full" in plan.reason
    assert statuses(plan) == [[ChangeStatus.DONE] * 2] * 2


async def test_namespace_that_is_deleted_here_meanwhile_is_told_with_what_was_done(
    remotes: dict[str, StubWeb],
) -> None:
    local, store = Local(), Stored()

    class Deleting(AdminClient):
        async def close(self) -> None:
            local.deleted = any(each.method != "GET" for each in remotes["west"].asked)
            await super().close()

    plan = await adjust(enabling(remotes), local, lambda cluster, data: Deleting(data.service_url or ""), store)
    assert (plan.applied, plan.http_status, store.times) == (False, 404, 0)
    assert statuses(plan) == [[ChangeStatus.DONE] * 2] * 2


async def test_nothing_new_in_the_list_is_stored_without_asking_a_cluster() -> None:
    store = Stored()
    plan = await adjust(Enabling(DEMO, "east", ("east",), {}), Local(), connect, store)
    assert (plan.outcome, plan.applied, store.times) == (Outcome.READY, True, 1)


POLICIES = "/admin/v2/namespaces/demo/a"
PLAIN = AutoTopicCreation(True, NON_PARTITIONED, 1)
FOUR = AutoTopicCreation(True, PARTITIONED, 4)
OFF = AutoTopicCreation(False, NON_PARTITIONED)


def topic(name: str) -> TopicName:
    return TopicName.parse(f"persistent://demo/a/{name}")


def snapshot(creation: AutoTopicCreation = PLAIN, **partitions: int) -> NamespaceSnapshot:
    return NamespaceSnapshot(creation, {topic(name): count for name, count in partitions.items()})


def plan(local: NamespaceSnapshot, remote: NamespaceSnapshot | None) -> ClusterPlan:
    return plan_of("west", DEMO, local, remote)


PLAIN_HERE = (
    "Topic type mismatch for topic 'persistent://demo/a/u': local cluster has a non-partitioned topic, "
    "but remote cluster 'west' has a partitioned topic with {} partitions"
)


def document(found: ClusterPlan) -> dict[str, Any]:
    """The cluster's part of the answer to a preview."""
    (cluster,) = plan_document(whole(found))["clusters"]
    return dict(cluster)


def whole(*clusters: ClusterPlan) -> AdjustmentPlan:
    return AdjustmentPlan(DEMO, "east", ("east", "west"), clusters)


@pytest.mark.parametrize(
    ("local", "remote", "change"),
    [
        pytest.param(
            snapshot(FOUR),
            snapshot(PLAIN),
            {
                "kind": "AUTO_TOPIC_CREATION",
                "current": {"allowAutoTopicCreation": True, "topicType": NON_PARTITIONED, "source": "broker"},
                "desired": {"allowAutoTopicCreation": True, "topicType": PARTITIONED, "defaultNumPartitions": 4},
                "request": {
                    "method": "POST",
                    "path": f"{POLICIES}/autoTopicCreation",
                    "body": {"allowAutoTopicCreation": True, "topicType": PARTITIONED, "defaultNumPartitions": 4},
                },
            },
            id="auto-creation",
        ),
        pytest.param(
            snapshot(OFF),
            replace(snapshot(FOUR), auto_creation_source="namespace"),
            {
                "kind": "AUTO_TOPIC_CREATION",
                "current": {
                    "allowAutoTopicCreation": True,
                    "topicType": PARTITIONED,
                    "defaultNumPartitions": 4,
                    "source": "namespace",
                },
                "desired": {"allowAutoTopicCreation": False, "topicType": NON_PARTITIONED},
                "request": {
                    "method": "POST",
                    "path": f"{POLICIES}/autoTopicCreation",
                    "body": {"allowAutoTopicCreation": False, "topicType": NON_PARTITIONED},
                },
            },
            id="auto-creation-switched-off",
        ),
        pytest.param(
            snapshot(t=4),
            snapshot(t=2),
            {
                "kind": "TOPIC_PARTITIONS",
                "topic": "persistent://demo/a/t",
                "current": {"partitions": 2},
                "desired": {"partitions": 4},
                "request": {
                    "method": "POST",
                    "path": "/admin/v2/persistent/demo/a/t/partitions?updateLocalTopicOnly=true",
                    "body": 4,
                },
            },
            id="remote-has-fewer-partitions",
        ),
        pytest.param(
            snapshot(__change_events=3),
            snapshot(__change_events=1),
            {
                "kind": "TOPIC_PARTITIONS",
                "topic": "persistent://demo/a/__change_events",
                "current": {"partitions": 1},
                "desired": {"partitions": 3},
                "request": {
                    "method": "POST",
                    "path": "/admin/v2/persistent/demo/a/__change_events/partitions?updateLocalTopicOnly=true",
                    "body": 3,
                },
            },
            id="change-events-like-any-topic",
        ),
        pytest.param(
            replace(snapshot(), schema_strategy="BACKWARD"),
            snapshot(),
            {
                "kind": "SCHEMA_COMPATIBILITY_STRATEGY",
                "current": "FULL",
                "desired": "BACKWARD",
                "request": {"method": "PUT", "path": f"{POLICIES}/schemaCompatibilityStrategy", "body": "BACKWARD"},
            },
            id="schema-strategy",
        ),
        pytest.param(
            replace(snapshot(), auto_update_schema=False),
            snapshot(),
            {
                "kind": "IS_ALLOW_AUTO_UPDATE_SCHEMA",
                "current": True,
                "desired": False,
                "request": {
                    "method": "POST",
                    "path": f"{POLICIES}/isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=true",
                    "body": False,
                },
            },
            id="schema-updates",
        ),
        pytest.param(
            snapshot(),
            replace(snapshot(), auto_update_schema=False),
            {
                "kind": "IS_ALLOW_AUTO_UPDATE_SCHEMA",
                "current": False,
                "desired": True,
                "request": {
                    "method": "POST",
                    "path": f"{POLICIES}/isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=true",
                    "body": True,
                },
            },
            id="schema-updates-allowed",
        ),
        pytest.param(
            replace(snapshot(), auto_update_schema=False, replicator_may_update_schema=False),
            replace(snapshot(), auto_update_schema=False),
            {
                "kind": "IS_ALLOW_AUTO_UPDATE_SCHEMA",
                "current": {"isAllowAutoUpdateSchema": False, "isAllowAutoUpdateSchemaWithReplicator": True},
                "desired": {"isAllowAutoUpdateSchema": False, "isAllowAutoUpdateSchemaWithReplicator": False},
                "request": {
                    "method": "POST",
                    "path": f"{POLICIES}/isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=false",
                    "body": False,
                },
            },
            id="schema-updates-by-replicators",
        ),
    ],
)
def test_difference_that_can_be_adjusted_is_one_change(
    local: NamespaceSnapshot, remote: NamespaceSnapshot, change: dict[str, Any]
) -> None:
    found = plan(local, remote)
    assert document(found)["changes"] == [change]
    assert not found.conflicts
    assert whole(found).outcome is Outcome.NEEDS_ADJUSTMENT


@pytest.mark.parametrize(
    ("local", "remote", "kind", "reason", "remedy", "sides"),
    [
        pytest.param(
            snapshot(u=2),
            snapshot(u=8),
            "PARTITIONS_CANNOT_SHRINK",
            "Partition count mismatch for topic 'persistent://demo/a/u': local cluster has 2 partitions, "
            "remote cluster 'west' has 8 partitions",
            "expand it here (topics update-partitioned-topic persistent://demo/a/u -p 8), "
            "or delete it on west (topics delete-partitioned-topic persistent://demo/a/u), "
            "with -f if it is in use or replicated",
            (2, 8),
            id="remote-has-more-partitions",
        ),
        pytest.param(
            snapshot(u=2),
            snapshot(u=0),
            "TOPIC_TYPE_MISMATCH",
            "Topic type mismatch for topic 'persistent://demo/a/u': local cluster has a partitioned topic with "
            "2 partitions, but remote cluster 'west' has a non-partitioned topic",
            "delete it here (topics delete-partitioned-topic persistent://demo/a/u), "
            "or delete it on west (topics delete persistent://demo/a/u), with -f if it is in use or replicated",
            (2, 0),
            id="plain-there",
        ),
        pytest.param(
            snapshot(u=0),
            snapshot(u=2),
            "TOPIC_TYPE_MISMATCH",
            PLAIN_HERE.format(2),
            "delete it here (topics delete persistent://demo/a/u), "
            "or delete it on west (topics delete-partitioned-topic persistent://demo/a/u), "
            "with -f if it is in use or replicated",
            (0, 2),
            id="plain-here",
        ),
        pytest.param(
            replace(snapshot(u=0), left_over=frozenset({topic("u")})),
            snapshot(u=2),
            "TOPIC_TYPE_MISMATCH",
            PLAIN_HERE.format(2),
            "keep what is left of its partitions here (topics create-partitioned-topic persistent://demo/a/u -p 2), "
            "or delete it on west (topics delete-partitioned-topic persistent://demo/a/u), "
            "with -f if it is in use or replicated",
            (0, 2),
            id="partitions-without-metadata-here",
        ),
        pytest.param(
            snapshot(u=1),
            snapshot(u=0),
            "TOPIC_TYPE_MISMATCH",
            "Topic type mismatch for topic 'persistent://demo/a/u': local cluster has a partitioned topic with "
            "1 partitions, but remote cluster 'west' has a non-partitioned topic",
            "delete it here (topics delete-partitioned-topic persistent://demo/a/u), "
            "or delete it on west (topics delete persistent://demo/a/u), with -f if it is in use or replicated",
            (1, 0),
            id="plain-there-one-partition-here",
        ),
        pytest.param(
            snapshot(u=0),
            snapshot(u=1),
            "TOPIC_TYPE_MISMATCH",
            PLAIN_HERE.format(1),
            "delete it here (topics delete persistent://demo/a/u), "
            "or delete it on west (topics delete-partitioned-topic persistent://demo/a/u), "
            "with -f if it is in use or replicated",
            (0, 1),
            id="plain-here-one-partition-there",
        ),
    ],
)
def test_topic_that_nothing_can_make_equal_is_a_conflict_with_the_commands_that_end_it(
    local: NamespaceSnapshot, remote: NamespaceSnapshot, kind: str, reason: str, remedy: str, sides: tuple[int, int]
) -> None:
    found = plan(local, remote)
    assert not found.changes
    (conflict,) = document(found)["conflicts"]
    assert (conflict["kind"], conflict["topic"]) == (kind, "persistent://demo/a/u")
    assert (conflict["local"]["partitions"], conflict["remote"]["partitions"]) == sides
    assert (conflict["reason"], conflict["remedy"]) == (reason, remedy)
    assert whole(found).outcome is Outcome.CONFLICT


def test_deleting_a_system_topic_is_not_advised_without_a_warning() -> None:
    (conflict,) = document(plan(snapshot(__change_events=2), snapshot(__change_events=0)))["conflicts"]
    assert conflict["remedy"].endswith("; what it holds, such as the policies of topics, is deleted with it")


def test_name_in_a_remedy_is_quoted_for_the_shell() -> None:
    name = "it's mine; :"
    (conflict,) = document(plan(snapshot(**{name: 2}), snapshot(**{name: 8})))["conflicts"]  # type: ignore[arg-type]
    (command,) = re.findall(r"expand it here \((.*?)\)", conflict["remedy"])
    assert shlex.split(command) == ["topics", "update-partitioned-topic", str(topic(name)), "-p", "8"]


def test_conflicts_of_one_kind_stand_in_the_order_of_their_topics() -> None:
    found = plan(snapshot(b=1, c=1, a=1), snapshot(b=2, c=2, a=2))
    assert [str(each.topic) for each in found.conflicts] == [str(topic(name)) for name in "abc"]


def test_missing_namespace_is_a_conflict() -> None:
    assert plan(snapshot(x=1), None).cluster == "west"
    assert document(plan(snapshot(x=1), None))["conflicts"] == [
        {
            "kind": "NAMESPACE_MISSING",
            "reason": "Namespace demo/a does not exist on cluster west",
            "remedy": "create it there (namespaces create demo/a), and before it the tenant if that is missing too "
            "(tenants create demo)",
        }
    ]


@pytest.mark.parametrize(
    ("local", "remote"),
    [
        pytest.param(snapshot(x=2), snapshot(x=2), id="equal"),
        pytest.param(snapshot(x=2), snapshot(), id="absent-remotely"),
        pytest.param(snapshot(OFF), snapshot(AutoTopicCreation(False, PARTITIONED, 9)), id="neither-creates"),
        pytest.param(
            snapshot(AutoTopicCreation(True, "PARTITIONED", 9)), snapshot(), id="type-counts-in-its-exact-spelling"
        ),
        pytest.param(snapshot(), snapshot(AutoTopicCreation(True, NON_PARTITIONED, 9)), id="count-without-meaning"),
    ],
)
def test_nothing_to_do(local: NamespaceSnapshot, remote: NamespaceSnapshot) -> None:
    assert plan(local, remote) == ClusterPlan("west")
    assert whole(plan(local, remote)).outcome is Outcome.READY


def test_topic_only_there_is_told_unless_every_broker_has_one_and_changes_nothing() -> None:
    found = plan(snapshot(), snapshot(w=3, v=0, __change_events=2))
    assert document(found)["info"] == [
        {"kind": "REMOTE_ONLY_TOPIC", "topic": "persistent://demo/a/v", "partitions": 0},
        {"kind": "REMOTE_ONLY_TOPIC", "topic": "persistent://demo/a/w", "partitions": 3},
    ]
    assert whole(found).outcome is Outcome.READY


def test_document_has_its_parts_sorted_by_kind_and_topic() -> None:
    local = replace(snapshot(FOUR, b=4, a=4, d=1, c=0, e=1), schema_strategy="BACKWARD", auto_update_schema=False)
    found = whole(plan(local, snapshot(PLAIN, b=2, a=2, d=2, c=1, e=2)))
    answer = plan_document(found)
    assert {key: answer[key] for key in ("namespace", "localCluster", "requestedClusters", "addedClusters")} == {
        "namespace": "demo/a",
        "localCluster": "east",
        "requestedClusters": ["east", "west"],
        "addedClusters": ["west"],
    }
    (west,) = answer["clusters"]
    assert (west["cluster"], west["checked"], west["skipReason"]) == ("west", True, None)
    for part, count in (("changes", 5), ("conflicts", 3)):
        keys = [(each["kind"], each.get("topic", "")) for each in west[part]]
        assert keys == sorted(keys)
        assert len(keys) == count
    assert answer["outcome"] == "CONFLICT"


def applied(remote: NamespaceSnapshot, found: ClusterPlan) -> NamespaceSnapshot:
    """What a cluster is after the requests of the plan."""
    for change in found.changes:
        assert change.change is not None
        request = request_of(change.change, local_only=True)
        path, _, query = request.path.partition("?")
        body = request.body
        match path.rpartition("/")[2]:
            case "autoTopicCreation":
                remote = replace(
                    remote, auto_creation=AutoTopicCreation.from_json(body), auto_creation_source="namespace"
                )
            case "schemaCompatibilityStrategy":
                remote = replace(remote, schema_strategy=body)
            case "isAllowAutoUpdateSchema":
                remote = replace(
                    remote, auto_update_schema=body, replicator_may_update_schema=body or query.endswith("=true")
                )
            case "partitions":
                assert change.topic is not None
                remote = replace(remote, partitions={**remote.partitions, change.topic: body})
    return remote


creations = st.builds(
    AutoTopicCreation,
    st.booleans(),
    st.sampled_from([None, PARTITIONED, NON_PARTITIONED, "PARTITIONED"]),
    st.integers(1, 3),
)
snapshots = st.builds(
    lambda creation, counts, strategy, switches: NamespaceSnapshot(
        creation,
        {topic(name): count for name, count in counts.items()},
        schema_strategy=strategy,
        auto_update_schema=switches[0],
        replicator_may_update_schema=switches[0] or switches[1],
    ),
    creations,
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)),
    st.sampled_from(["FULL", "BACKWARD"]),
    st.tuples(st.booleans(), st.booleans()),
)


@given(snapshots, snapshots)
def test_after_the_changes_there_is_nothing_left_to_change(local: NamespaceSnapshot, remote: NamespaceSnapshot) -> None:
    found = plan(local, remote)
    again = plan(local, applied(remote, found))
    assert not again.changes
    assert again.conflicts == found.conflicts
    assert whole(again).outcome is (Outcome.CONFLICT if found.conflicts else Outcome.READY)


@given(snapshots, snapshots)
def test_plan_has_something_to_say_wherever_the_comparison_has(
    local: NamespaceSnapshot, remote: NamespaceSnapshot
) -> None:
    refused = differences("west", local, remote)
    found = plan(local, remote)
    schema_kinds = ("IS_ALLOW_AUTO_UPDATE_SCHEMA", "SCHEMA_COMPATIBILITY_STRATEGY")
    compared = [each for each in found.changes if each.kind not in schema_kinds]
    assert len(refused) == len(compared) + len(found.conflicts)
