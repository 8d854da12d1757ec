"""Options of perf, with pulsar-perf's names, and the refusals of those not offered."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from interpulse.cli.admin.admin import connection_options
from interpulse.cli.messaging import chunk_options, replicated_option, start_option, type_option
from interpulse.cli.perf.loads import KINDS
from interpulse.cli.support.connection.settings import VARIABLE, ConnectionSettings
from interpulse.cli.support.params import AMOUNT, COUNT, MESSAGE_ID, POSITIVE, STRINGS, TOPIC, Parsed
from interpulse.cli.support.running import NOT_OFFERED, CommandFailed
from interpulse.model.names import TopicName
from interpulse.terminal.option_groups import Command, Decorator, flag, option, option_group

_ONE_LOOP: Final = "one event loop does all the work; start several processes for more"
_ONE_CONNECTION: Final = "a client has one connection to each broker"
_PROXY: Final = "connections go to the brokers; give the address of a proxy as --service-url"
_TRANSACTIONS: Final = "transactions are not offered"
_KEYS: Final = "messages are measured as they are; the commands produce and consume encrypt and decrypt"
_MEMORY: Final = "memory is bounded by --max-outstanding and --receiver-queue-size"
_POOL: Final = "there is no pool of messages"
_NO_CLASSES: Final = "contents are sent as they are in the file: there are no classes that format them"

_OF_ALL: Final = {
    ("-c", "--max-connections"): _ONE_CONNECTION,
    ("-i", "--stats-interval-seconds"): "lines come every --report-interval seconds",
    ("-ioThreads", "--num-io-threads"): _ONE_LOOP,
    ("-bw", "--busy-wait"): "the event loop waits for what comes",
    ("-lt", "--num-listener-threads"): _ONE_LOOP,
    ("-mlr", "--max-lookup-request"): "a lookup for each topic is all there is",
    ("--proxy-url",): _PROXY,
    ("--proxy-protocol",): _PROXY,
    ("-ml", "--memory-limit"): _MEMORY,
}
_OF_TRANSACTIONS: Final = {
    ("-tto", "--txn-timeout"): _TRANSACTIONS,
    ("-nmt", "--numMessage-perTransaction"): _TRANSACTIONS,
    ("-txn", "--txn-enable"): _TRANSACTIONS,
    ("-abort",): _TRANSACTIONS,
}
PRODUCING: Final = {
    **_OF_ALL,
    **_OF_TRANSACTIONS,
    ("-threads", "--num-test-threads"): _ONE_LOOP,
    ("-p", "--max-outstanding-across-partitions"): "--max-outstanding counts all messages of the run",
    ("-k", "--encryption-key-name"): _KEYS,
    ("-v", "--encryption-key-value-file"): _KEYS,
    ("-fp", "--format-payload"): _NO_CLASSES,
    ("-fc", "--format-class"): _NO_CLASSES,
}
"""Options of pulsar-perf produce that are not offered, with the reason."""
CONSUMING: Final = {
    **_OF_ALL,
    **_OF_TRANSACTIONS,
    ("-ntxn",): _TRANSACTIONS,
    ("-p", "--receiver-queue-size-across-partitions"): "--receiver-queue-size is that of each partition",
    ("-aq", "--auto-scaled-receiver-queue-size"): "--receiver-queue-size stays as it is",
    ("--acks-delay-millis",): "acknowledgements are sent together within 100 ms",
    ("-e", "--expire_time_incomplete_chunked_messages"): "-mc says how many messages may be incomplete",
    ("-v", "--encryption-key-value-file"): _KEYS,
    ("-pm", "--pool-messages"): _POOL,
}
READING: Final = {**_OF_ALL, ("--use-tls",): "the address says it: pulsar+ssl://host:port"}

_FLAGS: Final = frozenset({"-bw", "-txn", "-abort", "-fp", "-aq", "--use-tls"})


def _not_offered(options: Mapping[tuple[str, ...], str]) -> Callable[[Command], Command]:
    """Return hidden options that refuse their use with a reason and exit code 6."""

    def refused(names: tuple[str, ...], reason: str) -> Decorator:
        def check(context: click.Context, parameter: click.Parameter, value: Any) -> None:
            if value:
                sentence = f"pulsar-perf has {parameter.opts[-1]}, Interpulse does not offer it: {reason}"
                raise CommandFailed(sentence, NOT_OFFERED)

        return click.option(*names, hidden=True, expose_value=False, is_flag=names[0] in _FLAGS, callback=check)

    return option_group(*(refused(names, reason) for names, reason in options.items()))


_common = option_group(
    option(
        "-t --num-topics --num-topic topic_count",
        "Number of topics: of one name TOPIC-0, TOPIC-1, ... are made.",
        POSITIVE,
        1,
        shown=False,
    ),
    option("-time --test-duration duration_s", "Seconds; 0 = until Ctrl-C.", float, 0),
    option(
        "--histogram-file",
        "Write a log of HDR histograms there; with a name that ends in .hgrm, the distribution of the whole run.",
    ),
    option("--report-interval report_interval_s", "Seconds between two lines.", click.FloatRange(min=0.1), 10),
    option(
        "--output",
        "json: the summary as one line of JSON; the other lines go to standard error.",
        click.Choice(["text", "json"]),
        "text",
    ),
    option("-u --service-url --url brokerServiceUrl", "Service URL, pulsar://localhost:6650 unless configured."),
    option("-cf --conf-file", "Read this client.conf instead of the one that PULSAR_CLIENT_CONF names."),
    option("--trust-cert-file", "As --tls-trust-cert-path."),
    option("--listener-name", "Name of the advertised listener of the brokers."),
    connection_options,
)


def common_options(refused: Mapping[tuple[str, ...], str]) -> Callable[[Command], Command]:
    """Return the options for topics, time, output and connection. ``refused`` are options that are not offered."""
    return option_group(click.argument("topics", type=TOPIC, nargs=-1, required=True), _common, _not_offered(refused))


_COMPRESSIONS: Final = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")
ACCESS_MODES: Final = {
    "Shared": "shared",
    "Exclusive": "exclusive",
    "ExclusiveWithFencing": "exclusive-with-fencing",
    "WaitForExclusive": "wait-for-exclusive",
}
"""Access modes of the client by their names in pulsar-perf."""


def _range(text: str) -> tuple[int, int]:
    first, _, end = text.partition(",")
    if not (first.strip().isdecimal() and end.strip().isdecimal() and int(first) < int(end)):
        raise ValueError(f"{text!r} is not a range of seconds such as 1,300")
    return int(first), int(end)


_queue_size = option(
    "-q --receiver-queue-size", "Messages that the broker may send ahead, per partition.", POSITIVE, 1000
)
_pace = option("-r --rate", "Be slow: messages per second; 0 = as they come.", AMOUNT, 0)
_warm_up = option("--warmup-time", "Seconds at the start whose latencies do not count.", AMOUNT, 1.0)


def _count(short: str) -> Decorator:
    return option(f"{short} --num-messages count_max", "Messages in total; 0 = no limit.", int, 0)


def _schedule(what: str) -> Decorator:
    return option("-r --rate", f"{what}; 0 = the next one as soon as there is room.", AMOUNT, 100)


def _outstanding(meaning: str) -> Decorator:
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
    option("-dr --delay-range", "The same by chance, from the first up to the second.", Parsed("1,300", _range)),
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


def connection_of(flags: dict[str, Any]) -> ConnectionSettings:
    """Return the connection settings. Raise click.UsageError for invalid ones."""
    conf, trusted = flags["conf_file"], flags["trust_cert_file"]
    environment = os.environ if conf is None else {**os.environ, VARIABLE: conf}
    of_flags = flags if trusted is None else {**flags, "tlsTrustCertsFilePath": trusted}
    return ConnectionSettings.resolve(of_flags, environment)


def topics_of(flags: dict[str, Any]) -> list[str]:
    """Return the topic names that pulsar-perf derives from one name. Raise click.UsageError for an invalid name."""
    topics: Sequence[TopicName] = flags["topics"]
    count = flags["topic_count"]
    if len(topics) == count:
        return [str(topic) for topic in topics]
    if len(topics) == 1:
        return [f"{topics[0]}-{index}" for index in range(count)]
    raise click.UsageError(
        f"{len(topics)} topics are named and --num-topics is {count}: give one name, or one for each"
    )


def subscriptions_of(flags: dict[str, Any]) -> list[str]:
    """Return the subscription names that pulsar-perf derives from one name."""
    names: list[str] = flags["subscriptions"]
    count = flags["subscription_count"]
    if len(names) == count:
        return names
    if len(names) != 1:
        raise click.UsageError("The size of subscriptions list should be equal to --num-subscriptions")
    return [f"{flags['subscriber_name'] or names[0]}-{index}" for index in range(count)]
