"""Replication previewed and remote clusters adjusted over REST: nothing by surprise, everything told (PIP-433)."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from interpulse.broker.config import BrokerConfig
from tests.integration.rest_broker import RestBroker, rest_broker
from tests.integration.rest_client import Reply, call
from tests.integration.two_clusters import BOTH, done, join, join_both
from tests.stub_web import Answer, Asked, StubWeb, passed_on

REPLICATION = "namespaces/demo/a/replication"
PREVIEW = f"{REPLICATION}?preview=true"
ADJUST = f"{REPLICATION}?adjustNamespaceLevelPoliciesAutomatically=true"
POLICIES = "/admin/v2/namespaces/demo/a"


@pytest.fixture
async def east() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="east")) as broker:
        yield broker


@pytest.fixture
async def west() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="west")) as broker:
        yield broker


async def differ(east: RestBroker, west: RestBroker) -> None:
    """Everything that can be adjusted, at the broker's and at the namespace's level."""
    await join_both(east, west)
    for name in ("p", "__change_events"):
        await done(east, "PUT", f"persistent/demo/a/{name}/partitions", 4)
        await done(west, "PUT", f"persistent/demo/a/{name}/partitions", 2)
    await done(east, "POST", "brokers/configuration/allowAutoTopicCreationType/partitioned")
    await done(east, "POST", "brokers/configuration/defaultNumPartitions/3")
    body = {"allowAutoTopicCreation": False}
    await done(west, "POST", "namespaces/demo/a/autoTopicCreation", body)
    await done(east, "PUT", "namespaces/demo/a/schemaCompatibilityStrategy", "BACKWARD")
    await done(
        east, "POST", "namespaces/demo/a/isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=false", False
    )


async def stored(east: RestBroker) -> list[str]:
    return list((await call(east.web_url, "GET", REPLICATION)).json)


async def state(broker: RestBroker) -> dict[str, Any]:
    """What an operator can see of the namespace and its topics."""
    policies = (await done(broker, "GET", "namespaces/demo/a")).json
    names = (await done(broker, "GET", "persistent/demo/a/partitioned?includeSystemTopic=true")).json
    counts = {}
    for name in names:
        path = name.replace("://", "/")
        counts[name] = (await done(broker, "GET", f"{path}/partitions")).json["partitions"]
    return {"policies": policies, "counts": counts}


def kinds(reply: Reply, part: str = "changes") -> list[str]:
    (west,) = reply.json["clusters"]
    return [each["kind"] for each in west[part]]


ALL_CHANGES = [
    "AUTO_TOPIC_CREATION",
    "IS_ALLOW_AUTO_UPDATE_SCHEMA",
    "SCHEMA_COMPATIBILITY_STRATEGY",
    "TOPIC_PARTITIONS",
    "TOPIC_PARTITIONS",
]


async def test_preview_adjust_preview_again_is_empty(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    before = await state(west)
    previewed = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert (previewed.status, previewed.json["outcome"], kinds(previewed)) == (200, "NEEDS_ADJUSTMENT", ALL_CHANGES)
    assert previewed.json["addedClusters"] == ["west"]
    assert "applied" not in previewed.json
    assert await state(west) == before
    assert await stored(east) == ["east"]

    adjusted = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (adjusted.status, adjusted.json["applied"]) == (200, True)
    changes = adjusted.json["clusters"][0]["changes"]
    assert {each.pop("status") for each in changes} == {"DONE"}
    assert changes == previewed.json["clusters"][0]["changes"]
    assert await stored(east) == BOTH
    after = await state(west)
    assert after["counts"] == {"persistent://demo/a/__change_events": 4, "persistent://demo/a/p": 4}
    expected = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
    assert after["policies"]["autoTopicCreationOverride"] == expected
    assert after["policies"]["schema_compatibility_strategy"] == "BACKWARD"

    await done(east, "POST", REPLICATION, ["east"])
    again = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert (again.json["outcome"], kinds(again), kinds(again, "conflicts")) == ("READY", [], [])
    await done(east, "POST", f"{REPLICATION}?compareTopicPartitions=true", BOTH)
    assert (await call(east.web_url, "POST", PREVIEW, BOTH)).json["clusters"] == []


async def test_preview_wins_over_adjustment(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    before = await state(west)
    reply = await call(east.web_url, "POST", f"{ADJUST}&preview=true", BOTH)
    assert (reply.status, "applied" in reply.json) == (200, False)
    assert (await state(west), await stored(east)) == (before, ["east"])


async def test_adjustment_that_meets_a_conflict_changes_nothing(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    await done(east, "PUT", "persistent/demo/a/shrunk/partitions", 2)
    await done(west, "PUT", "persistent/demo/a/shrunk/partitions", 8)
    await done(east, "PUT", "persistent/demo/a/plain-here")
    await done(west, "PUT", "persistent/demo/a/plain-here/partitions", 1)
    await done(east, "PUT", "persistent/demo/a/plain-there/partitions", 1)
    await done(west, "PUT", "persistent/demo/a/plain-there")
    before = await state(west)
    previewed = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert (previewed.status, previewed.json["outcome"]) == (200, "CONFLICT")
    expected = ["PARTITIONS_CANNOT_SHRINK", "TOPIC_TYPE_MISMATCH", "TOPIC_TYPE_MISMATCH"]
    assert kinds(previewed, "conflicts") == expected
    adjusted = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (adjusted.status, adjusted.json["applied"], kinds(adjusted)) == (409, False, ALL_CHANGES)
    assert "expand it here to 8 partitions" in adjusted.reason
    assert (await state(west), await stored(east)) == (before, ["east"])


async def test_topics_of_one_side_only_are_no_obstacle_and_told(east: RestBroker, west: RestBroker) -> None:
    await join_both(east, west)
    await done(east, "PUT", "persistent/demo/a/only-here/partitions", 3)
    await done(west, "PUT", "persistent/demo/a/only-there/partitions", 4)
    reply = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (reply.status, reply.json["outcome"], reply.json["applied"]) == (200, "READY", True)
    assert reply.json["clusters"][0]["info"] == [
        {"kind": "REMOTE_ONLY_TOPIC", "topic": "persistent://demo/a/only-there", "partitions": 4}
    ]


async def test_namespace_that_is_missing_there_is_a_conflict(east: RestBroker, west: RestBroker) -> None:
    await join_both(east, west)
    await done(west, "DELETE", "namespaces/demo/a")
    reply = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert kinds(reply, "conflicts") == ["NAMESPACE_MISSING"]
    assert (await call(east.web_url, "POST", ADJUST, BOTH)).status == 409
    assert await stored(east) == ["east"]


@pytest.mark.parametrize(
    ("clusters", "status"), [([], 412), (["east", "nowhere"], 403), (BOTH, 404)], ids=["none", "unknown", "namespace"]
)
@pytest.mark.parametrize("path", [PREVIEW, ADJUST])
async def test_preconditions_answer_before_anything_is_planned(
    east: RestBroker, west: RestBroker, path: str, clusters: list[str], status: int
) -> None:
    await join_both(east, west)
    if status == 404:
        await done(east, "DELETE", "namespaces/demo/a")
    reply = await call(east.web_url, "POST", path, clusters)
    assert (reply.status, "outcome" in reply.json) == (status, False)


async def test_list_without_the_local_cluster_is_not_compared(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    reply = await call(east.web_url, "POST", PREVIEW, ["west"])
    assert (reply.json["outcome"], reply.json["clusters"]) == ("READY", [])


@contextmanager
def in_between(west: RestBroker, meet: Callable[[Asked], None]) -> Iterator[str]:
    """The address of somebody who passes on what west is asked, after ``meet`` has seen it."""

    def answer(asked: Asked) -> Answer:
        meet(asked)
        return passed_on(asked, west.web_url)

    with StubWeb(otherwise=answer) as web:
        yield web.url


async def test_two_operators_at_once_end_as_one(east: RestBroker, west: RestBroker) -> None:
    """Each change is asked for twice, since both have made their plan before either applies the first one."""
    await differ(east, west)
    first_changes = threading.Barrier(2)
    changes: list[str] = []

    def meet(asked: Asked) -> None:
        if asked.method != "GET":
            changes.append(asked.target.partition("?")[0])
        if asked.method == "POST" and asked.target == f"{POLICIES}/autoTopicCreation":
            first_changes.wait(10)

    with in_between(west, meet) as url:
        await done(east, "POST", "clusters/west", {"serviceUrl": url})
        replies = await asyncio.gather(*(call(east.web_url, "POST", ADJUST, BOTH) for _ in range(2)))
    assert sorted(Counter(changes).values()) == [2] * len(ALL_CHANGES), changes
    assert [(each.status, each.json["applied"]) for each in replies] == [(200, True)] * 2, replies
    assert await stored(east) == BOTH
    assert set((await state(west))["counts"].values()) == {4}


async def test_two_sources_that_want_different_things_are_told_who_lost(east: RestBroker, west: RestBroker) -> None:
    """The policy of the one that came last holds; the other one is refused, and its preview shows what is left."""
    strategy = "namespaces/demo/a/schemaCompatibilityStrategy"
    made, overwritten = threading.Event(), threading.Event()

    def meet(asked: Asked) -> None:
        if asked.method == "GET" and made.is_set():
            overwritten.wait(10)  # the second look, after both changes
        elif asked.method != "GET":
            made.set()

    async with rest_broker(BrokerConfig(cluster_name="north")) as north:
        await join_both(east, west)
        await done(north, "PUT", "clusters/west", {"serviceUrl": west.web_url})
        await done(north, "PUT", "tenants/demo", {"allowedClusters": ["north", "west"]})
        await done(north, "PUT", "namespaces/demo/a")
        await done(east, "PUT", strategy, "BACKWARD")
        await done(north, "PUT", strategy, "FORWARD")
        with in_between(west, meet) as url:
            await done(east, "POST", "clusters/west", {"serviceUrl": url})
            lost = asyncio.create_task(call(east.web_url, "POST", ADJUST, BOTH))
            assert await asyncio.to_thread(made.wait, 10)
            await done(north, "POST", ADJUST, ["north", "west"])
            overwritten.set()
            reply = await lost
            assert (reply.status, reply.json["applied"]) == (409, False)
            assert "SCHEMA_COMPATIBILITY_STRATEGY of demo/a on west" in reply.reason
            assert await stored(east) == ["east"]
            assert kinds(await done(east, "POST", PREVIEW, BOTH)) == ["SCHEMA_COMPATIBILITY_STRATEGY"]
    assert (await done(west, "GET", strategy)).json == "FORWARD"


@pytest.mark.parametrize("looking_again", [False, True], ids=["before-the-first-change", "after-the-last"])
async def test_namespace_deleted_there_between_plan_and_end_is_told_and_not_created(
    east: RestBroker, west: RestBroker, looking_again: bool
) -> None:
    await join_both(east, west)
    strategy = "namespaces/demo/a/schemaCompatibilityStrategy"
    await done(east, "PUT", strategy, "BACKWARD")
    await done(east, "PUT", "persistent/demo/a/only-here/partitions", 3)
    changed = deleted = False

    def meet(asked: Asked) -> None:
        nonlocal changed, deleted
        changing = asked.method != "GET"
        if not deleted and (changed if looking_again else changing):
            deleted = True
            passed_on(Asked("DELETE", POLICIES, None, {}), west.web_url)
        changed = changed or changing

    with in_between(west, meet) as url:
        await done(east, "POST", "clusters/west", {"serviceUrl": url})
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
        assert (reply.status, reply.json["applied"]) == (409 if looking_again else 404, False), reply
        assert "Namespace" in reply.reason
        (change,) = reply.json["clusters"][0]["changes"]
        assert change["status"] == ("DONE" if looking_again else "FAILED")
        assert kinds(await done(east, "POST", PREVIEW, BOTH), "conflicts") == ["NAMESPACE_MISSING"]
        assert await stored(east) == ["east"]
        assert (await done(west, "GET", "namespaces/demo")).json == []
        await done(west, "PUT", "namespaces/demo/a")
        assert (await done(east, "POST", ADJUST, BOTH)).json["applied"] is True


async def test_broker_where_it_is_switched_off_refuses_and_says_so(west: RestBroker) -> None:
    config = BrokerConfig(cluster_name="east", supports_replication_preview=False)
    async with rest_broker(config) as east:
        await differ(east, west)
        reply = await call(east.web_url, "POST", PREVIEW, BOTH)
        assert (reply.status, "supportsReplicationPreview" in reply.reason) == (405, True)
        assert await stored(east) == ["east"]


async def test_runtime_configuration_says_that_it_is_offered(east: RestBroker) -> None:
    settings = (await done(east, "GET", "brokers/configuration/runtime")).json
    assert settings["supportsReplicationPreview"] == "true"


# --- a remote cluster in trouble


def healthy(
    west: StubWeb, partitions: int = 2, *, override: dict[str, Any] | None = None, broken: str | None = None
) -> None:
    """Answers of a cluster that has one topic of the namespace; none for the path that is broken."""
    answers = {
        POLICIES: {"replication_clusters": ["west"], "autoTopicCreationOverride": override},
        "/admin/v2/brokers/configuration/runtime": {},
        "/admin/v2/persistent/demo/a/partitioned": ["persistent://demo/a/p"],
        "/admin/v2/non-persistent/demo/a/partitioned": [],
        "/admin/v2/persistent/demo/a": ["persistent://demo/a/p-partition-0"],
        "/admin/v2/persistent/demo/a/p/partitions": {"partitions": partitions},
    }
    for path, answer in answers.items():
        if path != broken:
            west.answer("GET", path, answer)


READING = [
    POLICIES,
    "/admin/v2/brokers/configuration/runtime",
    "/admin/v2/persistent/demo/a/partitioned",
    "/admin/v2/non-persistent/demo/a/partitioned",
    "/admin/v2/persistent/demo/a",
    "/admin/v2/persistent/demo/a/p/partitions",
]


@pytest.mark.parametrize("trouble", ["500", "401", "307", "html", "html-called-text", "hang-up"])
@pytest.mark.parametrize("step", READING)
async def test_cluster_that_cannot_be_read_is_a_conflict_at_every_step(
    east: RestBroker, step: str, trouble: str
) -> None:
    with StubWeb() as west:
        if trouble == "500":
            west.answer("GET", step, {"reason": "out of order"}, status=500)
        elif trouble == "401":
            west.answer("GET", step, {"reason": "token expired"}, status=401)
        elif trouble == "307":
            west.answer_raw("GET", step, b"", status=307, headers={"Location": f"{west.url}{step}"})
        elif trouble == "html":
            west.answer_raw("GET", step, b"<html>proxy</html>", content_type="text/html")
        elif trouble == "html-called-text":
            west.answer_raw("GET", step, b"<html>proxy</html>")
        else:
            west.hang_up("GET", step)
        healthy(west, broken=step)
        await join(east, west.url)
        await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
        assert (reply.status, reply.json["applied"]) == (409, False)
        assert kinds(reply, "conflicts") == ["CLUSTER_UNREACHABLE"]
        assert f"west at {west.url}" in reply.reason
        assert not [each for each in west.asked if each.method != "GET"]
    assert await stored(east) == ["east"]


async def test_cluster_that_is_away_is_a_conflict(east: RestBroker) -> None:
    await join(east, "http://127.0.0.1:1")
    reply = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert (reply.json["outcome"], reply.json["clusters"][0]["checked"]) == ("CONFLICT", False)
    await done(east, "POST", REPLICATION, BOTH)


@pytest.mark.parametrize("step", range(3))
async def test_failure_in_the_middle_is_told_step_by_step_and_stores_nothing(east: RestBroker, step: int) -> None:
    changing = [
        ("POST", f"{POLICIES}/autoTopicCreation"),
        ("PUT", f"{POLICIES}/schemaCompatibilityStrategy"),
        ("POST", "/admin/v2/persistent/demo/a/p/partitions"),
    ]
    with StubWeb() as west:
        healthy(west, override={"allowAutoTopicCreation": False})
        west.answer(*changing[step], {"reason": "disk full"}, status=500)
        await join(east, west.url)
        await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
        await done(east, "PUT", "namespaces/demo/a/schemaCompatibilityStrategy", "BACKWARD")
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (reply.status, reply.json["applied"]) == (500, False)
    assert "west could not be adjusted: disk full" in reply.reason
    statuses = [each["status"] for each in reply.json["clusters"][0]["changes"]]
    assert statuses == ["DONE"] * step + ["FAILED"] + ["PENDING"] * (2 - step)
    assert reply.json["clusters"][0]["changes"][step]["error"] == "disk full"
    assert await stored(east) == ["east"]


async def test_growing_whose_answer_is_lost_counts_by_what_the_topic_has(east: RestBroker) -> None:
    with StubWeb() as west:
        healthy(west)
        west.answer("GET", "/admin/v2/persistent/demo/a/p/partitions", {"partitions": 4})  # from the second time on
        west.hang_up("POST", "/admin/v2/persistent/demo/a/p/partitions")
        await join(east, west.url)
        await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (reply.status, reply.json["applied"]) == (200, True)


async def test_cluster_that_takes_a_change_but_does_not_keep_it_is_found_out(east: RestBroker) -> None:
    with StubWeb() as west:
        healthy(west)
        await join(east, west.url)
        await done(east, "PUT", "persistent/demo/a/p/partitions", 4)
        reply = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (reply.status, reply.json["applied"]) == (409, False)
    assert "still differ" in reply.reason
    assert await stored(east) == ["east"]


async def test_adjustment_that_was_broken_off_is_completed_by_repeating_it(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    await done(west, "POST", "brokers/configuration/maxNumPartitionsPerPartitionedTopic/3")
    broken = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (broken.status, broken.json["applied"]) == (422, False)
    statuses = [each["status"] for each in broken.json["clusters"][0]["changes"]]
    assert statuses == ["DONE", "DONE", "DONE", "FAILED", "PENDING"]
    assert await stored(east) == ["east"]
    left = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert kinds(left) == ["TOPIC_PARTITIONS", "TOPIC_PARTITIONS"]
    await done(west, "DELETE", "brokers/configuration/maxNumPartitionsPerPartitionedTopic")
    assert (await done(east, "POST", ADJUST, BOTH)).json["applied"] is True
    assert await stored(east) == BOTH
