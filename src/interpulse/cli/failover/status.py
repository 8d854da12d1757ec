"""Command ``status``: roles, copies under way, and the last operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import click

from interpulse.cli.failover.options import config_option, finish, output_option, print_object, read_config
from interpulse.terminal.formats import to_rows

if TYPE_CHECKING:
    from interpulse.failover.reporting.reports import AtStake, Stake
    from interpulse.failover.status import PairStatus, SiteStatus

_SHOWN_MAX: Final = 5


@click.command()
@config_option
@output_option
def status(config_path: str, output: str) -> None:
    """Show the roles of both sites, what is still to be copied, what is at stake, and the last operation.

    What is at stake if a site is lost comes from the reports of `watch`.

    Exit codes: 0 one site serves and a switch could begin; 1 not ready, or an operation is unfinished; 2 a site could
    not be asked.
    """
    config = read_config(config_path)

    async def run() -> int:
        from interpulse.failover.status import pair_status

        found = await pair_status(config)
        if output == "json":
            print_object(found.to_json())
        else:
            click.echo("\n".join(_lines(found)))
        return found.outcome

    finish(run, output)


def _lines(found: PairStatus) -> Iterator[str]:
    yield f"{found.name}:"
    rows = [row for site in found.sites for row in _rows(site)]
    yield to_rows(["site", "cluster", "namespace", "role", "topics", "behind"], rows)
    for site in found.sites:
        if site.problem:
            yield f"{site.name}: {site.problem}"
        yield from _some(f"not copied from {site.name}", site.closed)
        yield from _some(f"acknowledgements not exchanged by {site.name}", site.pending)
    yield from _stake(found)
    if found.operation_problem:
        yield f"Operation: not known, {found.operation_problem}"
    else:
        yield _operation(found)


def _stake(found: PairStatus) -> Iterator[str]:
    stake = found.at_stake
    if stake is None:
        yield f"At stake: not known, {found.stake_problem}"
        return
    yield from stake_lines(stake)


def stake_lines(stake: AtStake) -> Iterator[str]:
    """Yield what is at stake by the last report, for people."""
    known, unknown = stake.sentences()
    yield known
    if stake.stakes:
        columns = ["topic", "published up to", "copied up to", "messages", "bytes", "oldest"]
        yield to_rows(columns, map(_stake_row, stake.stakes[:_SHOWN_MAX]))
    if len(stake.stakes) > _SHOWN_MAX:
        yield f"and {len(stake.stakes) - _SHOWN_MAX} more, which -o json prints"
    yield unknown


def _stake_row(row: Stake) -> list[object]:
    age = None if row.oldest_ms is None else f"{row.oldest_ms / 1000:.1f} s"
    return [str(row.topic), str(row.published_up_to), str(row.copied_up_to), row.messages, row.bytes, age]


def _rows(site: SiteStatus) -> Iterator[list[object]]:
    if site.problem:
        yield [site.name, site.cluster, None, "does not answer", None, None]
    for namespace, role in site.roles.items():
        yield [site.name, site.cluster, namespace, str(role), site.topics, site.behind]


def _some(title: str, reasons: Mapping[str, str]) -> Iterator[str]:
    for topic, reason in list(reasons.items())[:_SHOWN_MAX]:
        yield f"{title}: {topic}: {reason}"
    if len(reasons) > _SHOWN_MAX:
        yield f"{title}: {len(reasons) - _SHOWN_MAX} more"


def _operation(found: PairStatus) -> str:
    last = found.operation
    if last is None:
        return "No operation is recorded."
    shown = f"{last['kind']} to {last['to']}, epoch {last['epoch']}, started at {last['began']} by {last['holder']}"
    if found.is_unfinished:
        return f"Unfinished since {last['at']}, at {last.get('step', '?')}: {shown}"
    return f"Last operation: {shown}: {last['outcome']} at {last['at']}"
