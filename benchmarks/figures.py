"""What is measured: each function puts one kind of load on one broker and returns its figures by name."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import pulsar

from benchmarks.arrival import arrival_at, idle_cost
from benchmarks.contenders import Contender, Running, Serving, cpu_seconds, pss_bytes
from benchmarks.http_load import Request, run_requests
from benchmarks.raw_frames import encode_flow, encode_sends
from benchmarks.raw_load import (
    RawConnection,
    ask_partitions_pipelined,
    create_producers,
    drain,
    fan_out,
    latencies,
    look_up_batches,
    look_up_pipelined,
    look_up_serially,
    offers_batch_lookup,
    publish,
)
from benchmarks.replicated_pairs import Pair, entries_of
from benchmarks.shared_load import redeliver, share
from interpulse.wire import pulsar_api_pb2 as pb

PAYLOAD_BYTES = 100
MESSAGES = 200_000
KEPT_MESSAGES = 1_000_000
UNACKNOWLEDGED = 40_000  # a real broker stops at 50,000 for one consumer
REDELIVERIES = 5
KEYS = 100_000
CONSUMERS = 8
PARTITIONS = 1000
LOOKUP_REPEATS = 10
LATENCY_SAMPLES = 1000
LATENCY_SAMPLES_PER_SECOND = 200
CREATED_TOPICS = 400
ADMIN_GETS = 20_000
SUBSCRIPTIONS = 10
ARRIVAL_ENTRIES = 200_000
ARRIVAL_RATES = (20, 2_000, 5_000)
ARRIVAL_SECONDS = 10
IDLE_SECONDS = 5
HTTP_CONNECTIONS = 8
QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


@dataclass(frozen=True, slots=True)
class Aim:
    """What ours shall reach: so many times better than the real one, so many times less CPU, or a value of its own."""

    times_better: float | None = None
    times_less_cpu: float | None = None
    at_most: float | None = None
    cpu_of: tuple[str, float] | None = None
    """At most so many times the CPU of another figure."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what a figure is called, its unit, which end of it is better, and what it shall reach."""

    title: str
    unit: str
    higher_is_better: bool = False
    aim: Aim | None = None


ROWS: Mapping[str, Row] = {
    "start": Row("start to admin API", "s"),
    "memory": Row("memory after 5 s idle (PSS)", "MB", aim=Aim(at_most=55)),
    "topic_memory": Row("memory of a loaded topic (PSS)", "KB", aim=Aim(at_most=12)),
    "restart": Row("kill -9 with 1,000,000 messages to first message", "s"),
    "raw_publish": Row("raw durable publish, 100 B, not batched", "messages/s", True, Aim(2.5, times_less_cpu=4)),
    "raw_drain": Row("raw drain", "messages/s", True),
    "shared_acks": Row("official client, Shared, every message acknowledged", "messages/s", True),
    "fan_out": Row("ten subscriptions on one topic, in sum", "messages/s", True, Aim(2.5)),
    "redelivery": Row("redelivery of unacknowledged messages", "messages/s", True, Aim(1.5)),
    "shared": Row("Shared, 8 consumers, all acknowledged", "messages/s", True),
    "key_shared": Row(
        "Key_Shared, 8 consumers, 100,000 keys, all acknowledged", "messages/s", True, Aim(cpu_of=("shared", 2))
    ),
    "batched_publish": Row("official client, batched publish", "messages/s", True),
    "batched_consume": Row("official client, batched consume", "messages/s", True),
    "receipt": Row("publish to receipt, p50", "ms"),
    "receive": Row("publish to receive, p50", "ms"),
    "open_producer": Row("first open of a 1000-partition topic, producer", "s"),
    "open_consumer": Row("then open of a consumer on it", "s"),
    "partition_metadata": Row("1000 pipelined metadata questions, one topic", "ms", aim=Aim(1.25)),
    "partition_metadata_1000": Row("1000 pipelined metadata questions, 1000 topics", "ms", aim=Aim(1.25)),
    "lookups": Row("1000 pipelined lookups", "ms", aim=Aim(1.25)),
    "lookups_serial": Row("1000 lookups one after the other", "ms"),
    "lookups_10000": Row("10,000 pipelined lookups", "ms"),
    "batch_lookup_new": Row("1000 topics in one batch lookup, names new to the broker", "ms"),
    "batch_lookup": Row("1000 topics in one batch lookup", "ms"),
    "batch_lookup_10000": Row("10,000 topics in ten pipelined batch lookups", "ms"),
    "arrival_20_p50": Row("20 messages/s to the other cluster, p50", "ms", aim=Aim(at_most=10)),
    "arrival_20_p99": Row("20 messages/s to the other cluster, p99", "ms", aim=Aim(at_most=100)),
    "arrival_2000_p50": Row("2,000 messages/s to the other cluster, p50", "ms", aim=Aim(at_most=10)),
    "arrival_2000_p99": Row("2,000 messages/s to the other cluster, p99", "ms", aim=Aim(at_most=100)),
    "arrival_5000_p50": Row("5,000 messages/s to the other cluster, p50", "ms", aim=Aim(at_most=25)),
    "arrival_5000_p99": Row("5,000 messages/s to the other cluster, p99", "ms", aim=Aim(at_most=100)),
    "arrival_backlog": Row("backlog to the other cluster, 100 B, not batched", "messages/s", True),
    "arrival_idle": Row("two clusters and what replicates, idle", "% of a core"),
    "creations": Row("topic creations", "topics/s", True),
    "admin_get": Row("admin GET", "requests/s", True),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured value, and the broker's processor time in microseconds per message where messages are counted."""

    value: float
    cpu_us: float | None = None


Samples = dict[str, Sample]


class _Cost:
    """Processor time that the broker used inside a `with` block, per message."""

    us_per_message = 0.0


@contextmanager
def _cost_of(running: Running, messages: int) -> Iterator[_Cost]:
    cost = _Cost()
    before = cpu_seconds(running)
    yield cost
    cost.us_per_message = (cpu_seconds(running) - before) / messages * 1e6


def rate(running: Running, messages: int, load: Callable[[], float]) -> Sample:
    """A load of so many messages, which returns its seconds."""
    with _cost_of(running, messages) as cost:
        seconds = load()
    return Sample(messages / seconds, cost.us_per_message)


def fastest(running: Running, questions: int, ask: Callable[[], float]) -> Sample:
    """The best of some repetitions in ms, and the processor time per question over all of them."""
    with _cost_of(running, LOOKUP_REPEATS * questions) as cost:
        seconds = min(ask() for _ in range(LOOKUP_REPEATS))
    return Sample(seconds * 1e3, cost.us_per_message)


@cache
def raw_frames() -> bytes:
    """SEND frames of messages without keys."""
    return encode_sends(MESSAGES, PAYLOAD_BYTES)


@cache
def keyed_frames() -> bytes:
    """SEND frames of messages of many keys."""
    return encode_sends(MESSAGES, PAYLOAD_BYTES, keys=KEYS)


def _topic(name: str, round_number: int) -> str:
    return f"persistent://public/default/{name}-{round_number}"


def keep_everything(contender: Contender) -> None:
    """Sets unlimited retention, so that a topic can be drained after it was written."""
    body = b'{"retentionTimeInMinutes":-1,"retentionSizeInMB":-1}'
    run_requests(
        contender.web_url, [Request("POST", "/admin/v2/namespaces/public/default/retention", body)], connections=1
    )


def measure_start(contender: Contender, round_number: int) -> Samples:
    """Starts the broker on an empty directory and looks at it while it is idle."""
    seconds = contender.start()
    try:
        time.sleep(IDLE_SECONDS)
        return {"start": Sample(seconds), "memory": Sample(pss_bytes(contender) / 1e6)}
    finally:
        contender.stop()


def measure_topic_memory(contender: Contender, round_number: int) -> Samples:
    """Memory of topics that are loaded, each with a producer; others were loaded before, so that the broker is warm."""
    contender.start()
    try:
        with loaded_topics(contender, _topic("warm", round_number)):
            before = pss_bytes(contender)
            with loaded_topics(contender, _topic("loaded", round_number)):
                return {"topic_memory": Sample((pss_bytes(contender) - before) / PARTITIONS / 1e3)}
    finally:
        contender.stop()


@contextmanager
def loaded_topics(broker: Serving, topic: str) -> Iterator[None]:
    """The partitions of a new topic, each with a producer as long as the block lasts."""
    path = f"/admin/v2/{topic.replace('://', '/')}/partitions"
    run_requests(broker.web_url, [Request("PUT", path, str(PARTITIONS).encode())], connections=1)
    names = [f"{topic}-partition-{number}" for number in range(PARTITIONS)]
    look_up_pipelined(broker.service_url, names)
    with RawConnection(broker.service_url) as connection:
        create_producers(connection, names)
        yield


def measure_restart(contender: Contender, round_number: int) -> Samples:
    """Kills the broker with a million messages in one topic; from its start to the first of them at a reader."""
    topic = _topic("kept", round_number)
    contender.start()
    try:
        keep_everything(contender)
        for _ in range(KEPT_MESSAGES // MESSAGES):
            publish(contender.service_url, topic, raw_frames(), MESSAGES)
        contender.kill()
        started = time.perf_counter()
        contender.start()
        with RawConnection(contender.service_url) as connection:
            connection.subscribe(topic, "first", durable=False)
            connection.socket.sendall(encode_flow(1, 1))
            connection.count(pb.BaseCommand.MESSAGE, 1)
        return {"restart": Sample(time.perf_counter() - started)}
    finally:
        contender.stop()


def measure_raw(contender: Contender, round_number: int) -> Samples:
    """Raw publish to one topic, then what was published read in three ways."""
    topic, url = _topic("raw", round_number), contender.service_url
    return {
        "raw_publish": rate(contender, MESSAGES, lambda: publish(url, topic, raw_frames(), MESSAGES)),
        "raw_drain": rate(contender, MESSAGES, lambda: drain(url, topic, MESSAGES)),
        "fan_out": rate(contender, SUBSCRIPTIONS * MESSAGES, lambda: fan_out(url, topic, SUBSCRIPTIONS, MESSAGES)),
        "shared_acks": _consume(contender, topic, pulsar.ConsumerType.Shared, acknowledge=True),
    }


def measure_shared(contender: Contender, round_number: int) -> Samples:
    """Redelivery, and eight consumers that share a subscription, on a topic of many keys."""
    topic, url = _topic("keys", round_number), contender.service_url
    publish(url, topic, keyed_frames(), MESSAGES)

    def drain_shared(sub_type: pb.CommandSubscribe.SubType.ValueType) -> Sample:
        return rate(
            contender,
            MESSAGES,
            lambda: share(url, topic, f"raw-{sub_type}", sub_type, consumers=CONSUMERS, count=MESSAGES),
        )

    redelivered = REDELIVERIES * UNACKNOWLEDGED
    return {
        "redelivery": rate(contender, redelivered, lambda: redeliver(url, topic, UNACKNOWLEDGED, REDELIVERIES)),
        "shared": drain_shared(pb.CommandSubscribe.Shared),
        "key_shared": drain_shared(pb.CommandSubscribe.Key_Shared),
    }


def measure_official(contender: Contender, round_number: int) -> Samples:
    """The official client publishes and consumes in batches."""
    topic = _topic("batched", round_number)
    client = pulsar.Client(contender.service_url, logger=QUIET)
    try:
        producer = client.create_producer(
            topic,
            batching_enabled=True,
            batching_max_messages=1000,
            block_if_queue_full=True,
            max_pending_messages=10_000,
        )
        payload = b"x" * PAYLOAD_BYTES
        with _cost_of(contender, MESSAGES) as cost:
            started = time.perf_counter()
            for _ in range(MESSAGES):
                producer.send_async(payload, None)
            producer.flush()
            seconds = time.perf_counter() - started
    finally:
        client.close()
    published = Sample(MESSAGES / seconds, cost.us_per_message)
    consumed = _consume(contender, topic, pulsar.ConsumerType.Exclusive, acknowledge=False)
    return {"batched_publish": published, "batched_consume": consumed}


def _consume(contender: Contender, topic: str, consumer_type: pulsar.ConsumerType, *, acknowledge: bool) -> Sample:
    client = pulsar.Client(contender.service_url, logger=QUIET)
    try:
        with _cost_of(contender, MESSAGES) as cost:
            started = time.perf_counter()
            consumer = client.subscribe(
                topic, "official", consumer_type=consumer_type, initial_position=pulsar.InitialPosition.Earliest
            )
            for _ in range(MESSAGES):
                message = consumer.receive(60_000)
                if acknowledge:
                    consumer.acknowledge(message)
            seconds = time.perf_counter() - started
        return Sample(MESSAGES / seconds, cost.us_per_message)
    finally:
        client.close()


def measure_latency(contender: Contender, round_number: int) -> Samples:
    """Single messages at a low rate."""
    topic = _topic("latency", round_number)
    pairs = list(latencies(contender.service_url, topic, LATENCY_SAMPLES, LATENCY_SAMPLES_PER_SECOND))
    receipts, received = zip(*pairs, strict=True)
    return {
        "receipt": Sample(statistics.median(receipts) * 1e3),
        "receive": Sample(statistics.median(received) * 1e3),
    }


def measure_many_partitions(contender: Contender, round_number: int) -> Samples:
    """A topic with a thousand partitions, opened for the first time by the official client."""
    name = f"wide-{round_number}"
    path = f"/admin/v2/persistent/public/default/{name}/partitions"
    run_requests(contender.web_url, [Request("PUT", path, str(PARTITIONS).encode())], connections=1)
    topic = f"persistent://public/default/{name}"
    client = pulsar.Client(contender.service_url, logger=QUIET, operation_timeout_seconds=120)
    try:
        started = time.perf_counter()
        client.create_producer(topic)
        opened = time.perf_counter()
        client.subscribe(topic, "wide")
        subscribed = time.perf_counter()
    finally:
        client.close()
    partitions = [f"{topic}-partition-{number}" for number in range(PARTITIONS)]
    return {
        "open_producer": Sample(opened - started),
        "open_consumer": Sample(subscribed - opened),
        "partition_metadata": _fastest(contender, ask_partitions_pipelined, [topic] * PARTITIONS),
        "partition_metadata_1000": _fastest(contender, ask_partitions_pipelined, partitions),
        "lookups": _fastest(contender, look_up_pipelined, partitions),
    }


def _fastest(contender: Contender, ask: Callable[[str, Sequence[str]], float], topics: Sequence[str]) -> Sample:
    return fastest(contender, len(topics), lambda: ask(contender.service_url, topics))


def measure_lookups(contender: Contender, round_number: int) -> Samples:
    """The brokers of many topics, asked one by one and, where the broker offers it, in batches; none of them exists."""
    url = contender.service_url

    def names(kind: str, count: int) -> list[str]:
        topic = _topic(f"lookup-{kind}", round_number)
        return [f"{topic}-partition-{number}" for number in range(count)]

    few, many = names("known", PARTITIONS), names("known", 10 * PARTITIONS)
    samples = {
        "lookups_serial": _fastest(contender, look_up_serially, few),
        "lookups_10000": _fastest(contender, look_up_pipelined, many),
    }
    if not offers_batch_lookup(url):
        return samples
    return samples | {
        "batch_lookup_new": Sample(_look_up_in_batches(url, names("new", PARTITIONS)) * 1e3),
        "batch_lookup": _fastest(contender, _look_up_in_batches, few),
        "batch_lookup_10000": _fastest(contender, _look_up_in_batches, many),
    }


def _look_up_in_batches(service_url: str, topics: Sequence[str]) -> float:
    return look_up_batches(
        service_url, [topics[start : start + PARTITIONS] for start in range(0, len(topics), PARTITIONS)]
    )


def measure_admin(contender: Contender, round_number: int) -> Samples:
    """Creating topics, and reading one policy, over the admin API."""
    paths = [f"/admin/v2/persistent/public/default/created-{round_number}-{n}" for n in range(CREATED_TOPICS)]
    creating = run_requests(contender.web_url, [Request("PUT", path) for path in paths], connections=HTTP_CONNECTIONS)
    get = Request("GET", "/admin/v2/namespaces/public/default/retention")
    with _cost_of(contender, ADMIN_GETS) as cost:
        getting = run_requests(contender.web_url, [get] * ADMIN_GETS, connections=HTTP_CONNECTIONS)
    return {
        "creations": Sample(CREATED_TOPICS / creating),
        "admin_get": Sample(ADMIN_GETS / getting, cost.us_per_message),
    }


def measure_arrival(pair: Pair, round_number: int) -> Samples:
    """What one cluster replicates to the other: at steady rates, as a backlog, and nothing."""
    moved = pair.move(entries_of(ARRIVAL_ENTRIES), ARRIVAL_ENTRIES)
    samples = {"arrival_backlog": Sample(moved.entries / moved.seconds, moved.cost.total / moved.entries * 1e6)}
    for per_second in ARRIVAL_RATES:
        arrival = arrival_at(pair, per_second, ARRIVAL_SECONDS)
        samples[f"arrival_{per_second}_p50"] = Sample(arrival.ms(0.5), arrival.cpu_us)
        samples[f"arrival_{per_second}_p99"] = Sample(arrival.ms(0.99))
    time.sleep(IDLE_SECONDS)
    return samples | {"arrival_idle": Sample(idle_cost(pair).total * 100)}


Measure = Callable[[Contender, int], Samples]
MeasurePair = Callable[[Pair, int], Samples]

# On a broker of their own, started by the measurement; then on one broker that stays up and warms up.
ON_FRESH_BROKER: Mapping[str, Measure] = {
    "start": measure_start,
    "topics": measure_topic_memory,
    "restart": measure_restart,
}
ON_WARM_BROKER: Mapping[str, Measure] = {
    "raw": measure_raw,
    "shared": measure_shared,
    "official": measure_official,
    "latency": measure_latency,
    "partitions": measure_many_partitions,
    "lookups": measure_lookups,
    "admin": measure_admin,
}
# On two clusters that stay up and warm up as well, one of which replicates to the other.
ON_WARM_PAIR: Mapping[str, MeasurePair] = {"arrival": measure_arrival}
