"""Options of single commands of perf, with pulsar-perf's names. `options` has the shared ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from interpulse.cli.messaging import chunk_options, replicated_option, start_option, type_option
from interpulse.cli.perf.asking import KINDS
from interpulse.cli.support.params import MESSAGE_ID, STRINGS
from interpulse.terminal.option_groups import option_group

_COMPRESSIONS: Final = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")
ACCESS_MODES: Final = {
    "Shared": "shared",
    "Exclusive": "exclusive",
    "ExclusiveWithFencing": "exclusive-with-fencing",
    "WaitForExclusive": "wait-for-exclusive",
}
"""Access modes of the client by their names in pulsar-perf."""


class _Range(click.ParamType[tuple[int, int]]):
    name = "1,300"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        first, _, end = value.partition(",")
        if not (first.strip().isdecimal() and end.strip().isdecimal() and int(first) < int(end)):
            self.fail(f"{value!r} is not a range of seconds such as 1,300", param, ctx)
        return int(first), int(end)


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
_warm_up = click.option(
    "--warmup-time",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Seconds at the start whose latencies do not count.",
)


def _count(flag: str) -> Callable[[Any], Any]:
    return click.option(
        flag, "--num-messages", "count_max", type=int, default=0, help="Messages in total; 0 = no limit."
    )


def _schedule(what: str) -> Callable[[Any], Any]:
    return click.option(
        "-r",
        "--rate",
        type=click.FloatRange(min=0),
        default=100,
        show_default=True,
        help=f"{what}; 0 = the next one as soon as there is room.",
    )


def _outstanding(meaning: str) -> Callable[[Any], Any]:
    return click.option(
        "-o", "--max-outstanding", type=click.IntRange(min=1), default=1000, show_default=True, help=meaning
    )


sending_options = option_group(
    _schedule("Messages per second, of all topics together"),
    click.option(
        "-s", "--size", type=click.IntRange(min=0), default=1024, show_default=True, help="Bytes of a message."
    ),
    click.option(
        "-n", "--num-producers", "per_topic", type=click.IntRange(min=1), default=1, help="Producers per topic."
    ),
    _count("-m"),
    _outstanding("Messages that may be without receipt; more have to wait, and their latency grows."),
    click.option("-f", "--payload-file", help="Contents, one of which is chosen for each message."),
    click.option(
        "-e", "--payload-delimiter", default="\\n", help="What stands between contents of -f; a new line by default."
    ),
    click.option(
        "-b",
        "--batch-time-window",
        "batch_delay_ms",
        type=click.FloatRange(min=0),
        default=1.0,
        show_default=True,
        help="Milliseconds that a batch waits for more messages.",
    ),
    click.option("-db", "--disable-batching", is_flag=True, help="Send every message by itself."),
    click.option(
        "-bm",
        "--batch-max-messages",
        type=click.IntRange(min=1),
        default=1000,
        show_default=True,
        help="Messages in a batch.",
    ),
    click.option(
        "-bb",
        "--batch-max-bytes",
        type=click.IntRange(min=1),
        default=4 * 1024 * 1024,
        help="Bytes of a batch; 4 MiB by default.",
    ),
    click.option(
        "-z",
        "--compression",
        type=click.Choice(_COMPRESSIONS, case_sensitive=False),
        default="NONE",
        help="Compression.",
    ),
    click.option("-ch", "--chunking", is_flag=True, help="Send a message that is too large in chunks; needs -db."),
    click.option(
        "-am",
        "--access-mode",
        type=click.Choice(list(ACCESS_MODES), case_sensitive=False),
        default="Shared",
        help="Whether other producers may write to the topic.",
    ),
    click.option("-pn", "--producer-name", help="Name of the producer; several get a number behind it."),
    click.option(
        "-mk",
        "--message-key-generation-mode",
        "key_mode",
        type=click.Choice(["autoIncrement", "random"]),
        help="Keys of the messages; none by default.",
    ),
    click.option("-d", "--delay", type=click.IntRange(min=0), default=0, help="Seconds until a message is delivered."),
    click.option("-dr", "--delay-range", type=_Range(), help="The same by chance, from the first up to the second."),
    click.option(
        "-set",
        "--set-event-time",
        "event_time_set",
        is_flag=True,
        help="Give messages the time they were due as event time.",
    ),
    click.option("-ef", "--exit-on-failure", is_flag=True, help="End when a message fails."),
    click.option(
        "--send-timeout",
        type=click.IntRange(min=0),
        default=0,
        help="Milliseconds to wait for a receipt; 0 = no limit.",
    ),
    _warm_up,
    click.option("--separator", default="-", hidden=True),
    click.option(
        "-np", "--partitions", type=click.IntRange(min=0), help="Create topics with so many partitions first."
    ),
    click.option("-au", "--admin-url", "webServiceUrl", help="Web service URL, for -np."),
)

consuming_options = option_group(
    click.option(
        "-n",
        "--num-consumers",
        "per_subscription",
        type=click.IntRange(min=1),
        default=1,
        help="Consumers per subscription.",
    ),
    click.option(
        "-ns",
        "--num-subscriptions",
        "subscription_count",
        type=click.IntRange(min=1),
        default=1,
        help="Subscriptions per topic: of one name NAME-0, NAME-1, ... are made.",
    ),
    click.option(
        "-ss",
        "--subscriptions",
        type=STRINGS,
        default="sub",
        show_default=True,
        help="Names of the subscriptions: a,b,...",
    ),
    click.option("-s", "--subscriber-name", hidden=True),
    type_option("-st"),
    start_option("-sp"),
    _pace,
    _queue_size,
    replicated_option,
    _count("-m"),
    chunk_options,
    click.option("--batch-index-ack", is_flag=True, help="Acknowledge messages of a batch one by one."),
)

reading_options = option_group(
    _pace,
    _queue_size,
    click.option(
        "-m",
        "--start-message-id",
        "start",
        type=MESSAGE_ID,
        default="earliest",
        show_default=True,
        help="Where reading begins: latest, earliest, or ledgerId:entryId.",
    ),
    _count("-n"),
)

asking_options = option_group(
    click.option(
        "-k",
        "--kind",
        type=click.Choice(KINDS),
        default="lookup",
        show_default=True,
        help="What is asked: the count of partitions, the broker of a topic, or the brokers of many.",
    ),
    _schedule("Questions per second"),
    click.option(
        "-bs",
        "--batch-size",
        type=click.IntRange(min=1),
        default=100,
        show_default=True,
        help="Topics in a question of kind batch.",
    ),
    click.option(
        "-m",
        "--num-messages",
        "--num-questions",
        "count_max",
        type=int,
        default=0,
        help="Questions in total; 0 = no limit.",
    ),
    _outstanding("Questions that may be without answer."),
    _warm_up,
)
