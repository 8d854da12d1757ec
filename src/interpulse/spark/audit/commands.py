"""``interpulse audit``: the comparison of two clusters on Spark, and the plan that makes the target equal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interpulse.spark.program import end_process, spark_failures
from interpulse.terminal.formats import to_table
from interpulse.terminal.logs import configure_logging
from interpulse.terminal.option_groups import option_group
from interpulse.terminal.output import format_option, print_value
from interpulse.terminal.progress import Progress

if TYPE_CHECKING:
    from interpulse.spark.audit.launch import Audit, AuditOptions

_ROWS_MAX = 50


@click.group("audit")
def audit() -> None:
    """Compare the topics and policies of two clusters on Spark, and make the target equal by a plan.

    A run is a directory below --dir; finished steps are not repeated. Exit code 0: equal, or done; 1: differences, or
    unfinished; 2: incomplete comparison.
    """


_config = click.option(
    "--config", "config_path", required=True, metavar="FILE", help="A file of `replicate`: [source], [target], [map]."
)

_dir = click.option(
    "--dir",
    "directory",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of runs, as Parquet; Spark's workers need it too.",
)


_run_options = option_group(
    _config,
    _dir,
    click.option("--run", metavar="NAME", help="The run to begin, or to go on with; without it the time."),
)


_reading_options = option_group(
    click.option("--namespaces", metavar="NAMES", help="Comma list; all of both clusters by default."),
    click.option(
        "--exact",
        type=click.Choice(("changed", "all", "none")),
        default="changed",
        show_default=True,
        help="Topics whose partition counts are read if a broker lists only names: those that lack "
        "partitions and one in a hundred of the others, all, or none.",
    ),
    click.option("--schemas", is_flag=True, help="Compare schemas too: one request more for each topic."),
    click.option("--subscriptions", is_flag=True, help="Compare subscriptions too: one request more for each topic."),
    click.option(
        "--rate",
        type=click.FloatRange(min=0.1),
        default=500.0,
        show_default=True,
        help="Requests per second and cluster.",
    ),
)


@audit.command("inventory")
@_run_options
@_reading_options
def inventory(config_path: str, directory: Path, run: str | None, **reading: Any) -> None:
    """Read the namespaces and topics of both clusters into Parquet."""
    with _failures():
        name = run or _now()
        with _opened(config_path, directory, name) as audit_run:
            audit_run.take_inventories(_options(reading, confirm=True))
        click.echo(str(directory / name))
    end_process(0)


@audit.command("compare")
@_run_options
@_reading_options
@click.option("--no-confirm", is_flag=True, help="Report differences without reading them again from both clusters.")
@click.option("--against", metavar="RUN", help="Show which differences an earlier run below --dir did not have.")
@format_option()
def compare(
    config_path: str, directory: Path, run: str | None, no_confirm: bool, against: str | None, **reading: Any
) -> None:
    """Compare both clusters, with the source as the standard. Missing inventories are taken first."""
    with _failures():
        name = run or _now()
        with _opened(config_path, directory, name) as audit_run:
            summary = audit_run.compare(_options(reading, confirm=not no_confirm), against)
        shown = summary.to_json()
        print_value(shown, _text(shown), tabular=True)
        click.echo(f"all differences: interpulse audit show --dir {directory} --run {name}", err=True)
        code = 2 if summary.unread else 0 if summary.is_same else 1
    end_process(code)


@audit.command("show")
@_dir
@click.option("--run", required=True, metavar="NAME", help="A run that audit compare has made.")
@click.option("--namespaces", metavar="NAMES", help="Comma list; without it all.")
@click.option("--kinds", metavar="KINDS", help="Comma list, such as TOPIC_MISSING,RETENTION; without it all.")
@click.option(
    "--to",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write them to this file instead, a table with all columns: .csv or .jsonl, which has a JSON object a line.",
)
@format_option()
def show(directory: Path, run: str, namespaces: str | None, kinds: str | None, file: Path | None) -> None:
    """Show the differences of a run one by one; Spark is not started for it."""
    with _failures():
        from interpulse.spark.audit.plans import FORMATS, read_findings, with_values, write_findings

        if file is not None and file.suffix not in FORMATS:
            raise click.BadParameter(f"{file} ends with none of {', '.join(FORMATS)}", param_hint="--to")
        chosen = {"namespaces": _names(namespaces), "kinds": _kinds(kinds)}
        findings = read_findings(directory / run, **chosen)
        if file is None:
            rows = sorted(
                map(with_values, findings), key=lambda row: (row["namespace"], row["topic"] or "", row["kind"])
            )
            print_value(rows, to_table([_shown(row) for row in rows]) if rows else "no differences", tabular=True)
        else:
            write_findings(file, findings)


def _kinds(text: str | None) -> tuple[str, ...]:
    from interpulse.model.adjustments import AUDITED_KINDS
    from interpulse.spark.options.option_values import parse_names

    names = parse_names(text or "")
    if unknown := [name for name in names if name not in AUDITED_KINDS]:
        raise click.BadParameter(f"{unknown[0]} is none of {', '.join(AUDITED_KINDS)}", param_hint="--kinds")
    return names


def _subject(row: dict[str, Any]) -> str:
    return str(row["topic"] or row["namespace"])


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    subject = _subject(row)
    sides = {side: _side(row[f"{side}_value"], row[f"{side}_origin"]) for side in ("source", "target")}
    return {"severity": row["severity"], "kind": row["kind"], "subject": subject, **sides, "remedy": row["remedy"]}


def _side(value: Any, origin: str | None) -> str:
    """Format a value. One that a broker has for all namespaces is marked."""
    text = "-" if value is None else json.dumps(value, ensure_ascii=False)
    return f"{text} (broker)" if origin == "broker" else text


@audit.command("plan")
@_run_options
@click.option("--plan", "plan_path", type=click.Path(path_type=Path), help="The file; without it plan.json of the run.")
@format_option()
def plan(config_path: str, directory: Path, run: str | None, plan_path: Path | None) -> None:
    """Make a plan of the differences of a run: requests to the target, in their order. Nothing is changed."""
    with _failures():
        from interpulse.spark.audit.plans import plan_of_run, write_plan
        from interpulse.spark.job.pipeline_config import load_pipeline_config

        if run is None:
            raise click.UsageError("--run: name the run that audit compare has made")
        made = plan_of_run(directory / run, load_pipeline_config(config_path))
        path = plan_path or directory / run / "plan.json"
        write_plan(path, made)
        print_value(made, _plan_text(made, path), tabular=True)
    end_process(0)


@audit.command("apply")
@_config
@click.option("--plan", "plan_path", required=True, type=click.Path(path_type=Path), help="The file of audit plan.")
@click.option(
    "--rate", type=click.FloatRange(min=0.1), default=50.0, show_default=True, help="Requests per second and cluster."
)
@format_option()
def apply(config_path: str, plan_path: Path, rate: float) -> None:
    """Apply a plan. Each item is read again first, and skipped if it has changed since the plan.

    An interrupted application continues without repeating finished items.
    """
    with _failures():
        import asyncio

        results = asyncio.run(_apply(config_path, plan_path, rate))
        counts = {status: sum(row["status"] == status for row in results) for status in ("DONE", "SKIPPED", "FAILED")}
        rest = [row for row in results if row["status"] != "DONE"]
        counted = ", ".join(f"{count} {status.lower()}" for status, count in counts.items())
        print_value(results, "\n\n".join([counted, *([to_table(rest)] if rest else [])]), tabular=True)
    end_process(1 if rest else 0)


async def _apply(config_path: str, plan_path: Path, rate: float) -> list[dict[str, Any]]:
    from interpulse.spark.audit.plans import apply_plan, load_plan
    from interpulse.spark.job.pipeline_config import load_pipeline_config

    config = load_pipeline_config(config_path)
    made = load_plan(plan_path, config)
    results: list[dict[str, Any]] = []
    with Progress("{bar} {done} of {total} items", logged=True) as progress:
        async for item, status, reason in apply_plan(made, config, plan_path.with_suffix(".results.jsonl"), rate=rate):
            result = {"kind": item["kind"], "subject": _subject(item), "status": status}
            results.append(result | ({"reason": reason} if reason else {}))
            progress(len(results), len(made["items"]))
    return results


# ---- Shared parts


def _failures() -> AbstractContextManager[None]:
    configure_logging("WARNING")
    return spark_failures("audit")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


@contextmanager
def _opened(config_path: str, directory: Path, run: str) -> Iterator[Audit]:
    from interpulse.spark.audit.launch import Audit, audit_session
    from interpulse.spark.job.pipeline_config import load_pipeline_config

    config = load_pipeline_config(config_path)
    root = directory.absolute()
    click.echo("starting Spark, which takes some seconds", err=True)
    with audit_session(root / run, config.spark) as spark:
        yield Audit(spark, root, run, config, _Stages())


def _options(reading: dict[str, Any], *, confirm: bool) -> AuditOptions:
    from interpulse.replication.cluster_reading import ReadingRules
    from interpulse.spark.audit.launch import AuditOptions

    return AuditOptions(namespaces=_names(reading.pop("namespaces")), confirm=confirm, rules=ReadingRules(**reading))


def _names(text: str | None) -> tuple[str, ...]:
    from interpulse.model.names import NamespaceName
    from interpulse.spark.options.option_values import parse_names

    return tuple(str(NamespaceName.parse(name)) for name in parse_names(text or ""))


def _text(summary: dict[str, Any]) -> str:
    pair = f"{summary['source']} -> {summary['target']}"
    words = {
        "same": "nothing differs",
        "different": f"{sum(row['count'] for row in summary['counts'])} differences",
        "incomplete": "not everything could be read; what could be is compared",
    }
    lines = [f"{pair}, run {summary['run']}: {words[summary['result']]}"]
    lines.append(to_table([{"cluster": name, **counts} for name, counts in summary["covered"].items()]))
    rows = summary["counts"]
    if rows:
        lines += ["", to_table(rows[:_ROWS_MAX])]
    if len(rows) > _ROWS_MAX:
        lines.append(f"and {len(rows) - _ROWS_MAX} rows more, which -o json prints")
    if "new" in summary:
        new = summary["new"]
        lines += ["", f"{len(new)} of them are new" + (":" if new else "")]
        lines += [to_table(new[:_ROWS_MAX])] if new else []
    return "\n".join(lines)


def _plan_text(made: dict[str, Any], path: Path) -> str:
    lines = [f"{path}: {len(made['items'])} items for {made['target']}"]
    if rows := [{"kind": item["kind"], "subject": _subject(item), **_request(item)} for item in made["items"]]:
        lines.append(to_table(rows[:_ROWS_MAX]))
    if left := [row for row in made["excluded"] if row["severity"] != "INFO"]:
        lines += ["", f"{len(left)} differences are left to an operator:"]
        lines += [f"{row['kind']} {_subject(row)}: {row['remedy']}" for row in left[:_ROWS_MAX]]
    return "\n".join(lines)


def _request(item: dict[str, Any]) -> dict[str, str]:
    request = json.loads(item["request"])
    return {"request": f"{request['method']} {request['path']}", "body": json.dumps(request["body"])}


class _Stages:
    """The progress of each stage, on a line of its own."""

    def __init__(self) -> None:
        self._by_stage: dict[str, Progress] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._by_stage:
            for earlier in self._by_stage.values():
                earlier.wipe()
            self._by_stage = {stage: Progress(f"{{bar}} {stage}: {{done}} of {{total}}", logged=True)}
            click.echo(stage, err=True)
        self._by_stage[stage](done, total)
