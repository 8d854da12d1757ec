"""Command ``interpulse top``: topics, subscriptions or replications, sorted by one of their statistics."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from interpulse.cli.admin.admin import connection_options
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.cli.support.params import NAMESPACE, POSITIVE, Parsed
from interpulse.cli.support.running import failure, open_admin
from interpulse.cli.watching.cluster_survey import ClusterSurvey, Observation
from interpulse.cli.watching.rows import TABLES, Table, shown, sorted_rows
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName
from interpulse.terminal.formats import FORMATS, to_table
from interpulse.terminal.option_groups import flag, option

T = TypeVar("T")


def _expression(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("kind", type=click.Choice(list(TABLES)), default="topics")
@click.argument("namespaces", type=NAMESPACE, nargs=-1)
@option("-s --sort heading", "Column to sort by, as it is headed; for example BACKLOG.")
@option("-f --filter wanted", "Only topics whose complete name has this in it.", Parsed("regex", _expression))
@option("-i --interval", "Seconds.", click.FloatRange(min=0.5), 2.0)
@option("-n --rows row_count", "Rows, where they are printed.", POSITIVE, 20)
@option("--topics-max", "Topics to ask about; of more the first ones by name.", POSITIVE, 500)
@flag("--once", "Look once and end.")
@option("-o --output", "With --once: all rows in this form.", click.Choice(list(FORMATS)))
@option("--admin-url webServiceUrl", "Web service URL, http://localhost:8080 unless configured.")
@connection_options
def top(
    kind: str, namespaces: tuple[NamespaceName, ...], interval: float, once: bool, output: str | None, **flags: Any
) -> None:
    """Watch KIND (topics, subscriptions or replication) of NAMESPACES, or of all namespaces.

    Also works with Apache Pulsar. Rates are the broker's own. Each topic takes one request, eight at a time. If there
    are more than --topics-max topics, only the first by name are read, and the heading shows how many there are.
    Reading a topic's statistics loads it at its broker: name namespaces, or use --filter, in large clusters.

    On a terminal with rich installed, a screen opens: q quits, s and S (or the arrow keys) sort by the next and
    previous column, r reverses the order, / filters by name. While the cluster does not answer, the screen keeps the
    last values and says so. Elsewhere, a table is printed in each round.
    """
    table = TABLES[kind]
    sort = _heading(table, flags["heading"])
    if output is not None and not once:
        raise click.UsageError("--output is for --once")
    settings = ConnectionSettings.resolve(flags)

    async def watch() -> None:
        async with open_admin(settings, settings.admin_url) as admin:
            names = [str(namespace) for namespace in namespaces]
            survey = ClusterSurvey(admin, names, wanted=flags["wanted"], topics_max=flags["topics_max"])
            if not once and sys.stdout.isatty() and importlib.util.find_spec("rich"):
                await _on_screen(table, survey, sort, interval)
                return
            while True:
                _print(table, survey.web_url, await survey.look(), sort, flags["row_count"], output)
                if once:
                    return
                click.echo()
                await asyncio.sleep(interval)

    try:
        asyncio.run(watch())
    except PulsarError as error:
        raise failure(error) from error
    except KeyboardInterrupt:
        pass  # that is how it ends


def _heading(table: Table, asked: str | None) -> str:
    if asked is None:
        return table.sort
    for heading in table.headings:
        if heading.lower() == asked.lower():
            return heading
    raise click.UsageError(f"There is no column {asked!r}; there is {', '.join(table.headings)}")


def _rows(table: Table, observation: Observation) -> list[dict[str, Any]]:
    return [row for topic, stats in observation.stats.items() for row in table.rows(topic, stats)]


def _title(web_url: str, observation: Observation) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    read, matching = len(observation.stats), observation.matching
    return f"{now}  {web_url}  {f'{read:,} of ' if matching > read else ''}{matching:,} topics"


def _print(table: Table, web_url: str, observation: Observation, sort: str, row_count: int, output: str | None) -> None:
    rows = sorted_rows(table, _rows(table, observation), sort)
    for problem in observation.problems:
        click.echo(f"Could not look: {problem}", err=True)
    if output is not None:
        click.echo(FORMATS[output](rows))
        return
    click.echo(_title(web_url, observation), err=True)
    cells = [dict(zip(table.headings, row, strict=True)) for row in shown(table, rows[:row_count])]
    click.echo(to_table(cells) if cells else "Nothing to show.")


async def _on_screen(table: Table, survey: ClusterSurvey, sort: str, interval: float) -> None:
    from interpulse.cli.watching.screen import Screen, attended

    ended = asyncio.Event()
    with Screen(table, sort, on_end=ended.set) as screen, attended(screen):
        screen.show(f"{survey.web_url}  is asked for its topics", [], ())
        observation = await _unless(ended, survey.look())
        title = "" if observation is None else _title(survey.web_url, observation)
        while observation is not None:
            screen.show(title, _rows(table, observation), tuple(observation.problems))
            await _unless(ended, asyncio.sleep(interval))
            newest = await _unless(ended, _looked_again(survey, observation))
            if newest is not None and newest.stats is not observation.stats:
                title = _title(survey.web_url, newest)
            observation = newest


async def _unless(ended: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    working, ending = asyncio.ensure_future(work), asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
        return None if ended.is_set() else working.result()
    finally:
        for task in (working, ending):
            task.cancel()
        await asyncio.gather(working, ending, return_exceptions=True)


async def _looked_again(survey: ClusterSurvey, before: Observation) -> Observation:
    """Read the statistics again, or keep the last ones with their time if the cluster does not answer."""
    try:
        observation = await survey.look()
    except PulsarError as error:
        return replace(before, problems=[failure(error).message])
    no_answer = observation.problems and not observation.stats
    return replace(before, problems=observation.problems) if no_answer else observation
