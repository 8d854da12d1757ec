"""A broker of ours and one of Apache Pulsar serve one cluster: each takes over the topics of the other, under load."""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pulsar
import pytest

from tests.interop.real_pulsar.bookkeeper import RealBookKeeper, real_bookkeeper
from tests.interop.real_pulsar.broker import RealBroker
from tests.support.official_client import admin, is_quiet
from tests.support.standalone_process import BrokerProcess, free_port, interpulse
from tests.support.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SECONDS_MAX = 120
TOPICS = 6
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'


class Pair:
    """The two brokers. Each has the same addresses whenever it runs."""

    def __init__(self, directory: Path, engines: RealBookKeeper, running: ExitStack) -> None:
        self.real = RealBroker(directory / "real", engines.zookeeper.address)
        self._settings = directory / "broker.conf"
        self._running = running
        self._ports = free_port(), free_port()
        url = f"zk:{engines.zookeeper.address}"
        lines = (
            "clusterName=lab",
            f"metadataStoreUrl={url}",
            f"dataDir={directory / 'data'}",
            f"brokerServicePort={self._ports[0]}",
            f"webServicePort={self._ports[1]}",
            "managedLedgerDefaultEnsembleSize=3",
            "managedLedgerDefaultWriteQuorum=3",
            "managedLedgerDefaultAckQuorum=2",
            "metadataStoreSessionTimeoutMillis=6000",
        )
        self._settings.write_text("\n".join(lines))
        self.real.start()
        running.callback(self.real.kill)
        self.start_ours()

    def start_ours(self) -> None:
        """Return when it serves."""
        line = interpulse("broker", "--config", str(self._settings))
        self.ours = self._running.enter_context(BrokerProcess(line, self._settings.with_suffix(".log")))

    @property
    def service_url(self) -> str:
        """Both, for clients."""
        return f"pulsar://127.0.0.1:{self._ports[0]},{self.real.service_url.removeprefix('pulsar://')}"

    def owner(self, topic: str) -> RealBroker | BrokerProcess | None:
        """As ours says; as the real one says if ours does not run."""
        by_id = {each.web_url.removeprefix("http://"): each for each in (self.real, self.ours)}
        for broker in (self.ours, self.real):
            try:
                with urllib.request.urlopen(_lookup(broker, topic), timeout=10) as reply:
                    return by_id[json.loads(reply.read())["brokerId"]]
            except OSError:
                continue
        return None

    def move(self, topic: str, to: RealBroker | BrokerProcess) -> None:
        """Let the owner of a topic give its bundle away; again if it was on its way already."""
        until(lambda: self._is_moved(topic, to), SECONDS_MAX)

    def _is_moved(self, topic: str, to: RealBroker | BrokerProcess) -> bool:
        owner = self.owner(topic)
        if owner is None or owner is to:
            return owner is to
        with urllib.request.urlopen(f"{_lookup(owner, topic)}/bundle", timeout=20) as reply:
            found = reply.read().decode().strip('"')
        path = f"namespaces/public/default/{found}/unload?destinationBroker={to.web_url.removeprefix('http://')}"
        request = urllib.request.Request(f"{owner.web_url}/admin/v2/{path}", method="PUT")
        try:
            urllib.request.urlopen(request, timeout=60).close()
        except urllib.error.HTTPError as refusal:
            if b"is being unloaded" not in refusal.read():
                raise
        return False


def _lookup(broker: RealBroker | BrokerProcess, topic: str) -> str:
    return f"{broker.web_url}/lookup/v2/topic/{topic.replace('://', '/')}"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("beside")
    with real_bookkeeper(directory, 3) as engines, ExitStack() as running:
        yield Pair(directory, engines, running)


@dataclass
class Traffic:
    """What was acknowledged to producers, and what consumers received, by topic."""

    topics: list[str]
    acknowledged: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    received: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def produce(self, client: pulsar.Client, topic: str) -> None:
        producer = client.create_producer(topic, send_timeout_millis=SECONDS_MAX * 1000, batching_enabled=False)
        number = 0
        while not self.over.is_set():
            try:
                producer.send(b"%d" % number)
                self.acknowledged[topic].append(number)
            except pulsar.PulsarException as error:
                self.failures.append(f"{topic} {number}: {error!r}")
            number += 1
            time.sleep(0.01)  # bounds the load
        producer.close()

    def consume(self, client: pulsar.Client, topic: str) -> None:
        consumer = client.subscribe(
            topic,
            "beside",
            consumer_type=pulsar.ConsumerType.Shared,
            initial_position=pulsar.InitialPosition.Earliest,
        )
        while not (self.over.is_set() and set(self.acknowledged[topic]) <= set(self.received[topic])):
            try:
                message = consumer.receive(1000)
            except pulsar.Timeout:
                continue
            self.received[topic].append(int(message.data()))
            consumer.acknowledge(message)
        consumer.close()

    def goes_on(self) -> None:
        """Return when every topic took some more."""
        before = {topic: len(self.acknowledged[topic]) for topic in self.topics}
        until(lambda: all(len(self.acknowledged[topic]) > before[topic] + 10 for topic in self.topics), SECONDS_MAX)


def quiet_client(service_url: str) -> pulsar.Client:
    """One that does not tell of each attempt to reach a broker that is down."""
    logger = logging.getLogger("official-client")
    logger.setLevel(logging.CRITICAL)
    return pulsar.Client(service_url, operation_timeout_seconds=60, logger=logger)


@contextmanager
def traffic(service_url: str, prefix: str) -> Iterator[Traffic]:
    """Producers and consumers of the official client within the block; at its end everything must have arrived."""
    running = Traffic([f"persistent://public/default/{prefix}-{number}" for number in range(TOPICS)])
    client = quiet_client(service_url)
    work = [(call, topic) for topic in running.topics for call in (running.consume, running.produce)]
    threads = [threading.Thread(target=call, args=(client, topic), daemon=True) for call, topic in work]
    for thread in threads:
        thread.start()
    try:
        running.goes_on()
        yield running
        running.goes_on()
    finally:
        running.over.set()
        for thread in threads:
            thread.join(SECONDS_MAX)
    assert not any(thread.is_alive() for thread in threads)
    client.close()
    assert running.failures == []
    for topic in running.topics:
        first_seen = list(dict.fromkeys(running.received[topic]))
        assert first_seen == sorted(first_seen)
        assert set(running.acknowledged[topic]) <= set(first_seen)


def test_brokers_when_of_both_kinds_then_are_one_cluster(pair: Pair) -> None:
    ids = sorted(each.web_url.removeprefix("http://") for each in (pair.real, pair.ours))
    for broker in (pair.real, pair.ours):
        assert sorted(admin(broker.web_url, "GET", "brokers/lab")) == ids
    leader = [admin(broker.web_url, "GET", "brokers/leaderBroker")["brokerId"] for broker in (pair.real, pair.ours)]
    assert leader == [pair.real.web_url.removeprefix("http://")] * 2
    schema = {"type": "JSON", "schema": RECORD, "properties": {"p": "q"}}
    path = "schemas/public/default/beside-schema/schema"
    admin(pair.ours.web_url, "POST", path, schema)
    for broker in (pair.real, pair.ours):
        pair.move("persistent://public/default/beside-schema", broker)
        found = admin(broker.web_url, "GET", path)
        assert (found["version"], found["type"], found["data"], found["properties"]) == (0, "JSON", RECORD, {"p": "q"})


def test_isolation_policies_when_set_at_either_then_both_follow_them(pair: Pair) -> None:
    """No broker is such a one, so that neither takes the bundle."""
    path, topic = "clusters/lab/namespaceIsolationPolicies", "persistent://public/apart/x"
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}
    policy = {"primary": ["nowhere"], "secondary": [], "auto_failover_policy": failover}
    admin(pair.real.web_url, "PUT", "namespaces/public/apart")
    for at, other, name in ((pair.ours, pair.real, "apart"), (pair.real, pair.ours, "another")):
        admin(at.web_url, "POST", f"{path}/{name}", policy | {"namespaces": [f"public/{name}"]})
        shown = admin(at.web_url, "GET", path)
        until(lambda other=other, shown=shown: admin(other.web_url, "GET", path) == shown)  # type: ignore[misc]
    for broker in (pair.ours, pair.real):
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(_lookup(broker, topic), timeout=20)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{_lookup(pair.ours, topic)}?authoritative=true", timeout=20)
    assert b"isolation policy apart (primary nowhere)" in caught.value.read()
    for name in ("apart", "another"):
        admin(pair.ours.web_url, "DELETE", f"{path}/{name}")
    until(lambda: admin(pair.real.web_url, "GET", path) == {})
    until(lambda: pair.owner(topic) is not None)


def test_topics_when_given_to_and_fro_under_load_then_nothing_is_lost_and_order_holds(pair: Pair) -> None:
    with traffic(pair.service_url, "moved") as running:
        moved = 0
        while moved < 100:
            to = (pair.ours, pair.real)[moved // TOPICS % 2]
            for topic in running.topics:
                pair.move(topic, to)
                moved += 1
            running.goes_on()


def test_topics_when_either_broker_is_killed_or_paused_then_the_other_serves_them(pair: Pair) -> None:
    with traffic(pair.service_url, "taken") as running:
        pair.real.kill()
        running.goes_on()
        assert {pair.owner(topic) for topic in running.topics} == {pair.ours}

        pair.real.start()
        for topic in running.topics[::2]:
            pair.move(topic, pair.real)
        running.goes_on()
        assert {pair.owner(topic) for topic in running.topics[::2]} == {pair.real}

        pair.ours.kill()
        running.goes_on()
        pair.start_ours()
        for topic in running.topics[::2]:
            pair.move(topic, pair.ours)
        running.goes_on()
        for topic in running.topics:
            pair.move(topic, pair.real)
        running.goes_on()

        pair.real.pause()
        try:
            until(lambda: {pair.owner(topic) for topic in running.topics} == {pair.ours}, SECONDS_MAX)
        finally:
            pair.real.go_on()
        running.goes_on()


def test_cursor_when_the_other_broker_takes_it_then_holds_every_single_acknowledgement(pair: Pair) -> None:
    topic = "persistent://public/default/beside-cursor"
    client = quiet_client(pair.service_url)
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic, batching_enabled=False)
    left = list(range(60))

    def figures(at: RealBroker | BrokerProcess) -> tuple[int, int]:
        """Consumers and backlog."""
        stats = admin(at.web_url, "GET", "persistent/public/default/beside-cursor/stats")["subscriptions"]["s"]
        return len(stats["consumers"]), stats["msgBacklog"]

    for number in left:
        producer.send(b"%d" % number)
    for to in (pair.real, pair.ours, pair.real, pair.ours):
        pair.move(topic, to)
        assert pair.owner(topic) is to
        until(lambda to=to: figures(to) == (1, len(left)))  # the consumer came along
        messages = [consumer.receive(20_000) for _ in left]
        assert [int(message.data()) for message in messages] == left
        for message in messages[1::3]:
            consumer.acknowledge(message)
            left.remove(int(message.data()))
        until(lambda to=to: figures(to) == (1, len(left)))
    client.close()


def test_batch_when_a_part_was_acknowledged_at_a_real_broker_then_ours_sends_the_rest(pair: Pair) -> None:
    """A real broker reads nothing of that in the record of a cursor, also not what it wrote itself."""
    topic = "persistent://public/default/beside-batch"
    client = quiet_client(pair.service_url)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay_ms=10_000
    )
    pair.move(topic, pair.real)
    options = {"consumer_type": pulsar.ConsumerType.Shared, "batch_index_ack_enabled": True}
    consumer = client.subscribe(topic, "s", **options)
    for number in range(10):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    for message in [consumer.receive(20_000) for _ in range(10)][1:3]:
        consumer.acknowledge(message)

    def unacknowledged() -> int:
        stats = admin(pair.real.web_url, "GET", "persistent/public/default/beside-batch/stats")
        return int(stats["subscriptions"]["s"]["unackedMessages"])

    until(lambda: unacknowledged() < 9)  # it counts them twice
    pair.move(topic, pair.ours)
    consumer.close()
    consumer = client.subscribe(topic, "s", **options)
    assert [int(consumer.receive(20_000).data()) for _ in range(8)] == [0, *range(3, 10)]
    assert is_quiet(consumer)
    client.close()


def test_compacted_topic_when_the_other_broker_takes_it_then_is_served_and_compacted_on(pair: Pair) -> None:
    topic, path = "persistent://public/default/beside-compacted", "persistent/public/default/beside-compacted"
    client = quiet_client(pair.service_url)
    producer = client.create_producer(topic, batching_enabled=False)

    def status(at: RealBroker | BrokerProcess) -> str:
        return str(admin(at.web_url, "GET", f"{path}/compaction")["status"])

    def kept() -> list[int]:
        reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
        found = []
        while reader.has_message_available():
            found.append(int(reader.read_next(20_000).data()))
        reader.close()
        return found

    turns: list[RealBroker | BrokerProcess] = [pair.ours, pair.real, pair.ours, pair.real]
    for begin, by in zip(range(0, 200, 50), turns, strict=True):
        pair.move(topic, by)
        for number in range(begin, begin + 50):
            producer.send(b"%d" % number, partition_key=str(number % 5))
        assert kept() == list(range(max(begin - 5, 0), begin + 50))
        admin(by.web_url, "PUT", f"{path}/compaction")
        until(lambda by=by: status(by) != "RUNNING", SECONDS_MAX)
        assert kept() == list(range(begin + 45, begin + 50))
    client.close()
