"""Commands that change a pair: ``init``, ``switch``, ``undo``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interpulse.cli.failover.options import (
    check_names,
    config_option,
    confirm,
    finish,
    output_option,
    print_object,
    progress_option,
    read_config,
    yes_option,
)
from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from interpulse.failover.journal import Operation
    from interpulse.failover.operation import Evidence, Step
    from interpulse.failover.running import Result


@click.command()
@config_option
@yes_option
def init(config_path: str, is_confirmed: bool) -> None:
    """Let the first site of the pair serve its namespaces, and the other one stand by, under epoch 1.

    Producers at the other site are closed and refused until it is switched to; copies go on. Repeat it freely: it
    refuses a pair that has other roles.
    """
    config = read_config(config_path)
    first, second = config.sites
    confirm(config, f"{first} will serve, and {second} will refuse producers.", is_confirmed=is_confirmed)

    async def run() -> int:
        from interpulse.failover.commands import initialise
        from interpulse.failover.pair import opened_pair

        async with opened_pair(config) as pair:
            await initialise(pair)
        click.echo(f"{config.name}: {first} serves, {second} stands by, epoch 1")
        return 0

    finish(run)


@click.command()
@config_option
@option("--to site", "Site that serves afterwards.", metavar="SITE", required=True)
@flag("--resume is_resumed", "Go on with a switch that another machine began.")
@option("--accept accepted", "Go on in spite of errors of this kind; can be repeated.", metavar="KIND", multiple=True)
@flag("--wait waits", "Wait until everything has drained, longer than drain_s.")
@yes_option
@output_option
@progress_option
def switch(
    config_path: str,
    site: str,
    is_resumed: bool,
    waits: bool,
    accepted: tuple[str, ...],
    is_confirmed: bool,
    output: str,
    progress_form: str,
) -> None:
    """Switch the namespaces of a pair to its other site. Nothing is lost; both sites must answer.

    Fences the site that serves, waits until every message and acknowledgement is at the other one, promotes that and
    sends clients there. What does not get ready in time is taken back. After a kill the same command goes on.
    """
    config = read_config(config_path)
    check_names(config, site, accepted)
    others = [name for name in config.sites if name != site]
    sentence = f"{site} will serve {', '.join(map(str, config.namespaces))} in place of {' or '.join(others)}."
    confirm(config, sentence, is_confirmed=is_confirmed)

    async def run() -> int:
        from interpulse.failover import commands
        from interpulse.failover.pair import opened_pair

        lines = ProgressLines(config.name, progress_form, on_error=output == "json")
        async with opened_pair(config) as pair:
            result = await commands.switch(pair, site, lines, is_resumed=is_resumed, waits=waits, accepted=accepted)
        print_result(result, output)
        return result.outcome

    finish(run, output)


@click.command()
@config_option
@yes_option
@output_option
@progress_option
def undo(config_path: str, is_confirmed: bool, output: str, progress_form: str) -> None:
    """Take back a switch or a takeover that was broken off before it promoted its target. Both sites must answer.

    The site that served before serves again, under the same epoch. Ends with exit code 5.
    """
    config = read_config(config_path)
    confirm(config, "The unfinished operation will be taken back.", is_confirmed=is_confirmed)

    async def run() -> int:
        from interpulse.failover import commands
        from interpulse.failover.pair import opened_pair

        lines = ProgressLines(config.name, progress_form, on_error=output == "json")
        async with opened_pair(config) as pair:
            result = await commands.undo(pair, lines)
        print_result(result, output)
        return result.outcome

    finish(run, output)


class ProgressLines:
    """Lines about the steps of an operation."""

    def __init__(self, pair: str, form: str, *, on_error: bool) -> None:
        """``on_error``: text goes to standard error."""
        self._pair = pair
        self._form = form
        self._on_error = on_error

    def begins(self, operation: Operation) -> None:
        """Print the operation."""
        if self._form == "text":
            title = f"{self._pair}: {operation.kind} to {operation.to}, epoch {operation.epoch}"
            click.echo(title, err=self._on_error)

    def holds(self, number: int, step: Step, seconds: float, evidence: Evidence) -> None:
        """Print a step that holds."""
        if self._form == "json":
            print_object({"step": step.name, "number": number, "seconds": round(seconds, 3), **evidence.to_json()})
        else:
            click.echo(f"{number:2} {step.shown:<22} {seconds:6.1f} s  {evidence.text}", err=self._on_error)


def print_result(result: Result, output: str) -> None:
    """Print the end of a switch."""
    operation = result.operation
    if output == "json":
        shown = None if operation is None else {"id": operation.id, "to": operation.to, "epoch": operation.epoch}
        warnings = list(result.warnings)
        print_object(
            {
                "outcome": result.outcome.name,
                "operation": shown,
                "outageSeconds": result.outage_s,
                "warnings": warnings,
            }
        )
        return
    if result.outage_s is not None:
        click.echo(f"Producers had no site for {result.outage_s:.1f} s.")
    if result.outcome.name == "TAKEN_BACK" and operation is not None:
        click.echo(f"The {operation.kind} to {operation.to} is taken back.")
    for warning in result.warnings:
        click.echo(f"Warning: {warning}", err=True)
