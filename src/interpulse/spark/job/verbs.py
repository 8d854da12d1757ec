"""Questions about a pipeline, shared by ``interpulse replicate`` and ``python -m interpulse.spark``.

Exit codes are those of `Finding`. Imports are late, so that help starts fast.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

import click

if TYPE_CHECKING:
    from interpulse.spark.job.inspection.finding import Finding
    from interpulse.spark.job.pipeline_config import PipelineConfig

__all__ = ["VERBS", "config_option"]

P = ParamSpec("P")


def _config_path(context: click.Context, _: click.Parameter, path_option: str | None) -> str:
    """Return the path given here or before the verb."""
    path = path_option or (context.parent.params.get("config_path") if context.parent else None)
    if path is None:
        raise click.UsageError("Missing option '--config'.")
    return str(path)


def config_option(*, is_verb: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--config``, which verbs also take from the command before them."""
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

    @config_option(is_verb=True)
    @wraps(ask)
    def run(config_path: str, *args: P.args, **kwargs: P.kwargs) -> None:
        from interpulse.model.errors import PulsarError
        from interpulse.spark.job.inspection.finding import Finding
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
    from interpulse.spark.job.inspection.lag import lag_as_lines, measure_lag

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
    from interpulse.model.names import TopicName
    from interpulse.spark.job.inspection.why import explain

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
    from interpulse.spark.job.inspection.cursors import LEFT, find_cursors, remove_cursors
    from interpulse.spark.job.inspection.finding import Finding
    from interpulse.spark.job.inspection.takeover import open_cursors

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
