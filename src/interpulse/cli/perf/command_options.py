"""Options of single commands of perf, with pulsar-perf's names. `options` has the shared ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from interpulse.cli.messaging import chunk_options, replicated_option, start_option, type_option
from interpulse.cli.perf.asking import KINDS
from interpulse.cli.support.params import AMOUNT, COUNT, MESSAGE_ID, POSITIVE, STRINGS
from interpulse.terminal.option_groups import flag, option, option_group

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


_queue_size = option(
    "-q --receiver-queue-size", "Messages that the broker may send ahead, per partition.", POSITIVE, 1000
)
_pace = option("-r --rate", "Be slow: messages per second; 0 = as they come.", AMOUNT, 0)
_warm_up = option("--warmup-time", "Seconds at the start whose latencies do not count.", AMOUNT, 1.0)


def _count(flag: str) -> Callable[[Any], Any]:
    return click.option(
        flag, "--num-messages", "count_max", type=int, default=0, help="Messages in total; 0 = no limit."
    )


def _schedule(what: str) -> Callable[[Any], Any]:
    return option("-r --rate", f"{what}; 0 = the next one as soon as there is room.", AMOUNT, 100)


def _outstanding(meaning: str) -> Callable[[Any], Any]:
    return option("-o --max-outstanding", meaning, POSITIVE, 1000)


sending_options = option_group(
    _schedule("Messages per second, of all topics together"),
    option("-s --size", "Bytes of a message.", COUNT, 1024),
    option("-n --num-producers per_topic", "Producers per topic.", POSITIVE, 1, shown=False),
    _count("-m"),
    _outstanding("Messages that may be without receipt; more have to wait, and their latency grows."),
    option("-f --payload-file", "Contents, one of which is chosen for each message."),
    option(
        "-e --payload-delimiter",
        "What stands between contents of -f; a new line by default.",
        default="\\n",
        shown=False,
    ),
    option("-b --batch-time-window batch_delay_ms", "Milliseconds that a batch waits for more messages.", AMOUNT, 1.0),
    flag("-db --disable-batching", "Send every message by itself."),
    option("-bm --batch-max-messages", "Messages in a batch.", POSITIVE, 1000),
    option("-bb --batch-max-bytes", "Bytes of a batch; 4 MiB by default.", POSITIVE, 4 * 1024 * 1024, shown=False),
    option("-z --compression", "Compression.", click.Choice(_COMPRESSIONS, case_sensitive=False), "NONE", shown=False),
    flag("-ch --chunking", "Send a message that is too large in chunks; needs -db."),
    option(
        "-am --access-mode",
        "Whether other producers may write to the topic.",
        click.Choice(list(ACCESS_MODES), case_sensitive=False),
        "Shared",
        shown=False,
    ),
    option("-pn --producer-name", "Name of the producer; several get a number behind it."),
    option(
        "-mk --message-key-generation-mode key_mode",
        "Keys of the messages; none by default.",
        click.Choice(["autoIncrement", "random"]),
    ),
    option("-d --delay", "Seconds until a message is delivered.", COUNT, 0),
    option("-dr --delay-range", "The same by chance, from the first up to the second.", _Range()),
    flag("-set --set-event-time event_time_set", "Give messages the time they were due as event time."),
    flag("-ef --exit-on-failure", "End when a message fails."),
    option("--send-timeout", "Milliseconds to wait for a receipt; 0 = no limit.", COUNT, 0),
    _warm_up,
    option("--separator", None, default="-", shown=False, hidden=True),
    option("-np --partitions", "Create topics with so many partitions first.", COUNT),
    option("-au --admin-url webServiceUrl", "Web service URL, for -np."),
)

consuming_options = option_group(
    option("-n --num-consumers per_subscription", "Consumers per subscription.", POSITIVE, 1, shown=False),
    option(
        "-ns --num-subscriptions subscription_count",
        "Subscriptions per topic: of one name NAME-0, NAME-1, ... are made.",
        POSITIVE,
        1,
        shown=False,
    ),
    option("-ss --subscriptions", "Names of the subscriptions: a,b,...", STRINGS, "sub"),
    option("-s --subscriber-name", None, hidden=True),
    type_option("-st"),
    start_option("-sp"),
    _pace,
    _queue_size,
    replicated_option,
    _count("-m"),
    chunk_options,
    flag("--batch-index-ack", "Acknowledge messages of a batch one by one."),
)

reading_options = option_group(
    _pace,
    _queue_size,
    option(
        "-m --start-message-id start",
        "Where reading begins: latest, earliest, or ledgerId:entryId.",
        MESSAGE_ID,
        "earliest",
    ),
    _count("-n"),
)

asking_options = option_group(
    option(
        "-k --kind",
        "What is asked: the count of partitions, the broker of a topic, or the brokers of many.",
        click.Choice(KINDS),
        "lookup",
    ),
    _schedule("Questions per second"),
    option("-bs --batch-size", "Topics in a question of kind batch.", POSITIVE, 100),
    option("-m --num-messages --num-questions count_max", "Questions in total; 0 = no limit.", int, 0),
    _outstanding("Questions that may be without answer."),
    _warm_up,
)
