"""Commands ``interpulse perf produce|consume|read|lookup``, with the options and output lines of pulsar-perf."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.messaging import SUBSCRIPTION_TYPES, open_client
from interpulse.cli.perf import loads, options
from interpulse.cli.perf.driver import LATENCY_MAX_US, Load
from interpulse.cli.perf.latencies import HistogramFile, Latencies
from interpulse.cli.perf.loads import Messages, Receiver
from interpulse.cli.perf.measured_run import LOOKUP, PRODUCED, READ, RECEIVED, MeasuredRun, Wording
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.cli.support.running import FAILED, CommandFailed, failure, open_admin
from interpulse.model.errors import PulsarError, TopicNotFound

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
@options.sending_options
def produce(**flags: Any) -> None:
    """Send messages to TOPICS by a schedule.

    Latency counts from the time a message is due, not from the time it could be sent. If a cluster stops for a second,
    every message due in that second is late. The system's timer has a resolution of about one millisecond, so up to one
    millisecond is the generator's own.
    """
    topics, load, messages = options.topics_of(flags), _load(flags), _messages(flags)
    producer = _producer_settings(flags)

    async def send(client: Client, run: MeasuredRun) -> None:
        if flags["partitions"]:
            await _create(options.connection_of(flags), topics, flags["partitions"])
        producers = await loads.open_producers(client, topics, flags["per_topic"], flags["producer_name"], producer)
        await run.follow(loads.send_by_schedule(run, load, producers, messages))

    _run(flags, PRODUCED, send, command="produce", topics=topics, rate=load.rate)


def _load(flags: dict[str, Any]) -> Load:
    return Load(
        rate=flags["rate"],
        count_max=max(0, flags["count_max"]),
        duration_s=max(0.0, flags["duration_s"]),
        warmup_s=flags["warmup_time"],
        outstanding_max=flags["max_outstanding"],
        ends_on_failure=flags.get("exit_on_failure", False),
    )


def _messages(flags: dict[str, Any]) -> Messages:
    contents = loads.contents_of(flags["size"], flags["payload_file"], flags["payload_delimiter"])
    if flags["separator"] != "-":
        raise click.UsageError("--separator has no effect in pulsar-perf either: topics are numbered with a -")
    first, end = flags["delay_range"] or (flags["delay"], flags["delay"])
    delays = (first * 1000, end * 1000) if flags["delay_range"] or flags["delay"] else None
    return Messages(contents, flags["key_mode"], delays, flags["event_time_set"])


def _producer_settings(flags: dict[str, Any]) -> dict[str, Any]:
    if flags["chunking"] and not flags["disable_batching"]:
        raise click.UsageError("--chunking needs --disable-batching")
    return {
        "access_mode": options.ACCESS_MODES[flags["access_mode"]],
        "batch_bytes_max": flags["batch_max_bytes"],
        "batch_delay_ms": round(flags["batch_delay_ms"]),
        "batch_messages_max": flags["batch_max_messages"],
        "batching_enabled": not flags["disable_batching"],
        "chunking_enabled": flags["chunking"],
        "compression": flags["compression"].lower(),
        "pending_messages_max": flags["max_outstanding"],
        "send_timeout_ms": flags["send_timeout"],
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
@options.consuming_options
def consume(**flags: Any) -> None:
    """Receive and acknowledge messages of TOPICS. Latency counts from publishing, by the clocks of both machines."""
    topics, kind = options.topics_of(flags), flags["subscription_type"]
    if kind == "Exclusive" and flags["per_subscription"] > 1:
        raise click.UsageError("Only one consumer is allowed when subscriptionType is Exclusive")
    subscriptions = options.subscriptions_of(flags)
    consumer = {
        "subscription_type": SUBSCRIPTION_TYPES[kind],
        "initial_position": flags["position"].lower(),
        "receiver_queue_size": flags["receiver_queue_size"],
        "replicate_subscription_state": flags["replicated"],
        "chunked_messages_max": flags["chunked_max"] or 10,
        "oldest_chunks_acknowledged": flags["oldest_chunks_acknowledged"],
        "batch_index_ack_enabled": flags["batch_index_ack"],
    }

    async def open_all(client: Client) -> list[Receiver]:
        consumers = [
            await client.subscribe(topic, subscription, **consumer)
            for topic in topics
            for subscription in subscriptions
            for _ in range(flags["per_subscription"])
        ]
        return [Receiver(consumer.receive, consumer.acknowledge) for consumer in consumers]

    _receive(flags, RECEIVED, open_all, command="consume", topics=topics)


@perf.command()
@options.common_options(options.READING)
@options.reading_options
def read(**flags: Any) -> None:
    """Read messages of TOPICS without a subscription. Latency counts from publishing."""
    topics = options.topics_of(flags)

    async def open_all(client: Client) -> list[Receiver]:
        size = flags["receiver_queue_size"]
        readers = [await client.create_reader(topic, flags["start"], receiver_queue_size=size) for topic in topics]
        return [Receiver(reader.read_next, lambda message: None) for reader in readers]

    _receive(flags, READ, open_all, command="read", topics=topics)


def _receive(
    flags: dict[str, Any],
    wording: Wording,
    open_all: Callable[[Client], Coroutine[Any, Any, list[Receiver]]],
    **notes: Any,
) -> None:
    limits = {"count_max": max(0, flags["count_max"]), "duration_s": max(0.0, flags["duration_s"])}

    async def receive(client: Client, run: MeasuredRun) -> None:
        await run.follow(loads.receive_all(run, await open_all(client), rate=flags["rate"], **limits))

    _run(flags, wording, receive, **notes)


@perf.command()
@options.common_options({})
@options.asking_options
def lookup(**flags: Any) -> None:
    """Ask about TOPICS by a schedule. Nothing is created.

    With --kind lookup, the client asks as it does for producers and consumers: questions that arrive while one is in
    flight are combined, if the broker answers many in one request.
    """
    topics, load, kind = options.topics_of(flags), _load(flags), flags["kind"]

    async def ask(client: Client, run: MeasuredRun) -> None:
        await run.follow(loads.ask_by_schedule(run, load, client, kind, topics, flags["batch_size"]))

    _run(flags, LOOKUP, ask, command="lookup", kind=kind, topics=topics, rate=load.rate)


def _run(
    flags: dict[str, Any],
    wording: Wording,
    work: Callable[[Client, MeasuredRun], Coroutine[Any, Any, None]],
    **notes: Any,
) -> None:
    """Run ``work`` with an open client and its measurements. ``notes`` are members of the summary."""
    path = flags["histogram_file"]
    value_max, units_per_ms = (LATENCY_MAX_US, 1000) if wording.sends else (loads.LATENCY_MAX_MS, 1)
    file = None if path is None else HistogramFile(path)
    latencies = Latencies(value_max=value_max, units_per_ms=units_per_ms, file=file)
    interval_s, as_json = flags["report_interval_s"], flags["output"] == "json"
    run = MeasuredRun(wording, latencies, report_interval_s=interval_s, as_json=as_json, **notes)
    settings = options.connection_of(flags)

    async def opened() -> None:
        client = open_client(settings, _OPERATION_MS, flags["listener_name"])
        try:
            await work(client, run)
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
