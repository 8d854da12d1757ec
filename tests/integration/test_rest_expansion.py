"""Growing a partitioned topic over REST while another cluster has it too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.topic.topic import Topic
from interpulse.model.clusters import ClusterData
from interpulse.model.names import PUBLIC_DEFAULT, TopicName
from tests.support.interleaved_writes import right_before_commit_of
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call

X = "persistent/public/default/x"


@pytest.fixture
async def east_and_west() -> AsyncIterator[tuple[RestBroker, RestBroker]]:
    async with rest_broker(BrokerConfig(cluster_name="east")) as east, rest_broker() as west:
        await east.context.clusters.create("standalone", ClusterData(service_url=west.web_url))
        both = ("east", "standalone")
        await east.context.namespaces.update_policies(
            PUBLIC_DEFAULT, lambda old: old.changed(replication_clusters=both)
        )
        await call(east.web_url, "PUT", f"{X}/partitions", 2)
        yield east, west


async def partitions(broker: RestBroker) -> tuple[int, int]:
    """The count, and how many partitions are stored."""
    count = (await call(broker.web_url, "GET", f"{X}/partitions")).json.get("partitions")
    return count, len((await call(broker.web_url, "GET", "persistent/public/default")).json)


async def test_expand_then_the_other_cluster_grows_too(east_and_west: tuple[RestBroker, RestBroker]) -> None:
    east, west = east_and_west
    await call(west.web_url, "PUT", f"{X}/partitions", 2)
    assert (await call(east.web_url, "POST", f"{X}/partitions", 4)).status == 204
    assert (await partitions(east), await partitions(west)) == ((4, 4), (4, 4))
    assert (await call(east.web_url, "POST", f"{X}/partitions?updateLocalTopicOnly=true", 5)).status == 204
    assert (await partitions(east), await partitions(west)) == ((5, 5), (4, 4))


async def test_expand_when_the_other_cluster_has_none_then_it_gets_one(
    east_and_west: tuple[RestBroker, RestBroker],
) -> None:
    east, west = east_and_west
    assert (await call(east.web_url, "POST", f"{X}/partitions", 3)).status == 204
    assert (await partitions(east), await partitions(west)) == ((3, 3), (3, 3))


async def test_expand_when_the_other_cluster_cannot_follow_then_nothing_grows(
    east_and_west: tuple[RestBroker, RestBroker],
) -> None:
    east, west = east_and_west
    await call(west.web_url, "PUT", f"{X}/partitions", 6)
    larger = await call(east.web_url, "POST", f"{X}/partitions", 4)
    assert (larger.status, "6 partitions on cluster standalone" in larger.json["reason"]) == (422, True)
    await call(west.web_url, "DELETE", f"{X}/partitions")
    await call(west.web_url, "PUT", X)
    assert (await call(east.web_url, "POST", f"{X}/partitions", 4)).status == 409
    await east.context.clusters.put("standalone", ClusterData(service_url="http://127.0.0.1:9"))
    away = await call(east.web_url, "POST", f"{X}/partitions", 4)
    assert (away.status, "standalone at http://127.0.0.1:9" in away.json["reason"]) == (503, True)
    assert await partitions(east) == (2, 2)


async def test_subscription_when_the_topic_is_deleted_meanwhile_then_it_is_not_created_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create = Topic.create_subscription
    config = BrokerConfig(allow_auto_topic_creation_type="partitioned", default_num_partitions=3)
    async with rest_broker(config) as broker:

        async def create_and_delete(topic: Topic, name: str, **options: Any) -> None:
            await create(topic, name, **options)
            await broker.context.deletion.partitioned_topic(TopicName.parse("x"), force=True)

        await call(broker.web_url, "PUT", f"{X}/partitions", 1)
        monkeypatch.setattr(Topic, "create_subscription", create_and_delete)
        assert (await call(broker.web_url, "PUT", f"{X}/subscription/s")).status == 404
        assert (await call(broker.web_url, "GET", "persistent/public/default")).json == []


@pytest.mark.parametrize(("method", "before", "after"), [("PUT", [], ["s"]), ("DELETE", ["s"], [])])
async def test_subscription_of_all_partitions_when_the_topic_grows_meanwhile_then_the_new_ones_are_no_exception(
    monkeypatch: pytest.MonkeyPatch, method: str, before: list[str], after: list[str]
) -> None:
    topic = TopicName.parse("x")
    async with rest_broker() as broker:

        async def found() -> list[list[str]]:
            found = [await call(broker.web_url, "GET", f"{X}-partition-{index}/subscriptions") for index in range(3)]
            return [each.json if each.status == 200 else [] for each in found]

        await call(broker.web_url, "PUT", f"{X}/partitions", 2)
        for name in before:
            assert (await call(broker.web_url, "PUT", f"{X}/subscription/{name}")).status == 204
        right_before_commit_of(
            monkeypatch,
            broker.store,
            f"{keys.topic_record(topic.partition(0))}/s",
            lambda: broker.context.lifecycle.expand(topic, 3),
        )
        assert (await call(broker.web_url, method, f"{X}/subscription/s")).status == 204
        assert (await partitions(broker), await found()) == ((3, 3), [after] * 3)
