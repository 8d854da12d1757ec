"""Questions about a pipeline, shared by ``interpulse replicate`` and ``python -m interpulse.spark``.

Exit codes are those of `Finding`. Imports are late, so that help starts fast.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

import click

from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.spark.program import end_process
from interpulse.terminal.logs import LogFormat, configure_logging, log_options

if TYPE_CHECKING:
    from interpulse.spark.job.inspection import Finding
    from interpulse.spark.job.pipeline_config import PipelineConfig

P = ParamSpec("P")


def _config_path(context: click.Context, _: click.Parameter, path_option: str | None) -> str:
    """Return the path given here or before the verb."""
    path = path_option or (context.parent.params.get("config_path") if context.parent else None)
    if path is None:
        raise click.UsageError("Missing option '--config'.")
    return str(path)


def _config_option(*, is_verb: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option ``--config``. For a verb it may also precede the verb."""
    return click.option(
        "--config",
        "config_path",
        metavar="FILE",
        callback=_config_path if is_verb else None,
        help="TOML file of the pipeline.",
    )


_output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the answer."
)


def _verb(ask: Callable[Concatenate[PipelineConfig, P], Coroutine[Any, Any, Finding]]) -> Callable[..., Any]:
    """Make a click callback of a question. A question without an answer is one sentence and code 2."""

    @_config_option(is_verb=True)
    @wraps(ask)
    def run(config_path: str, *args: P.args, **kwargs: P.kwargs) -> None:
        from interpulse.model.errors import PulsarError
        from interpulse.spark.job.inspection import Finding
        from interpulse.spark.job.pipeline_config import load_pipeline_config

        try:
            finding = asyncio.run(ask(load_pipeline_config(config_path), *args, **kwargs))
        except (PulsarError, ValueError) as problem:
            click.echo(f"Error: {problem or type(problem).__name__}", err=True)
            finding = Finding.UNKNOWN
        click.get_current_context().exit(finding)

    return run


@click.command("lag")
@_output_option
@_verb
async def lag(config: PipelineConfig, output: str) -> Finding:
    """Show how far each topic is behind, in entries, messages and seconds.

    Reads the checkpoint and both clusters; the job need not run. Exit codes: 0 nothing is behind, 1 something is, 2 a
    cluster does not answer. Messages are estimated from the first waiting entries; seconds are the age of the oldest
    message.
    """
    from interpulse.spark.job.answers import lag_as_lines, measure_lag

    finding, records = await measure_lag(config)
    click.echo(json.dumps(records, indent=2) if output == "json" else "\n".join(lag_as_lines(records)))
    return finding


@click.command("why")
@click.argument("topic")
@_verb
async def why(config: PipelineConfig, topic: str) -> Finding:
    """Explain why TOPIC is or is not copied: the reason, since when, the next retry, and the state of both clusters.

    Exit codes: 0 all of it is copied, 1 it is behind, held or not selected, 2 a cluster does not answer.
    """
    from interpulse.spark.job.answers import explain

    finding, lines = await explain(config, TopicName.parse(topic))
    click.echo("\n".join(lines))
    return finding


@click.command("cursors")
@click.option("--name", metavar="CURSOR", help="A cursor of another name, left by a pipeline whose file is gone.")
@click.option("--finished", is_flag=True, help="The pipeline is over: no topic needs its cursor any more.")
@click.option("--remove", is_flag=True, help="Delete the cursors that are left.")
@click.option("--open", "opens", is_flag=True, help="Open those that are missing, before the job runs.")
@_output_option
@_verb
async def cursors(
    config: PipelineConfig, name: str | None, finished: bool, remove: bool, opens: bool, output: str
) -> Finding:
    """List the cursors that the pipeline keeps on the source, open them, and delete leftover ones.

    A cursor is `connected` while a job reads its topic, `kept` while the topic is selected, and else `left`: it then
    keeps the log of the topic needlessly. Exit codes: 0 no cursors are left, or they were deleted, 1 some are left.
    With --open, the source keeps present and future messages until the job has copied them.
    """
    if opens and (name or finished or remove):
        raise click.UsageError("--open stands alone: it opens the cursors of the topics that are selected")
    from interpulse.spark.job.cursors import LEFT, find_cursors, open_cursors, remove_cursors
    from interpulse.spark.job.inspection import Finding

    if opens:
        await open_cursors(config)
    listed = await find_cursors(config, name=name, is_finished=finished)
    left = [cursor for cursor in listed if cursor.state == LEFT]
    if remove:
        await remove_cursors(config, left)
        listed = [cursor._replace(state="removed") if cursor in left else cursor for cursor in listed]
    if output == "json":
        click.echo(json.dumps([cursor._asdict() for cursor in listed], indent=2))
    else:
        for cursor in listed:
            waiting = f"{cursor.entries:,} entries wait"
            click.echo(f"{cursor.topic}: {cursor.name} at {cursor.position}, {waiting}, {cursor.state}")
        click.echo(f"{len(listed)} cursors, {len(left)} {'removed' if remove else 'left'}")
    return Finding.DIFFERS if left and not remove else Finding.SAME


VERBS: Final = (lag, why, cursors)
"""The commands of ``replicate``, which look at a pipeline."""


def _positions(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, Position]:
    positions: dict[str, Position] = {}
    for text in texts:
        name, _, position = text.rpartition("=")
        try:
            positions[str(TopicName.parse(name))] = Position.parse(position)
        except ValueError as problem:
            raise click.BadParameter(f"{text!r} is not TOPIC=LEDGER:ENTRY: {problem}") from problem
    return positions


@click.group("replicate", invoke_without_command=True, commands=VERBS)
@_config_option(is_verb=False)
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--from-target", is_flag=True, help="Begin behind what the target holds, instead of at the cursors.")
@click.option(
    "--skip-until",
    metavar="TOPIC=LEDGER:ENTRY",
    multiple=True,
    callback=_positions,
    help="Begin a topic-partition behind this entry of the source, which the target holds; may be repeated.",
)
@click.option("--supervised", is_flag=True, hidden=True, help="End when standard input does.")
@log_options
@click.pass_context
def command(
    context: click.Context,
    config_path: str | None,
    dry_run: bool,
    from_target: bool,
    skip_until: Mapping[str, Position],
    supervised: bool,
    log_level: str,
    log_format: LogFormat,
) -> None:
    """Copy topics to other clusters, continuously and exactly once, as a Spark job.

    On a terminal it shows a screen: what it waits for, how fast it copies, what is held and why, what is most behind.
    Elsewhere it prints JSON lines: one at the start, one per micro-batch, one for each thing that happens. Ends on
    Ctrl-C or SIGTERM; the next start continues there. The commands below look at the same pipeline, whether its job
    runs or not.

    With --dry-run it prints topics, their names there, what would be created, what would be held and what waits. It
    ends with 0 when all of it is there and copied, with 1 when something would be created or is held, with 2 when a
    cluster gives no answer.

    With --from-target a pipeline without a checkpoint takes over where another one ended, such as Pulsar's own
    replicator: its cursors move behind the last entry of the source that each topic-partition of the target holds.
    """
    if context.invoked_subcommand is not None:
        return
    if config_path is None:
        raise click.UsageError("Missing option '--config'.")
    from interpulse.spark.job.cursors import Takeover
    from interpulse.spark.job.launch import replicate
    from interpulse.spark.processes.workers import passed_to_workers

    configure_logging(log_level, log_format)
    takeover = Takeover(from_target, skip_until) if from_target or skip_until else None
    with passed_to_workers(configure_logging.__module__, configure_logging.__name__, log_level, log_format):
        code = replicate(config_path, dry_run=dry_run, supervised=supervised, takeover=takeover)
    end_process(code)
