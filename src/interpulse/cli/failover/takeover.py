"""Command ``takeover``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from interpulse.cli.failover.operations import ProgressLines
from interpulse.cli.failover.options import (
    check_names,
    config_option,
    finish,
    output_option,
    print_object,
    progress_option,
    read_config,
    yes_option,
)
from interpulse.cli.failover.status import stake_lines
from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from interpulse.failover.running import Result
    from interpulse.failover.takeover.takeover import Known

_SHOWN_MAX = 20


@click.command()
@config_option
@option("--to site", "Site that serves afterwards.", metavar="SITE", required=True)
@option("--lost lost", "The other site, which does not answer any more.", metavar="SITE", required=True)
@flag("--even-if-alive", "Take over although the other site answers, and fence it if it can be.")
@flag("--resume is_resumed", "Go on with a takeover that another machine began.")
@yes_option
@output_option
@progress_option
def takeover(
    config_path: str,
    site: str,
    lost: str,
    even_if_alive: bool,
    is_resumed: bool,
    is_confirmed: bool,
    output: str,
    progress_form: str,
) -> None:
    """Let a site serve in place of the other one, which is lost. What that one has not copied is missing for now.

    Refused if the other site answers: use switch then, which loses nothing. Shows what is at stake and asks for the
    name of the pair. Copies of the lost site are refused from then on: reconcile merges them when it is back. After a
    kill the same command goes on.
    """
    config = read_config(config_path)
    check_names(config, site, ())
    if lost != config.other(site):
        raise click.BadParameter(f"{lost} is not the other site, which is {config.other(site)}", param_hint="--lost")
    if not is_confirmed and not sys.stdin.isatty():
        raise click.UsageError("Standard input is no terminal to confirm a takeover on: give --yes")

    async def confirm(known: Known) -> bool:
        click.echo("\n".join(_lines(known)), err=output == "json")
        return is_confirmed or await asyncio.to_thread(_is_named, config.name, site)

    async def run() -> int:
        from interpulse.failover.takeover.command import take_over

        lines = ProgressLines(config.name, progress_form, on_error=output == "json")
        result = await take_over(config, site, lines, confirm, is_resumed=is_resumed, even_if_alive=even_if_alive)
        _print_result(result, output)
        return result.outcome

    finish(run, output)


def _is_named(pair: str, site: str) -> bool:
    """Let the user type the name of the pair. Runs in a thread, so that the lease is held meanwhile."""
    typed = click.prompt(f"{site} will serve.\nType the name of the pair to go on", err=True)
    return str(typed).strip() == pair


def _lines(known: Known) -> Iterator[str]:
    if known.report is not None:
        yield from stake_lines(known.report)
        return
    yield f"At stake: not known, {known.problem}"
    for topic, position in list(known.copied.items())[:_SHOWN_MAX]:
        yield f"{topic}: {f'copied up to {position}' if position.entry >= 0 else 'no copy'}"
    if len(known.copied) > _SHOWN_MAX:
        yield f"and {len(known.copied) - _SHOWN_MAX} more topic-partitions"


def _print_result(result: Result, output: str) -> None:
    operation = result.operation
    if output == "json":
        shown = None if operation is None else {"id": operation.id, "to": operation.to, "epoch": operation.epoch}
        members = {"operation": shown, "times": dict(result.times), "warnings": list(result.warnings)}
        print_object({"outcome": result.outcome.name, **members})
        return
    titles = {"reported": "Last report", "detected": "Detected", "confirmed": "Confirmed", "promoted": "Promoted"}
    for name, title in titles.items():
        click.echo(f"{title + ':':<12} {result.times.get(name) or 'not known'}")
    for warning in result.warnings:
        click.echo(f"Warning: {warning}", err=True)
