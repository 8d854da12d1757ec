"""Adjusting several clusters: the order, where it stops, and when the replication clusters are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.adjustments import AdjustmentPlan, ChangeStatus, Outcome
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import MetadataError, NamespaceNotFound, OperationTimeout
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.model.operations import AdminRequest
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.replication.adjust import Enabling, adjust, preview
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
