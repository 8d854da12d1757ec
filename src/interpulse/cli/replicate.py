"""``interpulse replicate``: the geo-replication job by hand, and what one can ask of it."""

from __future__ import annotations

from collections.abc import Mapping

import click

from interpulse.cli.support.logs import LogFormat, configure_logging, log_options
from interpulse.cli.support.spark_program import end_process
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.spark.job.verbs import VERBS, config_option

__all__ = ["command"]


def _positions(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, Position]:
    found: dict[str, Position] = {}
    for text in given:
        name, _, position = text.rpartition("=")
        try:
            found[str(TopicName.parse(name))] = Position.parse(position)
        except ValueError as problem:
            raise click.BadParameter(f"{text!r} is not TOPIC=LEDGER:ENTRY: {problem}") from problem
    return found


@click.group("replicate", invoke_without_command=True, commands=VERBS)
@config_option(is_verb=False)
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
    from interpulse.spark.job.inspection.takeover import Takeover
    from interpulse.spark.job.launch import replicate
    from interpulse.spark.processes.workers import passed_to_workers

    configure_logging(log_level, log_format)
    takeover = Takeover(from_target, skip_until) if from_target or skip_until else None
    with passed_to_workers(configure_logging.__module__, configure_logging.__name__, log_level, log_format):
        code = replicate(config_path, dry_run=dry_run, supervised=supervised, takeover=takeover)
    end_process(code)
