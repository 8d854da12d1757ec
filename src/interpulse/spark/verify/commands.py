"""Command ``interpulse verify``: compares topics of two clusters, entry by entry or message by message."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interpulse.spark.program import end_process, spark_failures
from interpulse.terminal.formats import to_table
from interpulse.terminal.logs import LogFormat, configure_logging, log_options
from interpulse.terminal.output import format_option, print_value
from interpulse.terminal.progress import Progress

if TYPE_CHECKING:
    from interpulse.spark.job.pipeline_config import SparkSettings
    from interpulse.spark.verify.comparisons import Comparison, Side


@click.command("verify")
@click.option("--config", "config_path", metavar="FILE", help="Compare what this file of `replicate` copies.")
@click.option("--source-url", metavar="URL", help="Without --config: `pulsar://` URL of the cluster of the originals.")
@click.option("--target-url", metavar="URL", help="And of the cluster of the copies.")
@click.option("--source-cluster", metavar="NAME", help="What the first one calls itself; for --match position.")
@click.option("--target-cluster", metavar="NAME", help="What the second one calls itself; for --match position.")
@click.option("--source-token", metavar="TOKEN", help="Token for the first one, best `file:///path`.")
@click.option("--target-token", metavar="TOKEN", help="Token for the second one.")
@click.option(
    "--source-option",
    metavar="KEY=VALUE",
    multiple=True,
    help="An option of the data source for the first one: a certificate, a password, OAuth 2, whom to trust; can be "
    "repeated.",
)
@click.option("--target-option", metavar="KEY=VALUE", multiple=True, help="An option for the second one.")
@click.option("--topics", metavar="NAMES", help="Comma list of topics; of --config only these.")
@click.option("--target-topics", metavar="NAMES", help="Names of these topics on the target, if different.")
@click.option(
    "--match",
    type=click.Choice(("position", "content")),
    default="position",
    show_default=True,
    help="The match of an original and its copy: the source position that replicators write into copies, or key "
    "and payload, which every tool preserves.",
)
@click.option("--last", metavar="DURATION", help="Only messages published in this time, such as 1h.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep all findings there as Parquet, and go on there with a run that was broken off. Spark's workers need it "
    "too.",
)
@log_options
@format_option()
def command(
    config_path: str | None, directory: Path | None, log_level: str, log_format: LogFormat, **options: Any
) -> None:
    """Compare topics of two clusters and report missing, extra, duplicate, reordered or changed messages.

    Exit codes: 0 equal, 1 differences, 2 could not be compared.
    """
    configure_logging("WARNING" if log_level == "INFO" else log_level, log_format)
    with spark_failures("verify"):
        from interpulse.spark.job.pipeline_config import SparkSettings, load_pipeline_config
        from interpulse.spark.options.option_values import parse_positive_duration_ms
        from interpulse.spark.verify.comparisons import comparisons_of

        last_ms = None if options["last"] is None else parse_positive_duration_ms(options["last"])
        topics = _names(options["topics"])
        if config_path is not None:
            if idle := [option for option in _OF_TWO_URLS if options[option] not in (None, ())]:
                raise click.UsageError(
                    f"--config names both clusters, so {_shown(*idle)} would do nothing: leave it out"
                )
            config = load_pipeline_config(config_path)
            comparisons = asyncio.run(comparisons_of(config, topics, match=options["match"], last_ms=last_ms))
            same = _run(comparisons, directory, config.spark)
        else:
            same = _run([_comparison(topics, last_ms, options)], directory, SparkSettings())
    end_process(0 if same else 1)


_OF_TWO_URLS = (
    *(f"{side}_{name}" for name in ("url", "cluster", "token", "option") for side in ("source", "target")),
    "target_topics",
)


def _shown(*options: str) -> str:
    return ", ".join(f"--{option.replace('_', '-')}" for option in options)


def _names(text: str | None) -> list[str]:
    from interpulse.model.names import TopicName
    from interpulse.spark.options.option_values import parse_names

    return [str(TopicName.parse(name).base) for name in parse_names(text or "")]


def _comparison(topics: Sequence[str], last_ms: int | None, options: dict[str, Any]) -> Comparison:
    from interpulse.clock import now_ms
    from interpulse.spark.verify.comparisons import POSITION, Comparison, TopicPair

    needed = ["source_url", "target_url", "topics"]
    if options["match"] == POSITION:
        needed += ["source_cluster", "target_cluster"]
    if absent := [name for name in needed if not options[name]]:
        raise click.UsageError(f"{_shown(*absent)} needed, or --config")
    there = _names(options["target_topics"]) or topics
    if len(there) != len(topics):
        raise click.UsageError(f"--topics has {len(topics)} names and --target-topics {len(there)}: name them in pairs")
    if last_ms is not None and options["match"] != POSITION:
        raise click.UsageError("--last needs --match position: other tools give copies publish times of their own")
    at_ms = now_ms()
    return Comparison(
        source=_side("source", options),
        target=_side("target", options),
        topics=tuple(TopicPair(*pair) for pair in zip(topics, there, strict=True)),
        match=options["match"],
        since_ms=None if last_ms is None else at_ms - last_ms,
        at_ms=at_ms,
    )


def _side(name: str, options: dict[str, Any]) -> Side:
    from interpulse.spark.options.connection_options import parse_cluster_options
    from interpulse.spark.options.option import OptionError
    from interpulse.spark.verify.comparisons import Side

    access = {"service.url": options[f"{name}_url"]}
    if options[f"{name}_token"] is not None:
        access["authToken"] = options[f"{name}_token"]
    for pair in options[f"{name}_option"]:
        key, separator, value = pair.partition("=")
        if not separator or key in access:
            reason = f"{key} is repeated" if separator else f"expected KEY=VALUE, found {key!r}"
            raise click.UsageError(f"--{name}-option: {reason}")
        access[key] = value
    try:
        parsed = parse_cluster_options(access)
    except OptionError as error:
        raise click.UsageError(f"--{name}-option: {error}") from error
    return Side(cluster=options[f"{name}_cluster"] or name, service_url=parsed.service_url, access=parsed.access)


def _run(comparisons: Sequence[Comparison], directory: Path | None, settings: SparkSettings) -> bool:
    from interpulse.spark.session import check_spark_installed

    click.echo("starting Spark, which takes some seconds", err=True)
    check_spark_installed()
    from interpulse.spark.verify.verification import compare

    with Progress("{bar} {done} of {total} partitions read", logged=True) as progress:
        reports = list(compare(comparisons, directory=directory, settings=settings, on_progress=progress))
    bodies = [report.to_json() for report in reports]
    print_value(bodies, "\n\n".join(map(_text, bodies)), tabular=True)
    if directory is not None:
        click.echo(f"all findings: {directory}/CLUSTER/findings, in Parquet", err=True)
    return all(report.is_same for report in reports)


_PROBLEMS = ("missing", "extra", "duplicated", "reordered", "different")


def _text(report: dict[str, Any]) -> str:
    """Format the result: a sentence, the topics that differ, examples."""
    topics = report["topics"]
    total = {key: sum(topic[key] for topic in topics.values()) for key in next(iter(topics.values()), {})}
    pair = f"{report['source']} -> {report['target']}"
    unit = "entries" if report["match"] == "position" else "messages"
    lines = [f"{pair}: {_verdict(report['result'], total, unit)}", *_notes(total)]
    rows = [
        {"topic": name, unit: topic["originals"], "copies": topic["copies"], **{key: topic[key] for key in _PROBLEMS}}
        for name, topic in topics.items()
        if any(topic[key] for key in _PROBLEMS)
    ]
    if rows:
        lines += ["", to_table(rows)]
    if report["examples"]:
        examples = [{key: text for key, text in row.items() if text is not None} for row in report["examples"]]
        lines += ["", "Some of what was found:", to_table(examples)]
    return "\n".join(lines)


def _verdict(result: str, total: dict[str, int], unit: str) -> str:
    if result == "same":
        return f"equal: all {total['originals']} {unit} exist once, in order and unchanged"
    found = ", ".join(f"{total[key]} {key}" for key in _PROBLEMS if total[key])
    return f"different: {found}, of {total['originals']} {unit}"


def _notes(total: dict[str, int]) -> list[str]:
    notes = {
        "skipped": "entries on the source are not to be copied: they came from elsewhere, are for others, or markers",
        "older": "copies were not judged: the source no longer has their originals, or they are before --last",
        "newer": "copies were not judged: their originals came during the comparison",
    }
    return [f"{total[key]} {text}" for key, text in notes.items() if total[key]]
