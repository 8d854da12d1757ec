"""A broker of a cluster in this process, on a ZooKeeper and bookies in this process: what it keeps, and where."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.broker.cluster_stores import in_cluster
from interpulse.broker.config.config_sources import load_config
from interpulse.broker.live.compaction.compaction import CompactionStatus
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.tenancy.cluster_setup import NewCluster, set_up_cluster
from interpulse.client import AdminClient, Client
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.names import TopicName
from interpulse.storage.bookkeeper.metadata_store import LedgerMetadataStore
from interpulse.storage.bookkeeper.records import Quorum, id_of
from interpulse.storage.cursors import COMPACTED_LEDGER, COMPACTION_CURSOR
from interpulse.storage.managed_ledger.cursor_codec import IN_RECORD, decode_record
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.support.rest_client import call
from tests.support.scripted_bookie import scripted_bookies
from tests.support.scripted_zookeeper import scripted_zookeeper
from tests.support.waiting import eventually

Start = Callable[..., Awaitable[BrokerApp]]
TOPICS = "persistent/public/default"
RECORDS = "/managed-ledgers/public/default/persistent"


@pytest.fixture
async def nodes() -> AsyncIterator[ZooKeeperClient]:
    """A client of a ZooKeeper with a cluster and three bookies; another server of it is in its `servers`."""
    async with scripted_zookeeper() as zookeeper, AsyncExitStack() as running:
        servers = await zookeeper.listen()
        addresses = ClusterData("http://127.0.0.1:1", broker_service_url="pulsar://127.0.0.1:2")
        await set_up_cluster(servers, NewCluster("lab", addresses))
        client = await ZooKeeperClient.connect(servers)
        running.push_async_callback(client.close)
        await running.enter_async_context(scripted_bookies(client, 3))
        yield client


@pytest.fixture
async def start(nodes: ZooKeeperClient, tmp_path: Path) -> AsyncIterator[Start]:
    """`await start(**settings)`: a broker, stopped at the end."""
    async with AsyncExitStack() as running:

        async def start_broker(data_dir: str = "data", **settings: Any) -> BrokerApp:
            given = {
                "clusterName": "lab",
                "metadataStoreUrl": f"zk:{nodes.servers}",
                "dataDir": str(tmp_path / data_dir),
                "brokerServicePort": "0",
                "webServicePort": "0",
                "forceDeleteNamespaceAllowed": "true",
                **settings,
            }
            app = BrokerApp(load_config(options=given, in_cluster=True).config, open_stores=in_cluster)
            await app.start()
            running.push_async_callback(app.stop)
            return app

        yield start_broker


async def ledgers(nodes: ZooKeeperClient) -> set[int]:
    """Every ledger there is."""
    names = (await nodes.children("/ledgers/00/0000")).names
    return {number for name in names if (number := id_of(f"/ledgers/00/0000/{name}")) is not None}


async def test_ledgers_when_a_policy_names_bookies_then_the_next_ones_lie_on_so_many(
    nodes: ZooKeeperClient, start: Start
) -> None:
    app = await start(managedLedgerDefaultEnsembleSize="3")
    known: set[int] = set()
    log_name = TopicName.parse("persistent://public/default/t").log_name.encode()

    async def newest_quorums() -> set[Quorum]:
        """Those of the new ledgers of the topic and its cursors."""
        new = await ledgers(nodes) - known
        known.update(new)
        found = [(await LedgerMetadataStore(nodes).read(ledger)).ledger for ledger in new]
        return {each.quorum for each in found if each.custom.get("pulsar/managed-ledger") == log_name}

    async def set_copies(path: str, ensemble: int, write: int, ack: int) -> None:
        copies = {"bookkeeperEnsemble": ensemble, "bookkeeperWriteQuorum": write, "bookkeeperAckQuorum": ack}
        reply = await call(app.web_url, "POST", f"{path}/persistence", copies)
        assert reply.status == 204, reply
        shown = (await call(app.web_url, "GET", f"{path}/persistence")).json
        assert shown == {**copies, "managedLedgerMaxMarkDeleteRate": -1.0}

    async def reload() -> None:
        assert (await call(app.web_url, "PUT", f"{topic}/unload")).status == 204
        assert (await call(app.web_url, "GET", f"{topic}/stats")).status == 200

    topic = f"{TOPICS}/t"
    await call(app.web_url, "PUT", topic)
    await call(app.web_url, "PUT", f"{topic}/subscription/s")
    assert await newest_quorums() == {Quorum(3, 2, 2)}
    await set_copies("namespaces/public/default", 2, 1, 1)
    await reload()
    assert await newest_quorums() == {Quorum(2, 1, 1)}
    await set_copies(topic, 1, 1, 1)
    applied = await call(app.web_url, "GET", f"{topic}/persistence?applied=true")
    assert applied.json["bookkeeperEnsemble"] == 1
    await reload()
    assert await newest_quorums() == {Quorum(1, 1, 1)}
    await call(app.web_url, "DELETE", f"{topic}/persistence")
    applied = await call(app.web_url, "GET", f"{topic}/persistence?applied=true")
    assert applied.json["bookkeeperEnsemble"] == 2


async def test_topic_when_its_broker_was_stopped_then_goes_on_where_it_was(
    nodes: ZooKeeperClient, start: Start
) -> None:
    app = await start()
    async with Client(app.service_url) as client:
        consumer = await client.subscribe("x", "s")
        async with await client.create_producer("x") as producer:
            for number in range(10):
                await producer.send(b"%d" % number)
        for _ in range(5):
            consumer.acknowledge(await consumer.receive())
        topic = next(iter(app.registry.topics()))
        assert isinstance(topic, Topic)
        await eventually(lambda: topic.mark_delete_position("s").entry == 4)
        await app.registry.flush()
        record = decode_record((await nodes.get(f"{RECORDS}/x/s")).value)
        assert record.ledger_id in await ledgers(nodes)
    await app.stop()
    record = decode_record((await nodes.get(f"{RECORDS}/x/s")).value)
    assert (record.ledger_id, record.state.mark_delete.entry) == (IN_RECORD, 4)
    assert len(await ledgers(nodes)) == 1

    app = await start()
    async with Client(app.service_url) as client:
        consumer = await client.subscribe("x", "s")
        assert [(await consumer.receive()).content for _ in range(5)] == [b"%d" % number for number in range(5, 10)]


async def test_message_when_as_large_as_told_then_is_stored_and_a_larger_one_is_refused_before(start: Start) -> None:
    app = await start(
        brokerEntryMetadataInterceptors="org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor"
    )
    async with Client(app.service_url) as client:
        consumer = await client.subscribe("x", "s")
        async with await client.create_producer("x", batching_enabled=False) as producer:
            with pytest.raises(InvalidRequest, match="above the limit of 5232416 bytes"):
                await producer.send(bytes(5 * 1024 * 1024))
            await producer.send(bytes(5_232_300))
            topic = next(iter(app.registry.topics()))
            await producer.send(b"small")
        assert [len((await consumer.receive()).content or b"") for _ in range(2)] == [5_232_300, 5]
        assert next(iter(app.registry.topics())) is topic


async def test_namespace_when_deleted_by_force_then_no_ledger_of_its_topics_is_left(
    nodes: ZooKeeperClient, start: Start
) -> None:
    app = await start()
    assert (await call(app.web_url, "PUT", "namespaces/public/gone")).status == 204
    schema = {"type": "STRING", "schema": "", "properties": {}}
    async with Client(app.service_url) as client:
        for number in range(3):
            name = f"public/gone/t{number}"
            async with await client.create_producer(name) as producer:
                await producer.send(b"1")
            assert (await call(app.web_url, "POST", f"schemas/{name}/schema", schema)).status == 200
            consumer = await client.subscribe(name, "s", initial_position="earliest")
            consumer.acknowledge(await consumer.receive())
        topics = [topic for topic in app.registry.topics() if isinstance(topic, Topic)]
        await eventually(
            lambda: not any(each.subscription("s").cursor.backlog(each.log.last_position) for each in topics)
        )
        await app.registry.flush()
    assert len(await ledgers(nodes)) == 9
    assert (await call(app.web_url, "DELETE", "persistent/public/gone/t0?force=true")).status == 204
    assert len(await ledgers(nodes)) == 6
    assert (await call(app.web_url, "DELETE", "namespaces/public/gone?force=true")).status == 204
    assert (await call(app.web_url, "GET", "namespaces/public")).json == ["public/default"]
    assert await ledgers(nodes) == set()


async def test_topic_when_compacted_then_the_next_broker_serves_what_was_kept_and_deletes_it(
    nodes: ZooKeeperClient, start: Start
) -> None:
    app = await start()
    async with Client(app.service_url) as client:
        async with await client.create_producer("x") as producer:
            for number in range(20):
                await producer.send(b"%d" % number, key=str(number % 3))
        assert (await call(app.web_url, "PUT", f"{TOPICS}/x/compaction")).status == 204
        topic = next(iter(app.registry.topics()))
        assert isinstance(topic, Topic)
        await eventually(lambda: topic.compaction.status is not CompactionStatus.RUNNING)
        assert topic.compaction.status is CompactionStatus.SUCCESS, topic.compaction.last_error
    before = (await call(app.web_url, "GET", f"{TOPICS}/x/internalStats")).json
    await app.stop()
    compacted = before["compactedLedger"]["ledgerId"]
    record = decode_record((await nodes.get(f"{RECORDS}/x/{COMPACTION_CURSOR}")).value)
    assert record.ledger_id == IN_RECORD
    assert record.state.numbers == {COMPACTED_LEDGER: compacted}
    assert str(record.state.mark_delete) == before["lastConfirmedEntry"]

    app = await start()
    async with Client(app.service_url) as client:
        async with await client.create_reader("x", read_compacted=True) as reader:
            assert [(await reader.read_next()).content for _ in range(3)] == [b"17", b"18", b"19"]
        after = (await call(app.web_url, "GET", f"{TOPICS}/x/internalStats")).json
        assert after["compactedLedger"] == before["compactedLedger"]
        assert after["cursors"][COMPACTION_CURSOR]["properties"] == {COMPACTED_LEDGER: compacted}
    assert (await call(app.web_url, "DELETE", f"{TOPICS}/x?force=true")).status == 204
    assert await ledgers(nodes) == set()


async def test_second_broker_when_the_first_stops_then_has_its_topics_with_all_they_hold(start: Start) -> None:
    brokers = {app.context.this_broker.broker_id: app for app in (await start(), await start("second"))}
    hosts = ",".join(app.service_url.removeprefix("pulsar://") for app in brokers.values())
    async with Client(f"pulsar://{hosts}") as client:
        producer = await client.create_producer("x")
        consumer = await client.subscribe("x", "s")
        await producer.send(b"1")
        await consumer.receive()
        await producer.send(b"2")
        [owner] = [
            app for app in brokers.values() if app.parts.member.shared is not None and app.parts.member.shared.owned
        ]
        await owner.stop()
        del brokers[owner.context.this_broker.broker_id]
        [left] = brokers.values()
        await producer.send(b"3")
        received: list[bytes | None] = []
        while b"3" not in received:
            received.append((await consumer.receive()).content)
        assert [each for each in dict.fromkeys(received) if each != b"1"] == [b"2", b"3"]
        assert (await call(left.web_url, "GET", "brokers")).json == list(brokers)
        assert (await call(left.web_url, "GET", f"{TOPICS}/x/stats")).status == 200


async def test_acknowledgements_when_the_owner_stopped_then_the_next_broker_reports_them(start: Start) -> None:
    first = await start()
    topic, begin = "persistent://public/default/x", MessageId(*EARLIEST)
    async with AdminClient(first.web_url) as admin, Client(first.service_url) as client:
        await admin.topics.create_subscription(topic, "s", begin, replicated=True)
        await admin.topics.create_subscription(topic, "other", begin)
        async with await client.create_producer(topic, batching_enabled=False) as producer:
            sent = [await producer.send(b"%d" % number) for number in range(6)]
        await admin.topics.reset_cursor_to_message(topic, "s", begin)
        ledger, masks = sent[0].ledger, [(sent[0].ledger, 5, [6])]
        ranges = [(ledger, 3, 4)]
        assert await admin.topics.acknowledge(topic, "s", resets=1, mark_delete=sent[0].position, ranges=ranges) == 3
        assert await admin.topics.acknowledge(topic, "s", masks=masks) == 1
        assert (await admin.namespaces.acknowledgements("public/default"))["subscriptions"]
    second = await start("second")
    await first.stop()
    async with AdminClient(second.web_url) as admin:
        (state,) = (await admin.namespaces.acknowledgements("public/default"))["subscriptions"]
    assert (state["subscription"], state["resets"], state["markDelete"]) == ("s", 1, str(sent[0].position))
    assert (state["ranges"], state["masks"]) == ([[ledger, 3, 4]], [[ledger, 5, [6]]])


async def test_properties_and_names_when_broker_is_restarted_then_stay_and_names_are_new(start: Start) -> None:
    app = await start()
    assert (await call(app.web_url, "PUT", f"{TOPICS}/x", {"color": "blue"})).status == 204
    async with Client(app.service_url) as client, await client.create_producer("x") as producer:
        name = producer.name
    await app.stop()
    app = await start()
    async with Client(app.service_url) as client, await client.create_producer("x") as producer:
        assert producer.name != name
        assert producer.name.startswith("lab-")
    assert (await call(app.web_url, "GET", f"{TOPICS}/x/properties")).json == {"color": "blue"}
