"""A broker on a real ZooKeeper and real bookies, with the official client: killed, restarted, stopped, refused."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pulsar
import pytest

from interpulse.storage.bookkeeper.records import id_of
from interpulse.storage.cursors import COMPACTED_LEDGER, COMPACTION_CURSOR
from interpulse.storage.managed_ledger.cursor_codec import IN_RECORD, StoredCursor, decode_record
from interpulse.storage.zookeeper.client import ZooKeeperClient
from tests.interop.java_ledgers import JavaLedgers
from tests.interop.mixed_cluster import Traffic, running
from tests.interop.real_pulsar.bookkeeper import RealBookie
from tests.interop.real_pulsar.zookeeper import RealZooKeeper, real_zookeeper
from tests.support.official_client import RECEIVE_MS, admin, connected, receive, receive_all
from tests.support.standalone_process import BrokerProcess, environment, free_port, interpulse, output_of
from tests.support.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SECONDS_MAX = 120
NAMESPACE = "public/default"
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'
ADDRESS_KEYS = ("metadataStoreUrl", "configurationMetadataStoreUrl", "bookkeeperMetadataServiceUri")

Start = Callable[..., BrokerProcess]


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealZooKeeper]:
    """A ZooKeeper with a cluster and three bookies, started once."""
    directory = tmp_path_factory.mktemp("cluster")
    with real_zookeeper(directory / "zookeeper") as server, ExitStack() as running:
        output_of(
            "cluster", "init", "--cluster", "lab", "--metadata-store", f"zk:{server.address}", "-uw", "http://x:1"
        )
        bookies = [RealBookie(directory / f"bookie-{each}", server.address) for each in range(3)]
        for bookie in bookies:
            bookie.start()
            running.callback(bookie.kill)
        for bookie in bookies:
            bookie.wait()
        yield server


@pytest.fixture
def settings(zookeeper: RealZooKeeper, tmp_path: Path) -> Path:
    """A broker.conf, with ports that stay the same after a restart."""
    file = tmp_path / "broker.conf"
    lines = (
        "clusterName=lab",
        f"metadataStoreUrl=zk:{zookeeper.address}",
        f"configurationMetadataStoreUrl=zk:{zookeeper.address}",
        f"bookkeeperMetadataServiceUri=metadata-store:zk:{zookeeper.address}",
        f"dataDir={tmp_path / 'data'}",
        f"brokerServicePort={free_port()}",
        f"webServicePort={free_port()}",
        "managedLedgerDefaultEnsembleSize=3",
        "managedLedgerDefaultWriteQuorum=3",
        "managedLedgerDefaultAckQuorum=2",
        "metadataStoreSessionTimeoutMillis=40000",
    )
    file.write_text("\n".join(lines))
    return file


@pytest.fixture
def start(settings: Path) -> Iterator[Start]:
    """`start(*more)`: a broker with these settings, and others in their place; stopped at the end of the test."""
    with ExitStack() as running:

        def begin(*more: str) -> BrokerProcess:
            options = [part for each in more for part in ("--set", each)]
            line = interpulse("broker", "--config", str(settings), *options)
            return running.enter_context(BrokerProcess(line, settings.with_suffix(f".{len(more)}.log")))

        yield begin


def refused(settings: Path, *more: str) -> str:
    """Why a broker does not start."""
    options = [part for each in more for part in ("--set", each)]
    line = interpulse("broker", "--config", str(settings), *options)
    done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS_MAX, env=environment())
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[-1]


async def cursors_of(zookeeper: RealZooKeeper, topic: str) -> dict[str, StoredCursor]:
    client = await ZooKeeperClient.connect(zookeeper.address)
    try:
        above = f"/managed-ledgers/{NAMESPACE}/persistent/{topic}"
        names = (await client.children(above)).names
        return {name: decode_record((await client.get(f"{above}/{name}")).value) for name in names}
    finally:
        await client.close()


async def ledgers_of(zookeeper: RealZooKeeper, topic: str) -> set[int]:
    """The ledgers that say that they are of this topic."""
    client = await ZooKeeperClient.connect(zookeeper.address)
    try:
        above = "/ledgers/00/0000"
        paths = [f"{above}/{name}" for name in (await client.children(above)).names]
        found = await client.get_many(paths)
        mine = (f"{NAMESPACE}/persistent/{topic}".encode(), f"{NAMESPACE}/{topic}".encode())
        nodes = [(path, node.value) for path, node in zip(paths, found, strict=True) if node]
        ids = (id_of(path) for path, value in nodes if any(each in value for each in mine))
        return {ledger_id for ledger_id in ids if ledger_id is not None}
    finally:
        await client.close()


async def values_below(zookeeper: RealZooKeeper, path: str) -> dict[str, bytes]:
    """The values of the children of a node."""
    client = await ZooKeeperClient.connect(zookeeper.address)
    try:
        names = sorted((await client.children(path)).names)
        return {name: (await client.get(f"{path}/{name}")).value for name in names}
    finally:
        await client.close()


async def test_broker_when_killed_and_started_again_then_no_message_and_no_acknowledgement_is_lost(
    zookeeper: RealZooKeeper, start: Start
) -> None:
    topic, count = f"persistent://{NAMESPACE}/killed", 200
    broker = start()
    with connected(broker.service_url) as client:
        consumer = client.subscribe(topic, "shared", consumer_type=pulsar.ConsumerType.Shared)
        producer = client.create_producer(topic, batching_enabled=False)
        for number in range(count):
            producer.send(b"%d" % number)
        for number, message in enumerate(receive(consumer, count)):
            if number < 100 or number % 2 == 0:
                consumer.acknowledge(message)
        async with asyncio.timeout(SECONDS_MAX):  # the first flush begins a ledger
            while (await cursors_of(zookeeper, "killed"))["shared"].ledger_id == IN_RECORD:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        broker.kill()

        broker = start()
        unacknowledged = {number for number in range(100, count) if number % 2}
        waiting = [int(each.data()) for each in receive_all(consumer, len(unacknowledged))]
        assert waiting == sorted(waiting)
        assert unacknowledged <= set(waiting)  # what was acknowledged after the last flush comes again
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        assert [int(reader.read_next(RECEIVE_MS).data()) for _ in range(count)] == list(range(count))
        producer.send(b"after")
        assert consumer.receive(RECEIVE_MS).data() == b"after"


async def test_broker_when_stopped_and_started_again_then_records_hold_what_was_acknowledged(
    zookeeper: RealZooKeeper, start: Start
) -> None:
    topic = f"persistent://{NAMESPACE}/stopped"
    broker = start()
    with connected(broker.service_url) as client:
        consumer = client.subscribe(topic, "my sub", consumer_type=pulsar.ConsumerType.Shared)
        admin(broker.web_url, "PUT", f"persistent/{NAMESPACE}/stopped/subscription/my+sub/properties", {"a": "b"})
        producer = client.create_producer(topic, batching_enabled=False)
        name = producer.producer_name()
        assert name.startswith("lab-")
        for number in range(20):
            producer.send(b"%d" % number)
        for number, message in enumerate(receive(consumer, 20)):
            if number < 5 or number in (7, 8, 12):
                consumer.acknowledge(message)
        stats = f"persistent/{NAMESPACE}/stopped/stats"
        until(lambda: admin(broker.web_url, "GET", stats)["subscriptions"]["my sub"]["msgBacklog"] == 12)
        assert broker.stop() == 0
        (cursor,) = (await cursors_of(zookeeper, "stopped")).values()
        ledger = cursor.state.mark_delete.ledger
        assert cursor.ledger_id == IN_RECORD
        assert cursor.state.mark_delete == (ledger, 4)
        assert cursor.state.ranges == ((ledger, 7, 8), (ledger, 12, 12))
        assert cursor.state.properties == {"a": "b"}
        assert await ledgers_of(zookeeper, "stopped") == {ledger}

        broker = start()
        schema = {"type": "JSON", "schema": RECORD, "properties": {"p": "q"}}
        admin(broker.web_url, "POST", f"schemas/{NAMESPACE}/stopped/schema", schema)
        assert broker.stop() == 0
        broker = start()
        found = admin(broker.web_url, "GET", f"schemas/{NAMESPACE}/stopped/schema")
        assert (found["version"], found["type"], found["data"], found["properties"]) == (0, "JSON", RECORD, {"p": "q"})
        left = [number for number in range(20) if number >= 5 and number not in (7, 8, 12)]
        assert [int(each.data()) for each in receive_all(consumer, len(left))] == left
        assert client.create_producer(topic).producer_name() != name
    admin(broker.web_url, "DELETE", f"persistent/{NAMESPACE}/stopped?force=true")
    assert await ledgers_of(zookeeper, "stopped") == set()


async def test_records_when_an_operator_makes_them_then_lie_where_pulsar_has_them(
    zookeeper: RealZooKeeper, start: Start
) -> None:
    broker = start()
    topics = f"persistent/{NAMESPACE}"
    admin(broker.web_url, "PUT", f"{topics}/parted/partitions", 2)
    admin(broker.web_url, "POST", f"{topics}/parted/partitions", 3)
    records = await values_below(zookeeper, f"/managed-ledgers/{NAMESPACE}/persistent")
    assert {name: value for name, value in records.items() if name.startswith("parted")} == {
        f"parted-partition-{index}": b"" for index in range(3)
    }
    admin(broker.web_url, "PUT", f"{topics}/plain", {"color": "blue"})
    assert admin(broker.web_url, "GET", f"{topics}/plain/properties") == {"color": "blue"}

    admin(broker.web_url, "PUT", "namespaces/public/divided", {"bundles": {"numBundles": 2}})
    admin(broker.web_url, "PUT", "namespaces/public/divided/0x00000000_0x80000000/split")
    body = json.loads((await values_below(zookeeper, "/admin/local-policies/public"))["divided"])
    assert body == {
        "migrated": False,
        "bundles": {"boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xffffffff"], "numBundles": 3},
    }
    assert admin(broker.web_url, "GET", "namespaces/public/divided/bundles") == body["bundles"]
    admin(broker.web_url, "DELETE", "namespaces/public/divided")
    assert "divided" not in await values_below(zookeeper, "/admin/local-policies/public")

    domain = "clusters/lab/failureDomains/rack1"
    admin(broker.web_url, "POST", domain, {"brokers": ["127.0.0.1:8080"]})
    assert await values_below(zookeeper, "/admin/clusters/lab/failureDomain") == {
        "rack1": b'{"brokers": ["127.0.0.1:8080"]}'
    }
    assert admin(broker.web_url, "GET", domain) == {"brokers": ["127.0.0.1:8080"]}


async def test_topic_when_compacted_and_its_broker_is_killed_then_another_serves_it_and_java_reads_what_was_kept(
    zookeeper: RealZooKeeper, start: Start
) -> None:
    name = "compacted"
    topic, path = f"persistent://{NAMESPACE}/{name}", f"persistent/{NAMESPACE}/{name}"
    short = "metadataStoreSessionTimeoutMillis=4000"
    broker = start(short)

    def publish(client: pulsar.Client, begin: int) -> None:
        producer = client.create_producer(topic, batching_enabled=False)
        for number in range(begin, begin + 50):
            producer.send(b"%d" % number, partition_key=str(number % 5))
        producer.close()

    def compact() -> dict[str, Any]:
        admin(broker.web_url, "PUT", f"{path}/compaction")
        until(lambda: admin(broker.web_url, "GET", f"{path}/compaction")["status"] != "RUNNING")
        assert admin(broker.web_url, "GET", f"{path}/compaction") == {"status": "SUCCESS", "lastError": ""}
        return dict(admin(broker.web_url, "GET", f"{path}/internalStats")["compactedLedger"])

    def kept(client: pulsar.Client) -> list[int]:
        reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
        found = []
        while reader.has_message_available():
            found.append(int(reader.read_next(RECEIVE_MS).data()))
        reader.close()
        return found

    with connected(broker.service_url) as client:
        publish(client, 0)
        first = compact()
        publish(client, 50)
        second = compact()
        assert second["entries"] == 5
        cursor = (await cursors_of(zookeeper, name))[COMPACTION_CURSOR]
        assert cursor.state.numbers == {COMPACTED_LEDGER: second["ledgerId"]}
        ledgers = await ledgers_of(zookeeper, name)
        assert second["ledgerId"] in ledgers
        assert first["ledgerId"] not in ledgers
        broker.kill()

        broker = start(short)
        assert kept(client) == list(range(95, 100))
        assert admin(broker.web_url, "GET", f"{path}/internalStats")["compactedLedger"] == second
        publish(client, 100)
        third = compact()
        assert kept(client) == list(range(145, 150))

    java = JavaLedgers(zookeeper.address)
    try:
        assert await java.ask("open", third["ledgerId"], "CRC32") == f"4 {third['size']} true"
        assert (await java.ask("read", third["ledgerId"])).startswith("5 ")
        assert (await java.ask("metadata", third["ledgerId"])).endswith(" compacted-ledger")
    finally:
        java.stop()
    admin(broker.web_url, "DELETE", f"{path}?force=true")
    assert await ledgers_of(zookeeper, name) == set()


def test_broker_when_it_cannot_serve_the_cluster_then_says_why(zookeeper: RealZooKeeper, settings: Path) -> None:
    assert "cluster west (clusterName) is not registered in this metadata store, which has lab" in refused(
        settings, "clusterName=west"
    )
    assert "which has none: correct the name, or initialise the cluster with `interpulse cluster init`" in refused(
        settings, *(f"{key}=zk:{zookeeper.address}/nothing" for key in ADDRESS_KEYS)
    )


def test_brokers_when_one_is_killed_or_paused_then_the_others_serve_its_topics(start: Start, tmp_path: Path) -> None:
    session = "metadataStoreSessionTimeoutMillis=6000"
    others = (session, "brokerServicePort=0", "webServicePort=0")
    brokers = [start(session), *(start(*others, f"dataDir={tmp_path / name}") for name in ("second", "third"))]
    ids = {broker.web_url.removeprefix("http://"): broker for broker in brokers}
    topics = [f"persistent://{NAMESPACE}/shared-{number}" for number in range(8)]
    acknowledged: dict[str, list[bytes]] = {topic: [] for topic in topics}

    def owner(topic: str) -> BrokerProcess | None:
        """As one of the brokers says, which has it taken if it is free."""
        found = json.loads(get(f"{brokers[0].web_url}/lookup/v2/topic/{topic.replace('://', '/')}"))
        return ids.get(found["brokerId"])

    def publish(client: pulsar.Client, rounds: int) -> None:
        for topic in topics:
            producer = client.create_producer(topic, send_timeout_millis=60_000)
            for _ in range(rounds):
                payload = b"%d" % len(acknowledged[topic])
                producer.send(payload)
                acknowledged[topic].append(payload)
            producer.close()

    with connected(url_of(brokers)) as client:
        for topic in topics:
            client.subscribe(topic, "s").close()
        publish(client, 10)
        victim = until(lambda: owner(topics[0]))
        assert victim is not None
        victim.kill()
        brokers.remove(victim)
        publish(client, 10)
        zombie = until(lambda: owner(topics[0]))
        assert zombie is not None
        with paused(zombie):
            brokers.remove(zombie)
            until(lambda: owner(topics[0]) not in (None, zombie))
            with connected(brokers[0].service_url) as other:
                publish(other, 10)
        brokers.append(zombie)
        publish(client, 10)
        for topic in topics:
            consumer = client.subscribe(topic, "s")
            received = list(
                dict.fromkeys(message.data() for message in receive_all(consumer, len(acknowledged[topic])))
            )
            assert received == acknowledged[topic]


def test_brokers_when_zookeeper_is_paused_or_restarted_then_publishing_goes_on_and_all_is_as_before(
    zookeeper: RealZooKeeper, start: Start, tmp_path: Path
) -> None:
    """Cluster 17, row 8. The bookies lose sight of ZooKeeper as well."""
    seconds = 4
    session = f"metadataStoreSessionTimeoutMillis={seconds * 1000}"
    brokers = [start(session), start(session, "brokerServicePort=0", "webServicePort=0", f"dataDir={tmp_path / '2'}")]
    topics = [f"persistent://{NAMESPACE}/unattended-{number}" for number in range(6)]

    def owners() -> set[str]:
        """The brokers that own topics, as each of them says; nothing where one cannot say."""
        paths = [f"lookup/v2/topic/{topic.replace('://', '/')}" for topic in topics]
        return {json.loads(get(f"{broker.web_url}/{path}"))["brokerId"] for broker in brokers for path in paths}

    with running(Traffic(topics), url_of(brokers)) as load:
        for pause in (seconds / 2, seconds * 2):
            until(lambda: "" not in owners())
            begun = time.monotonic()
            zookeeper.pause()
            try:
                load.goes_on()
                if pause > seconds:
                    unread = f"lookup/v2/topic/persistent/{NAMESPACE}/unread"
                    answers = [answer(f"{broker.web_url}/{unread}") for broker in brokers]
                    assert [status for status, _ in answers] == [503, 503], answers
                time.sleep(max(0.0, begun + pause - time.monotonic()))  # the length of the fault
                load.goes_on()
            finally:
                zookeeper.go_on()
            until(lambda: "" not in owners())
            load.goes_on()
        zookeeper.kill()
        try:
            load.goes_on()
        finally:
            zookeeper.start()
        until(lambda: "" not in owners())
        load.goes_on()
        ids = {broker.web_url.removeprefix("http://") for broker in brokers}
        until(lambda: owners() <= ids)


@contextmanager
def paused(broker: BrokerProcess) -> Iterator[None]:
    """A broker that gets no time, as on a machine that sleeps."""
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def url_of(brokers: Sequence[BrokerProcess]) -> str:
    """All of them, for clients."""
    return "pulsar://" + ",".join(broker.service_url.removeprefix("pulsar://") for broker in brokers)


def answer(url: str) -> tuple[int, str]:
    """Return the status and the body that a broker answers, or the one that it redirects to."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS_MAX) as reply:
            return int(reply.status), reply.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def get(url: str) -> bytes:
    """Follows redirects; nothing but JSON while a broker cannot answer."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS_MAX) as reply:
            return bytes(reply.read())
    except urllib.error.URLError:
        return b'{"brokerId": ""}'
