"""Commands ``interpulse perf produce|consume|read|lookup``, with the options and output lines of pulsar-perf."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.messaging import SUBSCRIPTION_TYPES, open_client
from interpulse.cli.perf import options
from interpulse.cli.perf.asking import ask_by_schedule
from interpulse.cli.perf.command_options import (
    ACCESS_MODES,
    asking_options,
    consuming_options,
    reading_options,
    sending_options,
)
from interpulse.cli.perf.driver import LATENCY_MAX_US, Load
from interpulse.cli.perf.latencies import Latencies
from interpulse.cli.perf.measured_run import MeasuredRun
from interpulse.cli.perf.producing import Messages, contents_of, open_producers, send_by_schedule
from interpulse.cli.perf.receiving import LATENCY_MAX_MS, Receiver, receive_all
from interpulse.cli.perf.report import LOOKUP, PRODUCED, READ, RECEIVED
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.cli.support.running import FAILED, CommandFailed, failure, open_admin
from interpulse.model.errors import PulsarError, TopicNotFound
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.client import Client

_OPERATION_MS: Final = 30_000
_CLOSING_S: Final = 5.0


@click.group(cls=CommandGroup)
def perf() -> None:
    """Put load on a cluster and measure it, with the options of pulsar-perf.

    Also works with Apache Pulsar. Prints a line every ten seconds and a summary at the end or on Ctrl-C.
    """


@perf.command()
@options.common_options(options.PRODUCING)
@sending_options
def produce(topics: tuple[TopicName, ...], topic_count: int, **flags: Any) -> None:
    """Send messages to TOPICS by a schedule.

    Latency counts from the time a message is due, not from the time it could be sent. If a cluster stops for a second,
    every message due in that second is late. The system's timer has a resolution of about one millisecond, so up to one
    millisecond is the generator's own.
    """
    names = options.topics_of(topics, topic_count)
    load = Load(
        flags.pop("rate"),
        max(0, flags.pop("count_max")),
        max(0.0, flags.pop("duration_s")),
        flags.pop("warmup_time"),
        flags["max_outstanding"],
        flags.pop("exit_on_failure"),
    )
    messages = _messages(flags)
    per_topic, name, partitions = flags.pop("per_topic"), flags.pop("producer_name"), flags.pop("partitions")
    producer = _producer_settings(flags)
    run = _measured(flags, PRODUCED, LATENCY_MAX_US, 1000, command="produce", topics=names, rate=load.rate)
    listener_name, settings = flags.pop("listener_name"), options.settings_of(flags)

    async def send(client: Client) -> None:
        if partitions:
            await _create(settings, names, partitions)
        producers = await open_producers(client, names, per_topic, name, producer)
        await run.follow(send_by_schedule(run, load, producers, messages))

    _run(settings, listener_name, send)


def _messages(flags: dict[str, Any]) -> Messages:
    contents = contents_of(flags.pop("size"), flags.pop("payload_file"), flags.pop("payload_delimiter"))
    delay, delays = flags.pop("delay"), flags.pop("delay_range")
    if flags.pop("separator") != "-":
        raise click.UsageError("--separator has no effect in pulsar-perf either: topics are numbered with a -")
    if delays is not None:
        span: tuple[int, int] | None = (delays[0] * 1000, delays[1] * 1000)
    else:
        span = (delay * 1000, delay * 1000) if delay else None
    return Messages(contents, flags.pop("key_mode"), span, flags.pop("event_time_set"))


def _producer_settings(flags: dict[str, Any]) -> dict[str, Any]:
    chunking, batching = flags.pop("chunking"), not flags.pop("disable_batching")
    if chunking and batching:
        raise click.UsageError("--chunking needs --disable-batching")
    return {
        "access_mode": ACCESS_MODES[flags.pop("access_mode")],
        "batch_bytes_max": flags.pop("batch_max_bytes"),
        "batch_delay_ms": round(flags.pop("batch_delay_ms")),
        "batch_messages_max": flags.pop("batch_max_messages"),
        "batching_enabled": batching,
        "chunking_enabled": chunking,
        "compression": flags.pop("compression").lower(),
        "pending_messages_max": flags.pop("max_outstanding"),
        "send_timeout_ms": flags.pop("send_timeout"),
    }


async def _create(settings: ConnectionSettings, topics: list[str], partitions: int) -> None:
    """Create a partitioned topic. Raise CommandFailed if it exists with another number of partitions."""
    async with open_admin(settings, settings.admin_url) as admin:
        for topic in topics:
            try:
                existing = (await admin.topics.partitioned_metadata(topic)).partitions
            except TopicNotFound:
                existing = None
            if existing in (None, 0):
                await admin.topics.create_partitioned(topic, partitions)
            elif existing != partitions:
                raise CommandFailed(f"{topic} has {existing} partitions, not {partitions}", FAILED)


@perf.command()
@options.common_options(options.CONSUMING)
@consuming_options
def consume(topics: tuple[TopicName, ...], topic_count: int, **flags: Any) -> None:
    """Receive and acknowledge messages of TOPICS. Latency counts from publishing, by the clocks of both machines."""
    names = options.topics_of(topics, topic_count)
    per_subscription, kind = flags.pop("per_subscription"), flags.pop("subscription_type")
    if kind == "Exclusive" and per_subscription > 1:
        raise click.UsageError("Only one consumer is allowed when subscriptionType is Exclusive")
    subscriptions = _subscriptions(
        flags.pop("subscriptions"), flags.pop("subscriber_name"), flags.pop("subscription_count")
    )
    consumer = {
        "subscription_type": SUBSCRIPTION_TYPES[kind],
        "initial_position": flags.pop("position").lower(),
        "receiver_queue_size": flags.pop("receiver_queue_size"),
        "replicate_subscription_state": flags.pop("replicated"),
        "chunked_messages_max": flags.pop("chunked_max") or 10,
        "oldest_chunks_acknowledged": flags.pop("oldest_chunks_acknowledged"),
        "batch_index_ack_enabled": flags.pop("batch_index_ack"),
    }

    async def open_all(client: Client) -> list[Receiver]:
        consumers = [
            await client.subscribe(topic, subscription, **consumer)
            for topic in names
            for subscription in subscriptions
            for _ in range(per_subscription)
        ]
        return [Receiver(consumer.receive, consumer.acknowledge) for consumer in consumers]

    _receive(flags, _measured(flags, RECEIVED, LATENCY_MAX_MS, 1, command="consume", topics=names), open_all)


def _subscriptions(names: list[str], prefix: str | None, count: int) -> list[str]:
    """Return the subscription names that pulsar-perf derives from one name."""
    if len(names) == count:
        return names
    if len(names) != 1:
        raise click.UsageError("The size of subscriptions list should be equal to --num-subscriptions")
    return [f"{prefix or names[0]}-{index}" for index in range(count)]


@perf.command()
@options.common_options(options.READING)
@reading_options
def read(topics: tuple[TopicName, ...], topic_count: int, start: MessageId, **flags: Any) -> None:
    """Read messages of TOPICS without a subscription. Latency counts from publishing."""
    names, queue_size = options.topics_of(topics, topic_count), flags.pop("receiver_queue_size")

    async def open_all(client: Client) -> list[Receiver]:
        readers = [await client.create_reader(topic, start, receiver_queue_size=queue_size) for topic in names]
        return [Receiver(reader.read_next, lambda message: None) for reader in readers]

    _receive(flags, _measured(flags, READ, LATENCY_MAX_MS, 1, command="read", topics=names), open_all)


def _receive(
    flags: dict[str, Any], run: MeasuredRun, open_all: Callable[[Client], Coroutine[Any, Any, list[Receiver]]]
) -> None:
    rate, count_max, duration_s = flags.pop("rate"), max(0, flags.pop("count_max")), max(0.0, flags.pop("duration_s"))
    listener_name, settings = flags.pop("listener_name"), options.settings_of(flags)

    async def receive(client: Client) -> None:
        receivers = await open_all(client)
        await run.follow(receive_all(run, receivers, rate=rate, count_max=count_max, duration_s=duration_s))

    _run(settings, listener_name, receive)


@perf.command()
@options.common_options({})
@asking_options
def lookup(topics: tuple[TopicName, ...], topic_count: int, kind: str, batch_size: int, **flags: Any) -> None:
    """Ask about TOPICS by a schedule. Nothing is created.

    With --kind lookup, the client asks as it does for producers and consumers: questions that arrive while one is in
    flight are combined, if the broker answers many in one request.
    """
    names = options.topics_of(topics, topic_count)
    load = Load(
        flags.pop("rate"),
        max(0, flags.pop("count_max")),
        max(0.0, flags.pop("duration_s")),
        flags.pop("warmup_time"),
        flags.pop("max_outstanding"),
        False,
    )
    run = _measured(flags, LOOKUP, LATENCY_MAX_US, 1000, command="lookup", kind=kind, topics=names, rate=load.rate)
    listener_name, settings = flags.pop("listener_name"), options.settings_of(flags)
    _run(
        settings, listener_name, lambda client: run.follow(ask_by_schedule(run, load, client, kind, names, batch_size))
    )


def _measured(flags: dict[str, Any], wording: Any, value_max: int, units_per_ms: int, **notes: Any) -> MeasuredRun:
    latencies = Latencies(value_max=value_max, units_per_ms=units_per_ms)
    run = MeasuredRun(wording, options.run_options(flags), latencies)
    run.note(**notes)
    return run


def _run(
    settings: ConnectionSettings, listener_name: str | None, call: Callable[[Client], Coroutine[Any, Any, None]]
) -> None:
    async def opened() -> None:
        client = open_client(settings, _OPERATION_MS, listener_name)
        try:
            await call(client)
        finally:
            try:
                async with asyncio.timeout(_CLOSING_S):
                    await client.close()
            except (PulsarError, TimeoutError):  # what failed is counted, and the summary stands
                pass

    try:
        asyncio.run(opened())
    except PulsarError as error:
        raise failure(error) from error
