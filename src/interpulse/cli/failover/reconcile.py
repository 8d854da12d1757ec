"""Commands ``reconcile`` and ``back``: a site that was lost answers again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.failover.operations import ProgressLines, print_result
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
from interpulse.cli.failover.options import confirm as ask
from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from interpulse.failover.pair_config import PairConfig
    from interpulse.failover.reconcile.reconcile import Confirm
    from interpulse.failover.running import Result

_conflicts_option = flag(
    "--accept-conflicts",
    "Append messages although the other site has taken newer ones with their keys.",
)


@click.command()
@config_option
@_conflicts_option
@flag("--resume is_resumed", "Go on with a reconcile that another machine began.")
@yes_option
@output_option
@progress_option
def reconcile(
    config_path: str,
    accept_conflicts: bool,
    is_resumed: bool,
    is_confirmed: bool,
    output: str,
    progress_form: str,
) -> None:
    """Merge the messages that a takeover left behind, when the lost site answers again. Nothing is cut, at no site.

    The site that is back stands by. Its messages without a copy are listed, and then appended at the site that serves,
    behind what it has taken since; what its consumers had acknowledged is not delivered there again. At the end both
    sites are compared, and the incident is closed. After a kill the same command goes on.

    Exit codes: 0 merged; 1 merged with warnings, keys in conflict or lost positions; 3 there is no open incident, or
    it was not confirmed; 5 the messages did not arrive in time, and the way is closed again.
    """
    config = read_config(config_path)
    confirm = _confirmation(config, output, is_confirmed=is_confirmed, accept_conflicts=accept_conflicts)

    async def run() -> int:
        from interpulse.failover.pair import opened_pair
        from interpulse.failover.reconcile.command import reconcile as run_reconcile

        lines = ProgressLines(config.name, progress_form, on_error=output == "json")
        async with opened_pair(config) as pair:
            result = await run_reconcile(pair, lines, confirm, is_resumed=is_resumed)
        _print_merged(result, output)
        return result.outcome

    finish(run, output)


@click.command()
@config_option
@_conflicts_option
@option("--accept accepted", "Go on in spite of errors of this kind; can be repeated.", metavar="KIND", multiple=True)
@flag("--wait waits", "Wait until everything has drained, longer than drain_s.")
@flag("--resume is_resumed", "Go on with an operation that another machine began.")
@yes_option
@output_option
@progress_option
def back(
    config_path: str,
    accept_conflicts: bool,
    accepted: tuple[str, ...],
    waits: bool,
    is_resumed: bool,
    is_confirmed: bool,
    output: str,
    progress_form: str,
) -> None:
    """Switch back to the site that served before, after a reconcile if a takeover has left messages behind.

    The same as `reconcile`, if an incident is open, and then `switch`. After a kill the same command goes on.
    """
    config = read_config(config_path)
    check_names(config, None, accepted)
    sentence = "The site that does not serve will serve in place of the other one, after a reconcile if it is due."
    ask(config, sentence, is_confirmed=is_confirmed)
    confirm = _confirmation(config, output, is_confirmed=is_confirmed, accept_conflicts=accept_conflicts)

    async def run() -> int:
        from interpulse.failover.pair import opened_pair
        from interpulse.failover.reconcile.command import go_back

        lines = ProgressLines(config.name, progress_form, on_error=output == "json")
        async with opened_pair(config) as pair:
            options = {"is_resumed": is_resumed, "waits": waits}
            merged, switched = await go_back(pair, lines, confirm, accepted=accepted, **options)
        if merged is not None:
            _print_merged(merged, output)
        print_result(switched, output)
        return max(switched.outcome, switched.outcome if merged is None else merged.outcome)

    finish(run, output)


def _confirmation(config: PairConfig, output: str, *, is_confirmed: bool, accept_conflicts: bool) -> Confirm:
    """Return the question before the merge. Raise UsageError without a terminal to ask on."""
    from interpulse.failover.outcome import OperationFailed, Outcome

    if not is_confirmed and not sys.stdin.isatty():
        raise click.UsageError("Standard input is no terminal to confirm this on: give --yes")

    async def confirm(summary: Mapping[str, Any]) -> bool:
        click.echo("\n".join(_lines(summary)), err=output == "json")
        if summary["conflicts"] and is_confirmed and not accept_conflicts:
            raise OperationFailed(
                f"{summary['conflicts']} keys were taken at both sites: see conflicts.jsonl of the incident, and give "
                "--accept-conflicts to append the late messages behind the newer ones. Nothing was merged",
                Outcome.REFUSED,
            )
        return is_confirmed or await asyncio.to_thread(_is_named, config.name)

    return confirm


def _is_named(pair: str) -> bool:
    """Let the user type the name of the pair. Runs in a thread, so that the lease is held meanwhile."""
    typed = click.prompt("The messages will be appended.\nType the name of the pair to go on", err=True)
    return str(typed).strip() == pair


def _lines(summary: Mapping[str, Any]) -> Iterator[str]:
    from interpulse.cli.failover.tail import lost_lines

    yield (
        f"{summary['messages']} messages are at {summary['lostSite']} only, {summary['conflicts']} of their keys were "
        f"taken at {summary['to']} since"
    )
    yield from lost_lines(summary["lost"])


def _print_merged(result: Result, output: str) -> None:
    merged = result.incident or {}
    if output == "json":
        print_object({"outcome": result.outcome.name, "incident": merged, "warnings": list(result.warnings)})
        return
    click.echo(f"{merged.get('messages')} messages of {merged.get('lost')} are at both sites. The incident is closed.")
    for warning in result.warnings:
        click.echo(f"Warning: {warning}", err=True)
