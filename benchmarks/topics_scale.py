"""What topics cost when there are many: broker CPU of each operation in a namespace of 100, 1,000 and 10,000 topics.

    python -m benchmarks.topics_scale [--sizes 100,1000,10000] [--real]

Each operation is done some hundred times in a namespace that holds so many topics; lists are divided by their length.
A growth of 1 says that an operation costs the same in the largest namespace as in the smallest. The second table is
about one topic of a thousand partitions. ``--real`` measures a real Pulsar after ours. Keeps nothing.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.contenders import Contender, Interpulse, Pulsar, cpu_seconds
from benchmarks.http_load import Request, fetch, run_requests
from benchmarks.raw_frames import encode
from benchmarks.raw_load import RawConnection, create_producers
from interpulse.wire import pulsar_api_pb2 as pb

PROBES = 500
QUESTIONS = 10_000
LISTED = 20_000
PARTITIONS = 1000
CONNECTIONS = 8
PROBE_SECONDS = 0.005

Costs = dict[str, float]


class Meter:
    """Processor time of the broker per operation, in microseconds."""

    def __init__(self, contender: Contender) -> None:
        self.costs: Costs = {}
        self._contender = contender

    @contextmanager
    def of(self, title: str, operations: int) -> Iterator[None]:
        before = cpu_seconds(self._contender)
        yield
        self.costs[title] = (cpu_seconds(self._contender) - before) / operations * 1e6


def in_namespace(contender: Contender, size: int) -> Costs:
    """Every operation in a namespace of so many topics."""
    namespace = f"public/scale-{size}"
    fill(contender, namespace, size)
    meter = Meter(contender)
    put, post, delete = (requests_of(contender, f"/admin/v2/persistent/{namespace}", each) for each in _METHODS)
    names = [f"probe-{number}" for number in range(PROBES)]
    partitions = [f"{name}/partitions" for name in names]
    wide = [f"persistent://{namespace}/wide-{number}" for number in range(PROBES)]
    with meter.of("create", PROBES):
        put(names)
    with topic_limit(contender, namespace, size * 100):
        put(["counted"])  # the first one counts what is there
        with meter.of("create with a topic limit", PROBES):
            put([f"limited-{name}" for name in names])
    with meter.of("create partitioned, 2 partitions", PROBES):
        put([path.replace("probe", "wide") for path in partitions], b"2")
    with meter.of("expand to 3 partitions", PROBES):
        post([path.replace("probe", "wide") for path in partitions], b"3")
    with meter.of("partition metadata", QUESTIONS):
        pipeline(contender, [partition_question(topic) for topic in cycle(wide, QUESTIONS)], _METADATA_ANSWER)
    with meter.of("lookup", QUESTIONS):
        pipeline(contender, [lookup(topic) for topic in cycle(wide, QUESTIONS)], _LOOKUP_ANSWER)
    with meter.of("open, a producer each", PROBES):
        open_producers(contender, [f"persistent://{namespace}/{name}" for name in names])
    path = f"/admin/v2/persistent/{namespace}"
    listed = len(fetch(contender.web_url, Request("GET", path)).split(b","))
    rounds = max(1, LISTED // listed)
    with meter.of("list over HTTP, per topic", rounds * listed):
        for _ in range(rounds):
            fetch(contender.web_url, Request("GET", path))
    with meter.of("list over the binary protocol, per topic", rounds * listed):
        for _ in range(rounds):
            list_topics(contender, namespace)
    with meter.of("delete", PROBES):
        delete([f"{name}?force=true" for name in names])
    with meter.of("delete partitioned, 3 partitions", PROBES):
        delete([path.replace("probe", "wide") + "?force=true" for path in partitions])
    with meter.of("delete the namespace, per topic", size + PROBES):
        run_requests(
            contender.web_url, [Request("DELETE", f"/admin/v2/namespaces/{namespace}?force=true")], connections=1
        )
    return meter.costs


def one_wide_topic(contender: Contender) -> list[str]:
    """A topic of a thousand partitions: seconds, processor time, and how long another client waited for an answer."""
    path = "/admin/v2/persistent/public/default/wide/partitions"
    topic = "persistent://public/default/wide"
    names = [f"{topic}-partition-{number}" for number in range(PARTITIONS)]
    steps: dict[str, Callable[[], object]] = {
        "create": lambda: one_request(contender, "PUT", path, str(PARTITIONS).encode()),
        "open, a producer on every partition": lambda: open_producers(contender, names),
        "expand to 2000": lambda: one_request(contender, "POST", path, str(2 * PARTITIONS).encode()),
        "delete": lambda: one_request(contender, "DELETE", f"{path}?force=true"),
    }
    lines = []
    for title, step in steps.items():
        before, started = cpu_seconds(contender), time.perf_counter()
        with Bystander(contender) as bystander:
            step()
        seconds, spent = time.perf_counter() - started, cpu_seconds(contender) - before
        lines.append(f"| {title} | {seconds:.3f} | {spent:.2f} | {bystander.longest_ms:.0f} |")
    return lines


class Bystander:
    """Asks something small again and again on a connection of its own."""

    def __init__(self, contender: Contender) -> None:
        self.longest_ms = 0.0
        self._contender = contender
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Bystander":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        question = lookup("persistent://public/default/bystander")
        with RawConnection(self._contender.service_url) as connection:
            while not self._over.wait(PROBE_SECONDS):
                started = time.perf_counter()
                connection.ask(question, _LOOKUP_ANSWER)
                self.longest_ms = max(self.longest_ms, (time.perf_counter() - started) * 1e3)


def fill(contender: Contender, namespace: str, size: int) -> None:
    """A new namespace with so many topics."""
    one_request(contender, "PUT", f"/admin/v2/namespaces/{namespace}")
    paths = [f"/admin/v2/persistent/{namespace}/topic-{number}" for number in range(size)]
    run_requests(contender.web_url, [Request("PUT", path) for path in paths], connections=CONNECTIONS)


@contextmanager
def topic_limit(contender: Contender, namespace: str, limit: int) -> Iterator[None]:
    """The namespace may hold so many topics."""
    path = f"/admin/v2/namespaces/{namespace}/maxTopicsPerNamespace"
    one_request(contender, "POST", path, str(limit).encode())
    yield
    one_request(contender, "DELETE", path)


def one_request(contender: Contender, method: str, path: str, body: bytes = b"") -> None:
    run_requests(contender.web_url, [Request(method, path, body)], connections=1)


def requests_of(contender: Contender, root: str, method: str) -> Callable[..., None]:
    """Sends one request for each path below ``root``."""

    def send(paths: Sequence[str], body: bytes = b"") -> None:
        requests = [Request(method, f"{root}/{path}", body) for path in paths]
        run_requests(contender.web_url, requests, connections=CONNECTIONS)

    return send


def cycle(topics: Sequence[str], count: int) -> Iterator[str]:
    return (topics[number % len(topics)] for number in range(count))


def partition_question(topic: str) -> pb.BaseCommand:
    question = pb.CommandPartitionedTopicMetadata(topic=topic, request_id=1)
    return pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA, partitionMetadata=question)


def lookup(topic: str) -> pb.BaseCommand:
    return pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=pb.CommandLookupTopic(topic=topic, request_id=1))


def pipeline(contender: Contender, commands: Sequence[pb.BaseCommand], answer_type: int) -> float:
    """Sends all at once and waits for as many answers; the seconds it took."""
    frames = b"".join(map(encode, commands))
    with RawConnection(contender.service_url) as connection:
        return connection.answered(frames, answer_type, len(commands))


def open_producers(contender: Contender, topics: Sequence[str]) -> None:
    """One producer on each topic, all asked for at once, as clients of partitioned topics do."""
    pipeline(contender, [lookup(topic) for topic in topics], _LOOKUP_ANSWER)
    with RawConnection(contender.service_url) as connection:
        create_producers(connection, topics)


def list_topics(contender: Contender, namespace: str) -> None:
    question = pb.CommandGetTopicsOfNamespace(namespace=namespace, request_id=1)
    with RawConnection(contender.service_url) as connection:
        connection.ask(
            pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=question),
            pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        )


def measure(contender: Contender, sizes: Sequence[int]) -> None:
    """Print both tables of one broker."""
    contender.start()
    try:
        run_requests(
            contender.web_url,
            [Request("POST", "/admin/v2/brokers/configuration/forceDeleteNamespaceAllowed/true")],
            connections=1,
        )
        in_namespace(contender, 50)  # warm
        costs = {size: in_namespace(contender, size) for size in sizes}
        print(f"\n{contender.name}: broker CPU in microseconds\n")
        print(f"| operation | {' | '.join(f'{size:,} topics' for size in sizes)} | growth |")
        print(f"| --- | {'--- | ' * (len(sizes) + 1)}".rstrip())
        for title in costs[sizes[0]]:
            row = [costs[size][title] for size in sizes]
            growth = f"{row[-1] / row[0]:.1f}" if row[0] else "-"
            print(f"| {title} | {' | '.join(f'{cost:,.1f}' for cost in row)} | {growth} |")
        with RawConnection(contender.service_url):
            rate = QUESTIONS / pipeline(
                contender, [partition_question("persistent://public/default/none")] * QUESTIONS, _METADATA_ANSWER
            )
        print(f"\npartition metadata over one pipelined connection: {rate:,.0f} requests/s")
        print(f"\n| a topic of {PARTITIONS} partitions | s | CPU s | longest wait of a bystander, ms |")
        print("| --- | --- | --- | --- |")
        print("\n".join(one_wide_topic(contender)))
    finally:
        contender.stop()


_METHODS = ("PUT", "POST", "DELETE")
_METADATA_ANSWER = pb.BaseCommand.PARTITIONED_METADATA_RESPONSE
_LOOKUP_ANSWER = pb.BaseCommand.LOOKUP_RESPONSE


def main() -> None:
    parser = argparse.ArgumentParser(description="Costs of topics when there are many.")
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--real", action="store_true", help="measure a real Pulsar, too")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as directory:
        kept = "brokerDeleteInactiveTopicsEnabled=false"  # no client is connected to them for long
        measure(Interpulse(Path(directory) / "ours", "--set", kept), sizes)
        if options.real:
            measure(Pulsar(Path(directory) / "real"), sizes)


if __name__ == "__main__":
    main()
