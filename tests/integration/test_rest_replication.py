"""Enabling replication over REST: checked first, cursors open when the call returns, state visible afterwards."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.topic import subscription as live_subscription
from interpulse.client import Client, EntryReader
from interpulse.model.errors import SubscriptionNotFound
from interpulse.model.ids import EARLIEST
from interpulse.model.names import TopicName
from tests.support.joined_clusters import done
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call
from tests.support.waiting import eventually

REPLICATION = "namespaces/demo/a/replication"
BOTH = ["east", "west"]
TOPIC = "persistent://demo/a/x"
CURSOR_PATH = "persistent/demo/a/x/subscription/pulsar.repl.west"


async def join(east: RestBroker, west: RestBroker) -> None:
    """Both clusters know each other and have the namespace ``demo/a``."""
    await done(east, "PUT", "clusters/west", {"serviceUrl": west.web_url})
    await done(west, "PUT", "clusters/east", {"serviceUrl": east.web_url})
    for broker in (east, west):
        await done(broker, "PUT", "tenants/demo", {"allowedClusters": BOTH})
        await done(broker, "PUT", "namespaces/demo/a")


async def test_set_clusters_opens_a_cursor_on_every_loaded_topic_before_it_returns(
    east: RestBroker, west: RestBroker
) -> None:
    await join(east, west)
    await done(east, "PUT", "persistent/demo/a/x")
    await done(east, "PUT", "persistent/demo/a/p/partitions", 2)
    for name in ("x", "p-partition-0", "p-partition-1"):
        await done(east, "GET", f"persistent/demo/a/{name}/stats")
    await done(east, "POST", REPLICATION, BOTH)
    for name in ("x", "p-partition-0", "p-partition-1"):
        assert await east.store.children(keys.topic_record(TopicName.parse(f"demo/a/{name}"))) == ["pulsar.repl.west"]
        stats = (await call(east.web_url, "GET", f"persistent/demo/a/{name}/stats")).json
        assert list(stats["replication"]) == ["west"]


async def test_topic_that_is_not_loaded_when_clusters_are_set_is_left_alone_and_opens_its_cursor_when_it_is(
    east: RestBroker, west: RestBroker
) -> None:
    await join(east, west)
    for index in range(50):
        await done(east, "PUT", f"persistent/demo/a/t{index}")
    await done(east, "POST", REPLICATION, BOTH)
    assert len(east.context.registry.names) == 0
    stats = (await done(east, "GET", "persistent/demo/a/t7/stats")).json
    assert list(stats["replication"]) == ["west"]
    assert await east.store.children(keys.topic_record(TopicName.parse("demo/a/t7"))) == ["pulsar.repl.west"]


async def test_clusters_that_are_left_out_hold_nothing_back_in_topics_that_are_loaded_again(
    east: RestBroker, west: RestBroker
) -> None:
    await join(east, west)
    await done(east, "PUT", "persistent/demo/a/x")
    record = keys.topic_record(TopicName.parse("demo/a/x"))
    own = "persistent/demo/a/x/replication"
    ways = [
        (("POST", REPLICATION, BOTH), ("POST", REPLICATION, ["east"])),
        (("POST", own, BOTH), ("DELETE", own, None)),
        (("POST", own, BOTH), ("POST", own, ["east"])),
    ]
    for begin, end in ways:
        await done(east, *begin)
        await done(east, "GET", "persistent/demo/a/x/stats")  # it is loaded
        assert await east.store.children(record) == ["pulsar.repl.west"]
        await done(east, "PUT", "persistent/demo/a/x/unload")
        await done(east, *end)
        assert len(east.context.registry.names) == 0
        await done(east, "GET", "persistent/demo/a/x/stats")
        assert await east.store.children(record) == []


async def test_set_clusters_when_compared_and_equal_is_stored(east: RestBroker, west: RestBroker) -> None:
    await join(east, west)
    for broker in (east, west):
        await done(broker, "PUT", "persistent/demo/a/p/partitions", 2)
    await done(east, "PUT", "persistent/demo/a/only-here/partitions", 3)
    await done(west, "PUT", "persistent/demo/a/only-there/partitions", 4)
    await done(east, "POST", f"{REPLICATION}?compareTopicPartitions=true", BOTH)
    assert (await call(east.web_url, "GET", REPLICATION)).json == BOTH


async def test_set_clusters_when_compared_lists_every_difference_and_stores_nothing(
    east: RestBroker, west: RestBroker
) -> None:
    await join(east, west)
    await done(east, "PUT", "persistent/demo/a/p/partitions", 2)
    await done(west, "PUT", "persistent/demo/a/p/partitions", 3)
    await done(east, "PUT", "persistent/demo/a/x")
    await done(west, "PUT", "persistent/demo/a/x/partitions", 1)
    await done(west, "POST", "brokers/configuration/allowAutoTopicCreation/false")
    reply = await call(east.web_url, "POST", f"{REPLICATION}?compareTopicPartitions=true", BOTH)
    assert reply.status == 409
    for words in (
        "Partition count mismatch for topic 'persistent://demo/a/p': local cluster has 2 partitions, "
        "remote cluster 'west' has 3 partitions",
        "Topic type mismatch for topic 'persistent://demo/a/x': local cluster has a non-partitioned topic, "
        "but remote cluster 'west' has a partitioned topic with 1 partitions",
        "auto-topic creation policy mismatch with west: allowAutoTopicCreation: local=true, remote=false",
    ):
        assert words in reply.reason
    assert (await call(east.web_url, "GET", REPLICATION)).json == ["east"]


async def test_set_clusters_when_compared_and_the_namespace_is_missing_there_asks_for_it(
    east: RestBroker, west: RestBroker
) -> None:
    await join(east, west)
    await done(west, "DELETE", "namespaces/demo/a")
    reply = await call(east.web_url, "POST", f"{REPLICATION}?compareTopicPartitions=true", BOTH)
    assert (reply.status, "demo/a does not exist on cluster west" in reply.reason) == (409, True)


async def test_set_clusters_when_compared_and_the_cluster_is_away_names_it(east: RestBroker, west: RestBroker) -> None:
    await join(east, west)
    await done(east, "POST", "clusters/west", {"serviceUrl": "http://127.0.0.1:1"})
    reply = await call(east.web_url, "POST", f"{REPLICATION}?compareTopicPartitions=true", BOTH)
    assert (reply.status, "west at http://127.0.0.1:1 cannot be compared" in reply.reason) == (409, True)
    await done(east, "POST", REPLICATION, BOTH)


@pytest.mark.parametrize(("elsewhere", "expected"), [(3, 3), (0, 0)])
async def test_topic_created_by_asking_gets_the_shape_it_has_on_the_other_cluster(
    east: RestBroker, west: RestBroker, elsewhere: int, expected: int
) -> None:
    await join(east, west)
    await done(east, "POST", REPLICATION, BOTH)
    await done(east, "POST", "brokers/configuration/allowAutoTopicCreationType/partitioned")
    if elsewhere:
        await done(west, "PUT", "persistent/demo/a/p/partitions", elsewhere)
    else:
        await done(west, "PUT", "persistent/demo/a/p")
    question = "persistent/demo/a/p/partitions?checkAllowAutoCreation=true"
    assert (await done(east, "GET", question)).json["partitions"] == expected


async def test_topic_created_by_asking_where_creation_on_other_clusters_is_off_follows_the_policy_here(
    west: RestBroker,
) -> None:
    config = BrokerConfig(cluster_name="east", create_topic_to_remote_cluster_for_replication=False)
    async with rest_broker(config) as east:
        await join(east, west)
        await done(east, "POST", REPLICATION, BOTH)
        await done(west, "PUT", "persistent/demo/a/p/partitions", 3)
        question = "persistent/demo/a/p/partitions?checkAllowAutoCreation=true"
        assert (await done(east, "GET", question)).json["partitions"] == 0


async def test_topic_created_by_asking_while_the_other_cluster_is_away_follows_the_policy_here(
    east: RestBroker, west: RestBroker
) -> None:
    await join(east, west)
    await done(east, "POST", "clusters/west", {"serviceUrl": "http://127.0.0.1:1"})
    await done(east, "POST", REPLICATION, BOTH)
    await done(east, "POST", "brokers/configuration/allowAutoTopicCreationType/partitioned")
    for name in ("p", "q"):
        question = f"persistent/demo/a/{name}/partitions?checkAllowAutoCreation=true"
        assert (await done(east, "GET", question)).json["partitions"] == 1


async def test_status_tells_what_is_known_of_every_topic(east: RestBroker, west: RestBroker) -> None:
    await join(east, west)
    await done(east, "PUT", "persistent/demo/a/x")
    assert (await call(east.web_url, "GET", f"{REPLICATION}/status")).json == []
    await done(east, "POST", REPLICATION, BOTH)
    await done(east, "PUT", "non-persistent/demo/a/n")
    states = {each["topic"]: each["state"] for each in (await call(east.web_url, "GET", f"{REPLICATION}/status")).json}
    assert states == {TOPIC: "PROVISIONING", "non-persistent://demo/a/n": "NOT_APPLICABLE"}


async def test_status_reported_by_the_job_is_shown_until_the_cluster_leaves_the_list(
    east: RestBroker, west: RestBroker
) -> None:
    await join(east, west)
    await done(east, "PUT", "persistent/demo/a/x")
    await done(east, "POST", REPLICATION, BOTH)
    record = {
        "topic": TOPIC,
        "cluster": "west",
        "state": "HELD",
        "since": 5,
        "reason": "counts differ",
        "lagEntries": 7,
    }
    await done(east, "POST", f"{REPLICATION}/status", [record])
    shown = (await call(east.web_url, "GET", "persistent/demo/a/x/replication/status")).json
    assert [{key: each[key] for key in record} for each in shown] == [record]
    figures = {"msgRateOut": 2.5, "msgThroughputOut": 100.0, "replicationDelayInSeconds": 4}
    reported = record | {"msgRateOut": 2.5, "msgThroughputOut": 100, "lagSeconds": 4.2}
    await done(east, "POST", f"{REPLICATION}/status", [reported])
    shown = (await call(east.web_url, "GET", "persistent/demo/a/x/stats")).json["replication"]["west"]
    held = figures | {"replicationBacklog": 0, "connected": False}
    assert {key: shown[key] for key in held} == held
    assert shown["status"]["state"] == "HELD"
    await done(east, "POST", REPLICATION, ["east"])
    shown = (await call(east.web_url, "GET", "persistent/demo/a/x/replication/status")).json
    assert [each["state"] for each in shown] == ["DISABLED"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"{CURSOR_PATH}/skip/2", None),
        ("POST", f"{CURSOR_PATH}/skip_all", None),
        ("POST", f"{CURSOR_PATH}/expireMessages/0", None),
        ("POST", f"{CURSOR_PATH}/expireMessages", {"ledgerId": 0, "entryId": 1}),
        ("POST", f"{CURSOR_PATH}/resetcursor", {"ledgerId": 0, "entryId": 2}),
        ("POST", "namespaces/demo/a/clearBacklog/pulsar.repl.west", None),
    ],
    ids=["skip", "skip-all", "expire", "expire-upto", "reset", "clear-backlog"],
)
async def test_cursor_when_moved_then_the_answer_waits_until_no_task_sends_what_it_passed(
    east: RestBroker, west: RestBroker, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    monkeypatch.setattr(live_subscription, "HELD_S", 0.3)
    await join(east, west)
    await done(east, "POST", REPLICATION, BOTH)
    async with Client(east.app.service_url) as client:
        producer = await client.create_producer(TOPIC, batching_enabled=False)
        ids = [await producer.send(b"%d" % number) for number in range(3)]
        reader = EntryReader(
            client.session, TopicName.parse(TOPIC), after=EARLIEST, replication_cursor="pulsar.repl.west"
        )
        await reader.open()
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        assert (await reader.promised_position()).entry == -1
        given = body and {**body, "ledgerId": ids[0].ledger}
        await done(east, method, path, given)
        assert loop.time() - asked_at >= 0.3
        assert (await reader.promised_position()).entry >= 1
        await reader.close()


async def test_reader_of_a_task_when_policies_close_its_cursor_then_nothing_more_arrives(
    east: RestBroker, west: RestBroker
) -> None:
    await join(east, west)
    await done(east, "POST", REPLICATION, BOTH)
    async with Client(east.app.service_url) as client:
        producer = await client.create_producer(TOPIC, batching_enabled=False)
        await producer.send(b"copied")
        name = TopicName.parse(TOPIC)
        reader = EntryReader(client.session, name, after=EARLIEST, replication_cursor="pulsar.repl.west")
        await reader.open()
        assert len(await reader.read_batch()) == 1
        await done(east, "POST", REPLICATION, ["east"])
        await producer.send(b"published while no policy asks")
        with pytest.raises(SubscriptionNotFound):
            await reader.read_batch()
        await reader.close()
        async with EntryReader(client.session, name, after=EARLIEST, replication_cursor="interpulse.mine") as by_hand:
            await by_hand.open()
            assert len(await by_hand.read_batch()) >= 1


@pytest.mark.parametrize("partitions", [0, 2])
async def test_replicator_when_the_job_reads_then_is_connected_only_while_the_status_says_so(
    west: RestBroker, partitions: int
) -> None:
    """The job stays attached to the source while the remote cluster is away."""
    names = [f"{TOPIC}-partition-{index}" for index in range(partitions)] or [TOPIC]
    config = BrokerConfig(cluster_name="east")
    async with rest_broker(config, provisioning=True) as east, Client(east.app.service_url) as job:
        await join(east, west)
        await done(
            east, "POST", "clusters/west", {"serviceUrl": west.web_url, "brokerServiceUrl": west.app.service_url}
        )
        await done(east, "POST", REPLICATION, BOTH)
        path = "persistent/demo/a/x/partitions" if partitions else "persistent/demo/a/x"
        await done(east, "PUT", path, partitions or None)
        provisioned = east.app.parts.replication.remote_topics.results
        await eventually(lambda: provisioned["west", "created"] == 1)
        for name in names:
            await job.subscribe(name, "pulsar.repl.west")

        async def shown(state: str) -> tuple[bool, str, set[float]]:
            """What the statistics of the topic and the metrics say when the job has reported its first partition."""
            records = [
                {"topic": name, "cluster": "west", "state": "REPLICATING" if index else state}
                for index, name in enumerate(names)
            ]
            await done(east, "POST", f"{REPLICATION}/status", records)
            path = "persistent/demo/a/x/partitioned-stats" if partitions else "persistent/demo/a/x/stats"
            found = (await done(east, "GET", path)).json["replication"]["west"]
            lines = (await call(east.web_url, "GET", "/metrics")).body.decode().splitlines()
            first = f'topic="{names[0]}"'
            counts = [line for line in lines if first in line and line.startswith("pulsar_replication_connected_count")]
            return found["connected"], found["status"]["state"], {float(line.split()[-1]) for line in counts}

        assert await shown("REPLICATING") == (True, "REPLICATING", {1.0})
        for state in ("DISCONNECTED", "HELD", "PROVISIONING"):
            assert await shown(state) == (False, state, {0.0})


@pytest.mark.parametrize(
    "record",
    [
        "text",
        {"topic": TOPIC, "cluster": "west", "state": "FINE"},
        {"topic": TOPIC, "state": "HELD"},
        {"topic": "persistent://demo/b/x", "cluster": "west", "state": "HELD"},
    ],
)
async def test_status_report_that_makes_no_sense_is_refused(east: RestBroker, west: RestBroker, record: Any) -> None:
    await join(east, west)
    assert (await call(east.web_url, "POST", f"{REPLICATION}/status", [record])).status == 400


async def test_peer_clusters_cannot_both_be_listed(east: RestBroker, west: RestBroker) -> None:
    await join(east, west)
    await done(east, "POST", "clusters/west", {"serviceUrl": west.web_url, "peerClusterNames": ["east"]})
    assert (await call(east.web_url, "POST", REPLICATION, BOTH)).status == 409


async def test_status_of_many_topics_is_one_array_that_is_sent_in_parts(east: RestBroker, west: RestBroker) -> None:
    await join(east, west)
    for index in range(230):
        await done(east, "PUT", f"persistent/demo/a/t{index:03}")
    await done(east, "POST", REPLICATION, BOTH)
    reply = await call(east.web_url, "GET", f"{REPLICATION}/status")
    assert reply.status == 200
    assert [record["topic"] for record in reply.json] == [f"persistent://demo/a/t{index:03}" for index in range(230)]
    assert (await call(east.web_url, "GET", "namespaces/demo/none/replication/status")).status == 404
