"""Options shared by the commands of perf, with pulsar-perf's names, and the refusals of those not offered."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from interpulse.cli.admin.admin import connection_options
from interpulse.cli.perf.latencies import HistogramFile
from interpulse.cli.perf.measured_run import RunOptions
from interpulse.cli.support.connection.client_conf import VARIABLE
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.cli.support.params import POSITIVE, TOPIC
from interpulse.cli.support.running import NOT_OFFERED, CommandFailed
from interpulse.model.names import TopicName
from interpulse.terminal.option_groups import option, option_group

Command = TypeVar("Command", bound=Callable[..., Any])

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


def not_offered(options: Mapping[tuple[str, ...], str]) -> Callable[[Command], Command]:
    """Return hidden options that refuse their use with a reason and exit code 6."""

    def refuse(reason: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def check(context: click.Context, option: click.Parameter, value: Any) -> None:
            if value:
                raise CommandFailed(
                    f"pulsar-perf has {option.opts[-1]}, Interpulse does not offer it: {reason}", NOT_OFFERED
                )

        return check

    return option_group(
        *(
            click.option(*names, hidden=True, expose_value=False, is_flag=names[0] in _FLAGS, callback=refuse(reason))
            for names, reason in options.items()
        )
    )


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
    return option_group(click.argument("topics", type=TOPIC, nargs=-1, required=True), _common, not_offered(refused))


def topics_of(topics: Sequence[TopicName], count: int) -> list[str]:
    """Return the topic names that pulsar-perf derives from one name. Raise click.UsageError for an invalid name."""
    if len(topics) == count:
        return [str(topic) for topic in topics]
    if len(topics) == 1:
        return [f"{topics[0]}-{index}" for index in range(count)]
    raise click.UsageError(
        f"{len(topics)} topics are named and --num-topics is {count}: give one name, or one for each"
    )


def run_options(flags: dict[str, Any]) -> RunOptions:
    """Remove the shared options from ``flags`` and open the histogram file.

    Raise click.UsageError if it cannot be written.
    """
    path = flags.pop("histogram_file")
    return RunOptions(
        report_interval_s=flags.pop("report_interval_s"),
        histogram_file=None if path is None else HistogramFile(path),
        as_json=flags.pop("output") == "json",
    )


def settings_of(flags: dict[str, Any]) -> ConnectionSettings:
    """Return the connection settings. Raise click.UsageError for invalid ones."""
    conf, trusted = flags.pop("conf_file"), flags.pop("trust_cert_file")
    environment = os.environ if conf is None else {**os.environ, VARIABLE: conf}
    if trusted is not None:
        flags["tlsTrustCertsFilePath"] = trusted
    return ConnectionSettings.resolve(flags, environment)
