"""The replicator of a real Pulsar sends to a topic of ours that de-duplicates (feature flag 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from interpulse.sync import Client
from tests.interop.conftest import RealPulsarFactory
from tests.interop.real_pulsar.launcher import RealPulsar
from tests.interop.replicated_pairs import Cluster, Pair, backlog, replicating, until
from tests.spark.replication_job import stored_entries
from tests.support.standalone_process import StandaloneProcess, free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

NAMES = "abc"
PER_NAME = 400


@pytest.fixture
def real(start_real_pulsar: RealPulsarFactory) -> RealPulsar:
    return start_real_pulsar("standalone", {"brokerDeleteInactiveTopicsEnabled": "false"})


class Ours:
    """A broker of ours that comes back at its addresses. Its snapshots are rare: much is read again after a crash."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ports = ("--port", free_port(), "--http-port", free_port())
        settings = ["clusterName=ours", "replicationJob=external", "brokerDeduplicationEnabled=true"]
        settings += ["brokerDeduplicationEntriesInterval=700", "brokerDeleteInactiveTopicsEnabled=false"]
        self._settings = [argument for setting in settings for argument in ("--set", setting)]
        self.start()

    def start(self) -> None:
        self.process = StandaloneProcess(self._directory, *self._ports, *self._settings)

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.process.web_url, self.process.service_url, "ours")


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Ours]:
    broker = Ours(tmp_path / "ours")
    yield broker
    broker.process.stop()


@pytest.fixture
def pair(real: RealPulsar, ours: Ours) -> Pair:
    return Pair(Cluster(real.web_url, real.service_url, "standalone", is_ours=False), ours.cluster).begin()


def publish_in_turns(cluster: Cluster, topic: str, numbers: Iterator[int]) -> None:
    """By several producers in turns, whose sequence ids begin with 0 each time: the source does not de-duplicate."""
    with Client(cluster.service_url) as client:
        options = {"batching_enabled": False}
        producers = [client.create_producer(topic, name=name, **options) for name in NAMES]
        for _ in range(PER_NAME):
            for producer in producers:
                producer.send_async(b"%d" % next(numbers))
        for producer in producers:
            producer.flush()
            producer.close()


def contents(cluster: Cluster, topic: str) -> list[int]:
    found = []
    with Client(cluster.service_url) as client, client.create_reader(topic) as reader:
        while reader.has_message_available():
            found.append(int(reader.read_next(60_000).content or b"-1"))
    return found


def at_least(cluster: Cluster, topic: str, entries: int) -> Callable[[], bool]:
    return lambda: stored_entries(cluster, topic) >= entries


def test_interleaved_low_ids_of_several_producers_all_arrive_once_while_either_side_is_killed(
    pair: Pair, real: RealPulsar, ours: Ours
) -> None:
    """Markers of a replicated subscription come in between; they have receipts of their own."""
    topic, numbers = pair.topic("flights"), count()
    pair.source.run(f"topics create {topic}")
    pair.enable()
    with Client(pair.source.service_url) as client:
        client.create_producer(topic).close()
        client.subscribe(topic, "replicated", replicate_subscription_state=True).close()
    until(replicating(pair, topic), True)
    in_round = len(NAMES) * PER_NAME

    publish_in_turns(pair.source, topic, numbers)
    until(at_least(pair.target, topic, in_round // 2), True)
    ours.process.kill()
    publish_in_turns(pair.source, topic, numbers)
    ours.start()
    until(at_least(pair.target, topic, 2 * in_round), True)

    publish_in_turns(pair.source, topic, numbers)
    until(at_least(pair.target, topic, 2 * in_round + in_round // 2), True)
    real.kill()
    real.start()
    publish_in_turns(pair.source, topic, numbers)
    until(lambda: len(set(contents(pair.target, topic))), 4 * in_round)
    in_order = contents(pair.source, topic)
    assert sorted(in_order) == list(range(4 * in_round))
    assert contents(pair.target, topic) == in_order, "each once, in the order of the source"
    assert stored_entries(pair.target, topic) > len(in_order), "no marker came"

    pair.target.run(f"namespaces set-deduplication {pair.namespace} --disable")
    publish_in_turns(pair.source, topic, numbers)
    until(lambda: len(set(contents(pair.target, topic))), 5 * in_round)
    until(lambda: backlog(pair, topic), 0)
