"""Command ``tail``: the messages that a takeover left behind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.failover.options import config_option, finish, output_option, print_object, read_config
from interpulse.terminal.formats import to_rows
from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from interpulse.failover.pair_config import PairConfig
    from interpulse.failover.tail.incident import Incident


@click.command()
@config_option
@option("--epoch", "Epoch of the takeover; without it the newest one.", click.IntRange(min=1), None)
@option("-n --rows rows_max", "Messages to print; the file has all of them.", click.IntRange(min=0), 20)
@flag("--again is_again", "Read the lost site again, and replace the list that is there.")
@output_option
def tail(config_path: str, epoch: int | None, rows_max: int, is_again: bool, output: str) -> None:
    """List the messages that a takeover left behind at the lost site, which has to answer again.

    Reads the entries behind the last copy of each topic-partition, and writes one line for each message that has no
    copy to tail.jsonl in the directory of the incident; keys that the other site has taken since, to conflicts.jsonl.
    Positions that the lost site no longer has are printed as lost. Nothing is changed at either site.

    Exit codes: 0 nothing was left behind; 1 messages are listed, or positions are lost; 2 a site could not be asked;
    3 there is no such incident.
    """
    config = read_config(config_path)

    async def run() -> int:
        from interpulse.failover.outcome import Outcome

        directory, summary = await _summary(config, epoch, is_again=is_again)
        if output == "json":
            print_object({"pair": config.name, "directory": str(directory), **summary})
        else:
            click.echo("\n".join(_lines(config.name, directory, summary, rows_max)))
        return Outcome.NOTICED if summary["messages"] or summary["lostPositions"] else Outcome.DONE

    finish(run, output)


async def _summary(config: PairConfig, epoch: int | None, *, is_again: bool) -> tuple[Path, dict[str, Any]]:
    """Return the directory of an incident, and the sums of its list. Raise OperationFailed without an incident."""
    from interpulse.failover.outcome import OperationFailed, Outcome
    from interpulse.failover.tail.incident import Incident, IncidentError, incident_directory
    from interpulse.failover.tail.listing import MERGED, listed_before

    try:
        directory = incident_directory(config.state, epoch)
        incident = Incident.load(directory)
    except IncidentError as error:
        raise OperationFailed(str(error), Outcome.REFUSED) from error
    if is_again and (directory / MERGED).exists():
        raise OperationFailed(
            f"{directory / MERGED} is there: reconcile merges this list, or has merged it, so it is kept. Leave out "
            "--again",
            Outcome.REFUSED,
        )
    summary = None if is_again else listed_before(directory)
    return directory, await _list(config, incident, directory) if summary is None else summary


async def _list(config: PairConfig, incident: Incident, directory: Path) -> dict[str, Any]:
    from interpulse.failover.pair import opened_pair
    from interpulse.failover.tail.listing import list_tail

    async with opened_pair(config) as pair:
        lost, serving = (pair.site(name).access for name in (incident.lost, incident.to))
        return await list_tail(lost, serving, incident, directory)


def _lines(pair: str, directory: Path, summary: Mapping[str, Any], rows_max: int) -> Iterator[str]:
    from interpulse.failover.tail.listing import TAIL

    left = [each for each in summary["topics"] if each["messages"]]
    yield (
        f"{pair}: the takeover of epoch {summary['epoch']} left {summary['messages']} messages in {len(left)} of "
        f"{len(summary['topics'])} topic-partitions at {summary['lost']}, {summary['conflicts']} keys in conflict; "
        f"listed {summary['listed']}"
    )
    yield from lost_lines(summary["lostPositions"])
    if left:
        columns = ("topic", "messages", "bytes", "conflicts")
        yield to_rows(columns, [[each[column] for column in columns] for each in left])
        yield from _messages(directory / TAIL, rows_max, summary["messages"])


def lost_lines(positions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each topic-partition of which positions are lost."""
    for lost in positions:
        upto = f"up to {lost['upto']}" if lost["upto"] else "of unknown number"
        yield f"LOST ({lost['state']}): {lost['topic']}: positions behind {lost['after']} {upto}"


def _messages(path: Path, rows_max: int, count: int) -> Iterator[str]:
    """Yield a table of the first messages of the list."""
    columns = ("topic", "position", "batch_index", "producer", "sequence_id", "key", "publish_time", "bytes")
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in islice(file, rows_max)]
    if rows:
        yield ""
        yield to_rows(columns, [[row[column] for column in columns] for row in rows])
    yield f"All {count} messages: {path}"
