"""Compaction over REST, where it goes further than one call and one answer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from interpulse.broker.live.topic.topic import Topic
from interpulse.model.names import TopicName
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from tests.support.official_client import admin
from tests.support.rest_broker import RestBroker
from tests.support.rest_client import call

BASE = "persistent/public/default/t"
STATUS_OF_ONE_THAT_NEVER_RAN = {"status": "NOT_RUN", "lastError": ""}


async def loaded(broker: RestBroker, name: str) -> Topic:
    topic = await broker.context.registry.open(TopicName.parse(name))
    assert isinstance(topic, Topic)
    return topic


async def test_partitions_when_one_is_being_compacted_then_the_others_begin_and_it_is_told(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", f"{BASE}/partitions", 3)
    topics = [await loaded(broker, f"persistent://public/default/t-partition-{index}") for index in range(3)]
    permits = broker.context.registry.compaction_permits
    await permits.acquire()
    await permits.acquire()
    topics[0].compaction.begin()
    reply = await call(broker.web_url, "PUT", f"{BASE}/compaction")
    assert (reply.status, reply.reason) == (409, "Compaction already in progress")
    for index in range(3):
        status = await call(broker.web_url, "GET", f"{BASE}-partition-{index}/compaction")
        assert status.json == {"status": "RUNNING", "lastError": ""}
    for topic in topics:
        await topic.compaction.stop()
    permits.release()
    permits.release()


async def test_topic_that_was_never_compacted_says_so(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", BASE)
    assert (await call(broker.web_url, "GET", f"{BASE}/compaction")).json == STATUS_OF_ONE_THAT_NEVER_RAN


@pytest.mark.parametrize("method", ["PUT", "GET"])
async def test_topic_that_is_not_stored_cannot_be_compacted(broker: RestBroker, method: str) -> None:
    await call(broker.web_url, "PUT", f"non-{BASE}")
    reply = await call(broker.web_url, method, f"non-{BASE}/compaction")
    assert (reply.status, reply.reason) == (405, "A non-persistent topic cannot be compacted: it keeps no messages")


async def test_backlogs_when_all_are_cleared_or_expired_then_what_is_not_compacted_stays(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", BASE)
    topic = await loaded(broker, "persistent://public/default/t")
    await topic.keep_for_compaction()
    await topic.create_subscription("s")
    topic.log.append(b"not compacted")
    await topic.log.roll()
    for path, status in (
        ("namespaces/public/default/clearBacklog", 204),
        (f"{BASE}/all_subscription/expireMessages/0", 409),  # nothing is left to expire
    ):
        assert (await call(broker.web_url, "POST", path)).status == status
        backlog = {name: each.cursor.backlog(topic.positions.durable) for name, each in topic.subscriptions.items()}
        assert backlog == {"s": 0, "__compaction": 1}, path


def test_threshold_when_exceeded_then_the_broker_compacts_by_itself(tmp_path: Path) -> None:
    settings = {"brokerServiceCompactionMonitorIntervalInSeconds": "1", "topicCompactionRetainNullKey": "true"}
    with InProcessBroker(tmp_path, settings) as broker, Client(broker.service_url) as client:
        with client.create_producer("t") as producer:
            producer.send(b"no key")
            for number in range(20):
                producer.send(b"%d" % number + b"x" * 100, key="a")
        admin(broker.web_url, "PUT", "namespaces/public/default/compactionThreshold", 1000)
        stats = awaited(broker, lambda stats: stats["compaction"]["lastCompactionSucceedTimestamp"] > 0)
        assert stats["compaction"]["lastCompactionRemovedEventCount"] == 19
        with client.create_reader("t", read_compacted=True) as reader:
            found = [reader.read_next(60_000).content for _ in range(2)]
        assert found == [b"no key", b"19" + b"x" * 100]


def awaited(broker: InProcessBroker, condition: Any) -> Any:
    """The statistics as soon as they are so."""
    deadline = time.monotonic() + 60
    while not condition(stats := admin(broker.web_url, "GET", f"{BASE}/stats")):
        assert time.monotonic() < deadline, json.dumps(stats)
        time.sleep(0.05)
    return stats
