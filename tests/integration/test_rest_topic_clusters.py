"""Replication clusters of single topics over REST: cursors are open and remote topics there when the call returns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.model.names import TopicName
from tests.support.joined_clusters import done
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call
from tests.support.stub_web import StubWeb

BOTH = ["east", "west"]
X, P = "persistent/demo/a/x", "persistent/demo/a/p"


@pytest.fixture
async def east() -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="east")) as broker:
        await prepare(broker)
        await done(broker, "PUT", f"{P}/partitions", 2)
        await done(broker, "PUT", X)
        yield broker


@pytest.fixture
async def west(east: RestBroker) -> AsyncIterator[RestBroker]:
    async with rest_broker(BrokerConfig(cluster_name="west")) as broker:
        await done(broker, "PUT", "clusters/east", {"serviceUrl": east.web_url})
        await done(east, "POST", "clusters/west", {"serviceUrl": broker.web_url})
        await prepare(broker)
        yield broker


async def prepare(broker: RestBroker) -> None:
    if broker.context.namespaces.local_cluster == "east":
        await done(broker, "PUT", "clusters/west", {"serviceUrl": "http://127.0.0.1:1"})
    await done(broker, "PUT", "tenants/demo", {"allowedClusters": BOTH})
    await done(broker, "PUT", "namespaces/demo/a")


async def partitions(broker: RestBroker, path: str) -> int | None:
    reply = await call(broker.web_url, "GET", f"{path}/partitions")
    return reply.json["partitions"] if reply.status == 200 else None


async def stored(broker: RestBroker, path: str) -> Any:
    reply = await done(broker, "GET", f"{path}/replication")
    return reply.json if reply.body else None


async def cursors(broker: RestBroker, name: str) -> list[str]:
    return await broker.store.children(keys.topic_record(TopicName.parse(f"demo/a/{name}")))


async def test_topic_when_set_then_it_alone_keeps_what_the_other_cluster_has_to_get(east: RestBroker) -> None:
    await done(east, "PUT", "persistent/demo/a/y")
    for topic in (X, "persistent/demo/a/y"):
        await done(east, "GET", f"{topic}/stats")  # it is loaded
    await done(east, "POST", f"{X}/replication", BOTH)
    assert await cursors(east, "x") == ["pulsar.repl.west"]
    assert await cursors(east, "y") == []
    assert list((await done(east, "GET", f"{X}/stats")).json["replication"]) == ["west"]
    await done(east, "DELETE", f"{X}/replication")
    assert await cursors(east, "x") == []


async def test_topic_when_only_local_then_it_leaves_the_replication_of_its_namespace(
    east: RestBroker, west: RestBroker
) -> None:
    await done(east, "GET", f"{X}/stats")  # it is loaded
    await done(east, "POST", "namespaces/demo/a/replication", BOTH)
    assert await cursors(east, "x") == ["pulsar.repl.west"]
    await done(east, "POST", f"{X}/replication", ["east"])
    assert await cursors(east, "x") == []
    await done(east, "DELETE", f"{X}/replication")
    assert await cursors(east, "x") == ["pulsar.repl.west"]


async def test_clusters_for_all_clusters_count_until_others_are_set_here(east: RestBroker, west: RestBroker) -> None:
    refused = await call(east.web_url, "POST", f"{X}/replication?isGlobal=true", BOTH)
    assert refused.status == 412  # the namespace is on one cluster
    await done(east, "POST", "namespaces/demo/a/replication?skipCompareTopicPartitions=true", BOTH)
    await done(east, "GET", f"{X}/stats")  # it is loaded
    await done(east, "POST", f"{X}/replication?isGlobal=true", ["east"])
    assert (await done(east, "GET", f"{X}/replication?isGlobal=true")).json == ["east"]
    assert await stored(east, X) is None
    assert (await done(east, "GET", f"{X}/replication?applied=true")).json == ["east"]
    assert await cursors(east, "x") == []
    await done(east, "POST", f"{X}/replication", BOTH)
    assert await cursors(east, "x") == ["pulsar.repl.west"]
    assert (await done(east, "GET", f"{X}/replication?applied=true")).json == BOTH
    assert (await done(east, "GET", f"{X}/replication?applied=true&isGlobal=true")).json == ["east"]
    await done(east, "DELETE", f"{X}/replication")
    await done(east, "DELETE", f"{X}/replication?isGlobal=true")
    assert (await done(east, "GET", f"{X}/replication?applied=true")).json == BOTH


async def test_policies_that_are_taken_away_together_give_up_no_cursor_that_the_namespace_wants(
    east: RestBroker, west: RestBroker
) -> None:
    await done(east, "POST", "namespaces/demo/a/replication?skipCompareTopicPartitions=true", BOTH)
    await done(east, "POST", f"{X}/replication", BOTH)
    await done(east, "POST", f"{X}/replication?isGlobal=true", ["east"])
    topic = await east.context.registry.open(TopicName.parse("demo/a/x"))
    cursor = topic.subscriptions["pulsar.repl.west"]
    await done(east, "DELETE", f"{X}/policies")
    assert topic.subscriptions["pulsar.repl.west"] is cursor
    assert (await done(east, "GET", f"{X}/replication?isGlobal=true")).body == b""


async def test_partitioned_topic_when_absent_there_then_it_is_created_before_the_call_returns(
    east: RestBroker, west: RestBroker
) -> None:
    await done(east, "GET", f"{P}/partitioned-stats")  # it is loaded
    await done(east, "POST", f"{P}/replication", BOTH)
    assert await partitions(west, P) == 2
    assert await cursors(east, "p-partition-0") == await cursors(east, "p-partition-1") == ["pulsar.repl.west"]
    assert (await done(east, "GET", f"{P}/replication?applied=true")).json == BOTH


async def test_partitioned_topic_when_equal_there_then_nothing_is_changed(east: RestBroker, west: RestBroker) -> None:
    await done(west, "PUT", f"{P}/partitions", 2)
    await done(east, "POST", f"{P}/replication", BOTH)
    assert await stored(east, P) == BOTH
    assert await partitions(west, P) == 2


@pytest.mark.parametrize("there", [1, 3, 0])
async def test_partitioned_topic_when_of_another_shape_there_then_refused_and_not_stored(
    east: RestBroker, west: RestBroker, there: int
) -> None:
    await done(west, "PUT", f"{P}/partitions" if there else P, there or None)
    reply = await call(east.web_url, "POST", f"{P}/replication", BOTH)
    assert reply.status == 412
    assert "with different partitions" in reply.reason
    assert "west" in reply.reason
    assert await stored(east, P) is None
    assert await partitions(west, P) == there
    assert await cursors(east, "p-partition-0") == []


async def test_plain_topic_when_set_then_nothing_is_created_there(east: RestBroker, west: RestBroker) -> None:
    await done(east, "POST", f"{X}/replication", BOTH)
    assert await partitions(west, X) is None


async def test_partitioned_topic_when_the_cluster_does_not_answer_then_refused_naming_it(east: RestBroker) -> None:
    reply = await call(east.web_url, "POST", f"{P}/replication", BOTH)
    assert reply.status == 503
    assert "west" in reply.reason
    assert "http://127.0.0.1:1" in reply.reason
    assert await stored(east, P) is None


async def test_partitioned_topic_when_its_namespace_is_missing_there_then_refused(
    east: RestBroker, west: RestBroker
) -> None:
    await done(west, "DELETE", "namespaces/demo/a")
    reply = await call(east.web_url, "POST", f"{P}/replication", BOTH)
    assert reply.status == 422
    assert "Namespace not found: demo/a" in reply.reason
    assert await stored(east, P) is None


async def test_partitioned_topic_when_created_meanwhile_then_that_one_counts(east: RestBroker) -> None:
    path = "/admin/v2/persistent/demo/a/p/partitions"
    with StubWeb() as web:
        web.answer("GET", path, {"reason": "Topic not found"}, status=404)
        web.answer("GET", path, {"partitions": 2})
        web.answer("PUT", path, {"reason": "This topic already exists"}, status=409)
        await done(east, "POST", "clusters/west", {"serviceUrl": web.url})
        await done(east, "POST", f"{P}/replication", BOTH)
        assert [asked.method for asked in web.asked] == ["GET", "PUT", "GET"]
    assert await stored(east, P) == BOTH


async def test_partitioned_topic_when_only_the_last_attempt_creates_it_there_then_it_is_found(east: RestBroker) -> None:
    path = "/admin/v2/persistent/demo/a/p/partitions"
    with StubWeb() as web:
        for _ in range(3):
            web.answer("GET", path, {"reason": "Topic not found"}, status=404)
        for _ in range(2):
            web.answer("PUT", path, {"reason": "This topic already exists"}, status=409)
        web.answer("GET", path, {"partitions": 2})
        web.answer("PUT", path, None)
        await done(east, "POST", "clusters/west", {"serviceUrl": web.url})
        await done(east, "POST", f"{P}/replication", BOTH)
    assert await stored(east, P) == BOTH


async def test_partitioned_topic_when_its_creation_there_has_no_effect_then_refused(east: RestBroker) -> None:
    with StubWeb() as web:
        web.answer("GET", "/admin/v2/persistent/demo/a/p/partitions", {"reason": "Topic not found"}, status=404)
        await done(east, "POST", "clusters/west", {"serviceUrl": web.url})
        reply = await call(east.web_url, "POST", f"{P}/replication", BOTH)
    assert (reply.status, "Cluster west accepts the creation" in reply.reason) == (503, True), reply
    assert await stored(east, P) is None


class TestCreationOnOtherClustersSwitchedOff:
    """``createTopicToRemoteClusterForReplication=false``."""

    @pytest.fixture
    async def east(self) -> AsyncIterator[RestBroker]:
        config = BrokerConfig(cluster_name="east", create_topic_to_remote_cluster_for_replication=False)
        async with rest_broker(config) as broker:
            await prepare(broker)
            await done(broker, "PUT", f"{P}/partitions", 2)
            yield broker

    async def test_then_nothing_is_created_there(self, east: RestBroker, west: RestBroker) -> None:
        await done(east, "POST", f"{P}/replication", BOTH)
        assert await stored(east, P) == BOTH
        assert await partitions(west, P) is None

    async def test_then_a_namespace_that_is_missing_there_is_no_problem(
        self, east: RestBroker, west: RestBroker
    ) -> None:
        await done(west, "DELETE", "namespaces/demo/a")
        await done(east, "POST", f"{P}/replication", BOTH)
        assert await stored(east, P) == BOTH

    async def test_then_counts_are_compared_all_the_same(self, east: RestBroker, west: RestBroker) -> None:
        await done(west, "PUT", f"{P}/partitions", 3)
        assert (await call(east.web_url, "POST", f"{P}/replication", BOTH)).status == 412
        assert await stored(east, P) is None

    async def test_then_a_cluster_that_does_not_answer_is_no_problem(self, east: RestBroker) -> None:
        await done(east, "POST", f"{P}/replication", BOTH)
        assert await stored(east, P) == BOTH
