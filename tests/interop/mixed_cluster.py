"""Brokers of both kinds that serve one cluster, and official clients that work on it meanwhile."""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeAlias

import pulsar

from tests.interop.real_pulsar.broker import RealBroker
from tests.support.official_client import admin
from tests.support.standalone_process import BrokerProcess, free_port, interpulse
from tests.support.waiting import until

SECONDS_MAX: Final = 240


class OurBroker:
    """One broker of ours. It has the same ports each time it is started."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        """``zookeeper``: host and port."""
        self._settings = directory / "broker.conf"
        self._ports = free_port(), free_port()
        self._process: BrokerProcess | None = None
        lines = (
            "clusterName=lab",
            f"metadataStoreUrl=zk:{zookeeper}",
            f"dataDir={directory / 'data'}",
            f"brokerServicePort={self._ports[0]}",
            f"webServicePort={self._ports[1]}",
            "managedLedgerDefaultEnsembleSize=3",
            "managedLedgerDefaultWriteQuorum=3",
            "managedLedgerDefaultAckQuorum=2",
            "metadataStoreSessionTimeoutMillis=6000",
        )
        directory.mkdir(parents=True)
        self._settings.write_text("\n".join(lines))

    @property
    def service_url(self) -> str:
        """The URL for clients of the binary protocol."""
        return f"pulsar://127.0.0.1:{self._ports[0]}"

    @property
    def web_url(self) -> str:
        """The URL of the admin API."""
        return f"http://127.0.0.1:{self._ports[1]}"

    def start(self) -> None:
        """Return when it serves."""
        line = interpulse("broker", "--config", str(self._settings))
        self._process = BrokerProcess(line, self._settings.with_suffix(".log"))

    def stop(self) -> None:
        """End it in good order. Nothing happens when it does not run."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        """End it at once, as kill -9 does. Nothing happens when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process = None


Broker: TypeAlias = RealBroker | OurBroker


def ask(broker: Broker, method: str, path: str, body: Any = None) -> Any:
    """One call of the admin API; again while a real broker says 5xx, as it may while a bundle is on its way."""

    def answers() -> list[Any]:
        try:
            return [admin(broker.web_url, method, path, body)]
        except AssertionError as refusal:
            if not isinstance(broker, RealBroker) or ": 50" not in str(refusal):
                raise
            return []

    return until(answers, SECONDS_MAX)[0]


def service_url(brokers: Sequence[Broker]) -> str:
    """All of them, for clients."""
    return "pulsar://" + ",".join(each.service_url.removeprefix("pulsar://") for each in brokers)


def owner(topic: str, brokers: Sequence[Broker]) -> Broker | None:
    """As the first that answers says."""
    by_id = {each.web_url.removeprefix("http://"): each for each in brokers}
    for broker in brokers:
        try:
            with urllib.request.urlopen(lookup_url(broker, topic), timeout=10) as reply:
                return by_id[json.loads(reply.read())["brokerId"]]
        except OSError:
            continue
    return None


def known_owner(topic: str, brokers: Sequence[Broker]) -> Broker:
    """The owner, as soon as one of them says who it is."""
    known = until(lambda: owner(topic, brokers), SECONDS_MAX)
    assert known is not None
    return known


def move(topic: str, to: Broker, brokers: Sequence[Broker]) -> None:
    """Let the owner of a topic give its bundle away; again if it was on its way already."""
    until(lambda: _is_moved(topic, to, brokers), SECONDS_MAX)


def _is_moved(topic: str, to: Broker, brokers: Sequence[Broker]) -> bool:
    now = owner(topic, brokers)
    if now is None or now is to:
        return now is to
    namespace = "/".join(topic.removeprefix("persistent://").split("/")[:2])
    try:
        with urllib.request.urlopen(f"{lookup_url(now, topic)}/bundle", timeout=60) as reply:
            bundle = reply.read().decode().strip('"')
        path = f"namespaces/{namespace}/{bundle}/unload?destinationBroker={to.web_url.removeprefix('http://')}"
        request = urllib.request.Request(f"{now.web_url}/admin/v2/{path}", method="PUT")
        urllib.request.urlopen(request, timeout=60).close()
    except urllib.error.HTTPError as refusal:
        on_its_way = isinstance(now, RealBroker) and refusal.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        if not on_its_way and b"is being unloaded" not in refusal.read():
            raise
    return False


def lookup_url(broker: Broker, topic: str) -> str:
    return f"{broker.web_url}/lookup/v2/topic/{topic.replace('://', '/')}"


def quiet_client(service_url: str) -> pulsar.Client:
    """One that does not tell of each attempt to reach a broker that is down."""
    logger = logging.getLogger("official-client")
    logger.setLevel(logging.CRITICAL)
    return pulsar.Client(service_url, operation_timeout_seconds=SECONDS_MAX, logger=logger)


Lane: TypeAlias = tuple[str, str]
"""A topic and a producer's name."""


@dataclass
class Traffic:
    """What was acknowledged to producers, and what subscriptions received, in numbers that count up."""

    topics: Sequence[str]
    producers: Sequence[str] = ("one",)
    """One of each name for every topic."""
    subscriptions: Sequence[pulsar.ConsumerType] = (pulsar.ConsumerType.Shared,)
    """One subscription of each type for every topic."""
    acknowledged: dict[Lane, list[int]] = field(default_factory=lambda: defaultdict(list))
    received: dict[tuple[str, pulsar.ConsumerType], dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    failures: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    """Producers end."""
    all_sent: threading.Event = field(default_factory=threading.Event)
    """Producers have ended: consumers end when they have everything."""

    @property
    def lanes(self) -> list[Lane]:
        """All producers."""
        return [(topic, name) for topic in self.topics for name in self.producers]

    def produce(self, client: pulsar.Client, lane: Lane) -> None:
        topic, name = lane
        producer = client.create_producer(
            topic,
            producer_name=f"{name}-of-{topic}",
            send_timeout_millis=SECONDS_MAX * 1000,
            batching_enabled=False,
        )
        number = 0
        while not self.over.is_set():
            try:
                producer.send(f"{name} {number}".encode())
                self.acknowledged[lane].append(number)
            except pulsar.PulsarException as error:
                self.failures.append(f"{lane} {number}: {error!r}")
            number += 1
            time.sleep(0.01)  # bounds the load
        producer.close()

    def consume(self, client: pulsar.Client, topic: str, kind: pulsar.ConsumerType) -> None:
        consumer = client.subscribe(
            topic, f"beside-{kind.name}", consumer_type=kind, initial_position=pulsar.InitialPosition.Earliest
        )
        received = self.received[topic, kind]
        while not (self.all_sent.is_set() and self._is_complete(topic, received)):
            try:
                message = consumer.receive(1000)
            except pulsar.Timeout:
                continue
            name, number = message.data().decode().split()
            received[name].append(int(number))
            consumer.acknowledge(message)
        consumer.close()

    def _is_complete(self, topic: str, received: dict[str, list[int]]) -> bool:
        return all(set(self.acknowledged[topic, name]) <= set(received[name]) for name in self.producers)

    def goes_on(self) -> None:
        """Return when every producer got some more receipts."""
        before = {lane: len(self.acknowledged[lane]) for lane in self.lanes}
        until(lambda: all(len(self.acknowledged[lane]) > before[lane] + 10 for lane in self.lanes), SECONDS_MAX)

    def check(self) -> None:
        """Nothing failed, and what was acknowledged was received, in the order of each producer."""
        assert self.failures == []
        for topic, name in self.lanes:
            for kind in self.subscriptions:
                first_seen = list(dict.fromkeys(self.received[topic, kind][name]))
                assert first_seen == sorted(first_seen)
                assert set(self.acknowledged[topic, name]) <= set(first_seen)


@contextmanager
def running(traffic: Traffic, url: str) -> Iterator[Traffic]:
    """Producers and consumers of the official client within the block; at its end everything must have arrived."""
    client = quiet_client(url)
    consumers = [
        threading.Thread(target=traffic.consume, args=(client, topic, kind), daemon=True)
        for topic in traffic.topics
        for kind in traffic.subscriptions
    ]
    producers = [threading.Thread(target=traffic.produce, args=(client, lane), daemon=True) for lane in traffic.lanes]
    for thread in (*consumers, *producers):
        thread.start()
    try:
        traffic.goes_on()
        yield traffic
        traffic.goes_on()
    finally:
        for threads, end in ((producers, traffic.over), (consumers, traffic.all_sent)):
            end.set()
            for thread in threads:
                thread.join(SECONDS_MAX)
    assert not any(thread.is_alive() for thread in (*consumers, *producers))
    client.close()
    traffic.check()


def create_namespace(broker: Broker, name: str) -> None:
    """One that keeps all its messages and de-duplicates, with bundles enough for topics to lie at several brokers."""
    path = f"namespaces/{name}"
    ask(broker, "PUT", path, {"bundles": {"numBundles": 8}})
    ask(broker, "POST", f"{path}/deduplication", True)
    ask(broker, "POST", f"{path}/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})


def check_stored(traffic: Traffic, url: str) -> None:
    """Topics of such a namespace have exactly what producers got receipts for, in their order."""
    client = quiet_client(url)
    for topic in traffic.topics:
        found: dict[str, list[int]] = defaultdict(list)
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        while reader.has_message_available():
            name, number = reader.read_next(60_000).data().decode().split()
            found[name].append(int(number))
        assert found == {name: traffic.acknowledged[topic, name] for name in traffic.producers}
    client.close()
