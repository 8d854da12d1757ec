"""A broker of ours beside a real Apache Pulsar's, both of one cluster, on the same ZooKeeper and the same bookies.

    python -m benchmarks.beside_real [--rounds 4] [--entries 50000] [--topics 2000]

Every load is put on both in turns, on topics that isolation policies hold at one or the other; each entry goes to three
bookies, and two have to sync it before its receipt. Java is warm after the first rounds, so the best of all rounds
counts: the lowest CPU of the broker's process and the highest rate. Prints a table, keeps nothing. The default takes
about five minutes.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from benchmarks.contenders import Running, Serving, cpu_seconds, pss_bytes
from benchmarks.figures import HTTP_CONNECTIONS, PAYLOAD_BYTES, Sample, rate
from benchmarks.http_load import Request, run_requests
from benchmarks.one_cluster import call, cluster, create_namespace, hold_at, owner_url
from benchmarks.raw_frames import MESSAGE, SEND_RECEIPT, encode_batches, encode_sends
from benchmarks.raw_load import Permits, RawConnection, Refused, create_producers, drain, latencies, publish

BATCH_MESSAGES = 100
LATENCY_SAMPLES = 500
LATENCY_SAMPLES_PER_SECOND = 100
OPENED_AT_ONCE = 200
OURS, REAL = "ours", "real"


class Broker(Running, Serving, Protocol):
    """One of the two."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table."""

    title: str
    unit: str
    higher_is_better: bool = False
    aim: float | None = None
    """At most so many times the real one's CPU, or value where no CPU is counted."""


FIGURES: Mapping[str, Figure] = {
    "publish": Figure("publish, not batched", "entries/s", True, 1.2),
    "batches": Figure(f"publish, batches of {BATCH_MESSAGES}", "entries/s", True, 1.0),
    "tail": Figure("publish and tail read, not batched", "entries/s", True, 1.2),
    "catch_up": Figure("catch-up read, not batched", "entries/s", True, 1.2),
    "catch_up_batches": Figure(f"catch-up read, batches of {BATCH_MESSAGES}", "entries/s", True, 1.0),
    "receipt_p50": Figure("receipt, p50", "ms"),
    "receipt_p99": Figure("receipt, p99", "ms"),
    "created": Figure("topics created", "topics/s", True, 1.2),
    "opened": Figure("topics opened by a producer", "topics/s", True, 1.2),
    "memory": Figure("memory at the end (PSS)", "MB", aim=0.1),
}


@dataclass(frozen=True, slots=True)
class Load:
    """How much is asked of a broker in one round, and the frames of it."""

    entries: int
    batches: int
    topics: int
    frames: bytes = field(repr=False)
    batch_frames: bytes = field(repr=False)

    @classmethod
    def of(cls, entries: int, topics: int) -> "Load":
        """Encodes the frames."""
        batches = entries // 10
        frames = encode_sends(entries, PAYLOAD_BYTES)
        return cls(entries, batches, topics, frames, encode_batches(batches, BATCH_MESSAGES, PAYLOAD_BYTES))


class Contender:
    """A broker and the namespace that it holds."""

    def __init__(self, name: str, broker: Broker) -> None:
        self.name = name
        self.broker = broker
        self.namespace = f"bench/{name}"

    def set_up(self) -> None:
        """Creates the namespace and takes it."""
        create_namespace(self.broker, self.namespace)
        hold_at(self.broker, self.namespace, str(urlsplit(self.broker.service_url).hostname))
        self.take()

    def take(self) -> None:
        """Lets this broker own the namespace; raises Refused if another has it."""
        owner = owner_url(self.broker, self.topic("any"))
        if owner.lower() != self.broker.service_url:
            raise Refused(f"{self.namespace} is at {owner}, not at {self.broker.service_url}")

    def unload(self) -> None:
        """Gives the namespace away and takes it again, so that nothing of its topics is in memory."""
        call(self.broker, "PUT", f"namespaces/{self.namespace}/unload")
        self.take()

    def topic(self, name: str) -> str:
        """The name of a topic in the namespace."""
        return f"persistent://{self.namespace}/{name}"

    def measure(self, load: Load, turn: int) -> Iterator[tuple[str, Sample]]:
        """One round, figure by figure."""
        broker, url = self.broker, self.broker.service_url
        single, batched, tail = (self.topic(f"{kind}-{turn}") for kind in ("single", "batched", "tail"))
        yield "publish", rate(broker, load.entries, lambda: publish(url, single, load.frames, load.entries))
        yield "batches", rate(broker, load.batches, lambda: publish(url, batched, load.batch_frames, load.batches))
        yield "tail", rate(broker, load.entries, lambda: publish_and_read(url, tail, load))
        self.unload()
        yield "catch_up", rate(broker, load.entries, lambda: drain(url, single, load.entries))
        yield (
            "catch_up_batches",
            rate(broker, load.batches, lambda: drain(url, batched, load.batches, batch=BATCH_MESSAGES)),
        )
        pairs = latencies(url, self.topic(f"latency-{turn}"), LATENCY_SAMPLES, LATENCY_SAMPLES_PER_SECOND)
        receipts = sorted(receipt * 1e3 for receipt, _ in pairs)
        yield "receipt_p50", Sample(statistics.median(receipts))
        yield "receipt_p99", Sample(receipts[len(receipts) * 99 // 100])
        yield from self._measure_topics(load.topics, turn)

    def _measure_topics(self, count: int, turn: int) -> Iterator[tuple[str, Sample]]:
        """Creates topics by the admin API, then opens each of them for the first time."""
        broker = self.broker
        names = [f"many-{turn}-{number}" for number in range(count)]
        creations = [Request("PUT", f"/admin/v2/persistent/{self.namespace}/{name}") for name in names]
        yield (
            "created",
            rate(broker, count, lambda: run_requests(broker.web_url, creations, connections=HTTP_CONNECTIONS)),
        )
        self.unload()
        yield "opened", rate(broker, count, lambda: self._open(list(map(self.topic, names))))

    def _open(self, topics: Sequence[str]) -> float:
        """Some at a time, on a connection of their own: a broker ends one that is busy elsewhere for too long."""
        seconds = 0.0
        for first in range(0, len(topics), OPENED_AT_ONCE):
            with RawConnection(self.broker.service_url) as connection:
                seconds += create_producers(connection, topics[first : first + OPENED_AT_ONCE])
        return seconds


def publish_and_read(service_url: str, topic: str, load: Load) -> float:
    """Publishes beside a reader at the end of the topic; returns the seconds until it has everything."""
    with RawConnection(service_url) as producer, RawConnection(service_url) as consumer:
        producer.create_producer(topic)
        consumer.subscribe(topic, "raw-tail", earliest=False, durable=False)
        permits = Permits(consumer, load.entries)
        started = time.perf_counter()
        publishing = threading.Thread(target=producer.answered, args=(load.frames, SEND_RECEIPT, load.entries))
        publishing.start()
        consumer.count(MESSAGE, load.entries, on_some=permits.on_messages)
        publishing.join()
        return time.perf_counter() - started


def best(name: str, samples: Sequence[Sample]) -> Sample:
    """The best value and the lowest CPU, which need not come from one round."""
    values = [sample.value for sample in samples]
    used = [sample.cpu_us for sample in samples if sample.cpu_us is not None]
    return Sample((max if FIGURES[name].higher_is_better else min)(values), min(used) if used else None)


def table(taken: Mapping[str, Mapping[str, Sequence[Sample]]]) -> str:
    """The figures of both, in Markdown."""
    lines = [
        "| | ours | real | ours : real | ours, CPU s per million | real, CPU s per million | ours : real | aim |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, figure in FIGURES.items():
        ours, real = (best(name, taken[each][name]) for each in (OURS, REAL))
        cells = [f"{figure.title}, {figure.unit}", _told(ours.value), _told(real.value)]
        ratio = ours.value / real.value
        cells.append(f"{ratio:.2f}")
        if ours.cpu_us is None or real.cpu_us is None:
            cells += ["", "", ""]
        else:
            ratio = ours.cpu_us / real.cpu_us
            cells += [_told(ours.cpu_us), _told(real.cpu_us), f"{ratio:.2f}"]
        cells.append("" if figure.aim is None else f"{figure.aim:g}{'' if ratio <= figure.aim else ' MISSED'}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _told(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def compare(directory: Path, load: Load, rounds: int, say: Callable[[str], None]) -> str:
    """Measures both in turns; returns the table."""
    with cluster(directory) as running:
        say("ZooKeeper and bookies serve")
        contenders = [Contender(REAL, running.start_real()), Contender(OURS, running.start_ours())]
        call(contenders[0].broker, "PUT", "tenants/bench", {"allowedClusters": ["lab"]})
        for each in contenders:
            each.set_up()
        say("both brokers serve")
        taken: dict[str, dict[str, list[Sample]]] = {each.name: {name: [] for name in FIGURES} for each in contenders}
        for turn in range(rounds):
            for each in contenders:
                for name, sample in each.measure(load, turn):
                    taken[each.name][name].append(sample)
                    cpu = "" if sample.cpu_us is None else f", {sample.cpu_us:.1f} us CPU each"
                    say(f"{turn + 1}/{rounds} {each.name}: {FIGURES[name].title}: {_told(sample.value)}{cpu}")
        for each in contenders:
            taken[each.name]["memory"].append(Sample(pss_bytes(each.broker) / 1e6))
            say(f"{each.name}: {cpu_seconds(each.broker):.0f} s CPU since its start")
        return table(taken)


def main(arguments: Sequence[str]) -> None:
    """Runs what the arguments ask for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.beside_real", description="A broker of ours beside a real one, on the same engines."
    )
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--entries", type=int, default=50_000, help="of a load that is not batched; batches: a tenth")
    parser.add_argument("--topics", type=int, default=2_000, help="created and opened in each round")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="interpulse-beside-") as scratch:
        load = Load.of(options.entries, options.topics)
        print(
            compare(
                Path(scratch),
                load,
                options.rounds,
                lambda text: print(f"{time.monotonic() - started:6.1f} s  {text}", file=sys.stderr, flush=True),
            )
        )


if __name__ == "__main__":
    main(sys.argv[1:])
