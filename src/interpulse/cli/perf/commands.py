"""``interpulse perf produce|consume|read|lookup``, with the options and the lines of pulsar-perf."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.messaging import open_client
from interpulse.cli.perf import options
from interpulse.cli.perf.asking import KINDS, ask_by_schedule
from interpulse.cli.perf.driver import LATENCY_MAX_US, Load
from interpulse.cli.perf.latencies import Latencies
from interpulse.cli.perf.measured_run import MeasuredRun
from interpulse.cli.perf.producing import Messages, contents_of, open_producers, send_by_schedule
from interpulse.cli.perf.receiving import LATENCY_MAX_MS, Receiver, receive_all
from interpulse.cli.perf.report import LOOKUP, PRODUCED, READ, RECEIVED
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.cli.support.params import MESSAGE_ID, STRINGS
from interpulse.cli.support.running import FAILED, CommandFailed, failure, open_admin
from interpulse.model.errors import PulsarError, TopicNotFound
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.client import Client

__all__ = ["perf"]

_OPERATION_MS: Final = 30_000
_CLOSING_S: Final = 5.0
_COMPRESSIONS: Final = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")
_ACCESS_MODES: Final = {
    "Shared": "shared",
    "Exclusive": "exclusive",
    "ExclusiveWithFencing": "exclusive-with-fencing",
    "WaitForExclusive": "wait-for-exclusive",
}
_TYPES: Final = {"Exclusive": "exclusive", "Shared": "shared", "Failover": "failover", "Key_Shared": "key-shared"}


class _Range(click.ParamType[tuple[int, int]]):
    name = "1,300"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        first, _, end = value.partition(",")
        if not (first.strip().isdigit() and end.strip().isdigit() and int(first) < int(end)):
            self.fail(f"{value!r} is not a range of seconds such as 1,300", param, ctx)
        return int(first), int(end)


@click.group(cls=CommandGroup)
def perf() -> None:
    """Put load on a cluster and measure it, with the options of pulsar-perf.

    Works with Apache Pulsar too. Every ten seconds a line, at the end a summary; Ctrl-C ends with it.
    """


@perf.command()
@options.common_options(options.PRODUCING)
@click.option(
    "-r",
    "--rate",
    type=click.FloatRange(min=0),
    default=100,
    show_default=True,
    help="Messages per second, of all topics together; 0 = the next one as soon as there is room.",
)
@click.option("-s", "--size", type=click.IntRange(min=0), default=1024, show_default=True, help="Bytes of a message.")
@click.option("-n", "--num-producers", "each", type=click.IntRange(min=1), default=1, help="Producers per topic.")
@click.option("-m", "--num-messages", "count_max", type=int, default=0, help="Messages in total; 0 = no limit.")
@click.option(
    "-o",
    "--max-outstanding",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Messages that may be without receipt; more have to wait, and their latency grows.",
)
@click.option("-f", "--payload-file", help="Contents, one of which is chosen for each message.")
@click.option(
    "-e", "--payload-delimiter", default="\\n", help="What stands between contents of -f; a new line by default."
)
@click.option(
    "-b",
    "--batch-time-window",
    "batch_delay_ms",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Milliseconds that a batch waits for more messages.",
)
@click.option("-db", "--disable-batching", is_flag=True, help="Send every message by itself.")
@click.option(
    "-bm",
    "--batch-max-messages",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Messages in a batch.",
)
@click.option(
    "-bb",
    "--batch-max-bytes",
    type=click.IntRange(min=1),
    default=4 * 1024 * 1024,
    help="Bytes of a batch; 4 MiB by default.",
)
@click.option(
    "-z", "--compression", type=click.Choice(_COMPRESSIONS, case_sensitive=False), default="NONE", help="Compression."
)
@click.option("-ch", "--chunking", is_flag=True, help="Send a message that is too large in chunks; needs -db.")
@click.option(
    "-am",
    "--access-mode",
    type=click.Choice(list(_ACCESS_MODES), case_sensitive=False),
    default="Shared",
    help="Whether other producers may write to the topic.",
)
@click.option("-pn", "--producer-name", help="Name of the producer; several get a number behind it.")
@click.option(
    "-mk",
    "--message-key-generation-mode",
    "key_mode",
    type=click.Choice(["autoIncrement", "random"]),
    help="Keys of the messages; none by default.",
)
@click.option("-d", "--delay", type=click.IntRange(min=0), default=0, help="Seconds until a message is delivered.")
@click.option("-dr", "--delay-range", type=_Range(), help="The same by chance, from the first up to the second.")
@click.option(
    "-set",
    "--set-event-time",
    "event_time_set",
    is_flag=True,
    help="Give messages the time they were due as event time.",
)
@click.option("-ef", "--exit-on-failure", is_flag=True, help="End when a message fails.")
@click.option(
    "--send-timeout", type=click.IntRange(min=0), default=0, help="Milliseconds to wait for a receipt; 0 = no limit."
)
@click.option(
    "--warmup-time",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Seconds at the start whose latencies do not count.",
)
@click.option("--separator", default="-", hidden=True)
@click.option("-np", "--partitions", type=click.IntRange(min=0), help="Create topics with so many partitions first.")
@click.option("-au", "--admin-url", "webServiceUrl", help="Web service URL, for -np.")
def produce(topics: tuple[TopicName, ...], topic_count: int, **flags: Any) -> None:
    """Send messages to TOPICS by a schedule.

    The latency of a message counts from the time that it was due, not from the time that it could be sent: a cluster
    that stops for a second is late for everything that was due in it. A timer of the system is a millisecond coarse,
    so up to one of them is the generator's own.
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
    each, name, partitions = flags.pop("each"), flags.pop("producer_name"), flags.pop("partitions")
    producer = _producer_settings(flags)
    run = _measured(flags, PRODUCED, LATENCY_MAX_US, 1000, command="produce", topics=names, rate=load.rate)
    listener_name, settings = flags.pop("listener_name"), options.settings_of(flags)

    async def send(client: Client) -> None:
        if partitions:
            await _create(settings, names, partitions)
        producers = await open_producers(client, names, each, name, producer)
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
    access = flags.pop("access_mode")
    return {
        "access_mode": next(mode for name, mode in _ACCESS_MODES.items() if name.lower() == access.lower()),
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
    """Raises CommandFailed for a topic that there is with another count."""
    async with open_admin(settings, settings.admin_url) as admin:
        for topic in topics:
            try:
                found = (await admin.topics.partitioned_metadata(topic)).partitions
            except TopicNotFound:
                found = None
            if found in (None, 0):
                await admin.topics.create_partitioned(topic, partitions)
            elif found != partitions:
                raise CommandFailed(f"{topic} has {found} partitions, not {partitions}", FAILED)


_queue_size = click.option(
    "-q",
    "--receiver-queue-size",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Messages that the broker may send ahead, per partition.",
)
_pace = click.option(
    "-r", "--rate", type=click.FloatRange(min=0), default=0, help="Be slow: messages per second; 0 = as they come."
)


@perf.command()
@options.common_options(options.CONSUMING)
@click.option(
    "-n", "--num-consumers", "each", type=click.IntRange(min=1), default=1, help="Consumers per subscription."
)
@click.option(
    "-ns",
    "--num-subscriptions",
    "subscription_count",
    type=click.IntRange(min=1),
    default=1,
    help="Subscriptions per topic: of one name NAME-0, NAME-1, ... are made.",
)
@click.option(
    "-ss", "--subscriptions", type=STRINGS, default="sub", show_default=True, help="Names of the subscriptions: a,b,..."
)
@click.option("-s", "--subscriber-name", hidden=True)
@click.option(
    "-st",
    "--subscription-type",
    type=click.Choice(list(_TYPES), case_sensitive=False),
    default="Exclusive",
    show_default=True,
    help="Type of the subscriptions.",
)
@click.option(
    "-sp",
    "--subscription-position",
    "position",
    type=click.Choice(["Latest", "Earliest"], case_sensitive=False),
    default="Latest",
    show_default=True,
    help="Start of a new subscription.",
)
@_pace
@_queue_size
@click.option("-rs", "--replicated", is_flag=True, help="Have the position replicated to other clusters.")
@click.option("-m", "--num-messages", "count_max", type=int, default=0, help="Messages in total; 0 = no limit.")
@click.option(
    "-mc",
    "--max_chunked_msg",
    "chunked_max",
    type=click.IntRange(min=0),
    default=0,
    help="Messages in chunks that may be incomplete.",
)
@click.option(
    "-ac",
    "--auto_ack_chunk_q_full",
    "oldest_acknowledged",
    is_flag=True,
    help="Acknowledge the chunks of the oldest message when there are more of them.",
)
@click.option("--batch-index-ack", is_flag=True, help="Acknowledge messages of a batch one by one.")
def consume(topics: tuple[TopicName, ...], topic_count: int, **flags: Any) -> None:
    """Receive and acknowledge messages of TOPICS. Latencies count from publishing, by the clocks of both machines."""
    names = options.topics_of(topics, topic_count)
    each, kind = flags.pop("each"), flags.pop("subscription_type")
    if kind.lower() == "exclusive" and each > 1:
        raise click.UsageError("Only one consumer is allowed when subscriptionType is Exclusive")
    subscriptions = _subscriptions(
        flags.pop("subscriptions"), flags.pop("subscriber_name"), flags.pop("subscription_count")
    )
    consumer = {
        "subscription_type": next(value for name, value in _TYPES.items() if name.lower() == kind.lower()),
        "initial_position": flags.pop("position").lower(),
        "receiver_queue_size": flags.pop("receiver_queue_size"),
        "replicate_subscription_state": flags.pop("replicated"),
        "chunked_messages_max": flags.pop("chunked_max") or 10,
        "oldest_chunks_acknowledged": flags.pop("oldest_acknowledged"),
        "batch_index_ack_enabled": flags.pop("batch_index_ack"),
    }

    async def open_all(client: Client) -> list[Receiver]:
        consumers = [
            await client.subscribe(topic, subscription, **consumer)
            for topic in names
            for subscription in subscriptions
            for _ in range(each)
        ]
        return [Receiver(consumer.receive, consumer.acknowledge) for consumer in consumers]

    _receive(flags, _measured(flags, RECEIVED, LATENCY_MAX_MS, 1, command="consume", topics=names), open_all)


def _subscriptions(names: list[str], prefix: str | None, count: int) -> list[str]:
    """As pulsar-perf makes them of one name."""
    if len(names) == count:
        return names
    if len(names) != 1:
        raise click.UsageError("The size of subscriptions list should be equal to --num-subscriptions")
    return [f"{prefix or names[0]}-{index}" for index in range(count)]


@perf.command()
@options.common_options(options.READING)
@_pace
@_queue_size
@click.option(
    "-m",
    "--start-message-id",
    "start",
    type=MESSAGE_ID,
    default="earliest",
    show_default=True,
    help="Where reading begins: latest, earliest, or ledgerId:entryId.",
)
@click.option("-n", "--num-messages", "count_max", type=int, default=0, help="Messages in total; 0 = no limit.")
def read(topics: tuple[TopicName, ...], topic_count: int, start: MessageId, **flags: Any) -> None:
    """Read messages of TOPICS without a subscription. Latencies count from publishing."""
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
@click.option(
    "-k",
    "--kind",
    type=click.Choice(KINDS),
    default="lookup",
    show_default=True,
    help="What is asked: the count of partitions, the broker of a topic, or the brokers of many.",
)
@click.option(
    "-r",
    "--rate",
    type=click.FloatRange(min=0),
    default=100,
    show_default=True,
    help="Questions per second; 0 = the next one as soon as there is room.",
)
@click.option(
    "-bs",
    "--batch-size",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Topics in a question of kind batch.",
)
@click.option(
    "-m",
    "--num-messages",
    "--num-questions",
    "count_max",
    type=int,
    default=0,
    help="Questions in total; 0 = no limit.",
)
@click.option(
    "-o",
    "--max-outstanding",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Questions that may be without answer.",
)
@click.option(
    "--warmup-time",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Seconds at the start whose latencies do not count.",
)
def lookup(topics: tuple[TopicName, ...], topic_count: int, kind: str, batch_size: int, **flags: Any) -> None:
    """Ask about TOPICS by a schedule; nothing is created.

    With --kind lookup the client asks as it does for producers and consumers: questions that come while one is under
    way go together, to a broker that answers many at once.
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
