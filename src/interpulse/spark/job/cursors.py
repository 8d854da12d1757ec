"""Cursors that pipelines keep on the source: listed, opened, deleted, and moved behind what the target holds.

A leftover cursor keeps the log of its topic for ever, unless retention or a backlog quota says otherwise. A takeover
moves cursors: for a cut-over from Pulsar's own replicator, and for a pipeline whose checkpoint is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from interpulse.client.admin.admin_client import AdminClient
from interpulse.in_turns import concurrently
from interpulse.model.errors import AlreadyExists, NotFound, OperationTimeout, TopicNotFound
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.spark.job.inspection import Inspection
from interpulse.spark.job.pipeline_config import PipelineConfig, PipelineConfigError
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.selection import cursor_name
from interpulse.spark.job.source_backlog import cursor_position, entries_after, last_entry
from interpulse.wire.cursor_promise import REPLICATION_CURSORS

CONNECTED: Final = "connected"
KEPT: Final = "kept"
LEFT: Final = "left"


class Cursor(NamedTuple):
    """A cursor. Its ``state`` is `CONNECTED` with a job, `KEPT` while its topic is selected, and else `LEFT`."""

    topic: str
    name: str
    position: str
    entries: int
    state: str


async def find_cursors(config: PipelineConfig, *, name: str | None = None, is_finished: bool = False) -> list[Cursor]:
    """Return a pipeline's cursors in all namespaces from which it may have selected topics.

    ``name`` selects cursors of that name instead, left by a pipeline whose file is gone. ``is_finished`` means that
    nothing is selected any more. Raises PulsarError if the source cannot be asked, and PipelineConfigError if it is
    another cluster.
    """
    async with Inspection(config) as look:
        selected = await look.selected()
        wanted: dict[str, set[str]] = {}
        for remote, selection in selected.items():
            cursor = await cursor_name(look.source, config, remote)
            wanted.setdefault(cursor, set()).update(() if is_finished else selection.partitions())
        if name is not None:
            wanted = {name: set()}
        groups = await concurrently(lambda topic: _of_topic(look, topic, wanted), await _topics(look))
    return sorted(chain.from_iterable(groups))


async def _topics(look: Inspection) -> list[str]:
    """Return the topics, including those that are no longer selected, in the namespaces of selected ones."""
    rules, source = look.config.select, look.source
    if rules.from_policies:
        listed = await concurrently(source.namespaces.list, await source.tenants.list())
        names = {NamespaceName.parse(str(name)) for name in chain.from_iterable(listed)}
    else:
        names = {NamespaceName.parse(name) for name in rules.namespaces}
        names |= {TopicName.parse(name).namespace_name for name in rules.topics}
    ask = partial(source.topics.list, domains=(PERSISTENT,), system_included=True)
    return list(chain.from_iterable(await concurrently(ask, sorted(names, key=str))))


async def _of_topic(look: Inspection, topic: str, wanted: Mapping[str, set[str]]) -> list[Cursor]:
    try:
        stats = await look.source.topics.internal_stats(topic)
        shown = {name: cursor_position(stats, name) for name in wanted}
        if not any(shown.values()):
            return []
        used = await look.source.topics.stats(topic)
    except NotFound:
        return []
    return [
        Cursor(topic, name, str(position), entries_after(stats, position), _state(used, topic, name, wanted[name]))
        for name, position in shown.items()
        if position is not None
    ]


def _state(stats: Mapping[str, Any], topic: str, name: str, wanted: set[str]) -> str:
    replication = stats.get("replication", {}).get(name.removeprefix(REPLICATION_CURSORS), {})
    consumers = stats.get("subscriptions", {}).get(name, {}).get("consumers")
    if replication.get("connected") or replication.get("outboundConnection") or consumers:
        return CONNECTED
    return KEPT if topic in wanted else LEFT


async def remove_cursors(config: PipelineConfig, cursors: Sequence[Cursor]) -> None:
    """Delete leftover cursors. The source refuses one that a job has taken up meanwhile."""
    async with config.source.admin() as source:
        for cursor in cursors:
            assert cursor.state == LEFT, cursor
            await source.topics.delete_subscription(cursor.topic, cursor.name)


_LOOK_S: Final = 0.1
_LOOKS: Final = 300


class Begin(NamedTuple):
    """Start of a topic-partition of a route: behind ``after``, which the target holds, or None if it holds nothing."""

    cluster: str
    topic: str
    cursor: str
    after: Position | None


class Takeover(NamedTuple):
    """Entries that are already copied: looked up at the end of every target topic-partition, or given for some."""

    from_target: bool = False
    skip_until: Mapping[str, Position] = {}


async def find_begins(config: PipelineConfig, wanted: Takeover) -> list[Begin]:
    """Return where every currently selected topic-partition begins.

    Raises PipelineConfigError if a checkpoint exists, a topic is not selected, or the source never had what the target
    holds. Raises PulsarError if a cluster cannot be asked.
    """
    async with Inspection(config) as look:
        routes = await _routes(look)
        names = sorted({name for _, selected in routes for name in selected})
        if unknown := sorted(wanted.skip_until.keys() - names):
            some = ", ".join([*names[:3], *(["..."] if len(names) > 3 else [])]) or "none"
            raise PipelineConfigError(
                f"--skip-until: {', '.join(unknown)} is not selected; it names topic-partitions, here {some}"
            )
        groups = [await concurrently(partial(_begin, look, route, wanted), selected) for route, selected in routes]
        return list(chain.from_iterable(groups))


async def _routes(look: Inspection) -> list[tuple[Route, list[str]]]:
    routes = []
    for selection in (await look.selected()).values():
        if selection.address is None:
            raise PipelineConfigError(selection.problem)
        route = await look.route(selection)
        if route.checkpoint.exists():
            raise PipelineConfigError(
                f"{route.checkpoint} says where the pipeline stands: leave --from-target and --skip-until away, or "
                f"remove that directory if it is of no use any more"
            )
        routes.append((route, selection.partitions()))
    return routes


async def _begin(look: Inspection, route: Route, wanted: Takeover, name: str) -> Begin:
    after = wanted.skip_until.get(name)
    if after is None and wanted.from_target:
        with suppress(TopicNotFound):
            after = await look.copied_by_any(route, name)
    if after is not None and after > (end := last_entry(await look.source.topics.internal_stats(name))):
        raise PipelineConfigError(
            f"{name}: {route.remote} holds entries up to {after}, and {look.config.source.cluster} ends at {end}: it "
            f"was rebuilt, or the topic recreated. Say where it begins with --skip-until {name}=LEDGER:ENTRY"
        )
    return Begin(route.remote, name, route.cursor, after)


async def move_cursors(config: PipelineConfig, begins: list[Begin]) -> None:
    """Open the cursors and move them forward to where they begin. On return they are there, or further."""
    async with Inspection(config) as look:
        await concurrently(partial(_move, look.source), begins)


async def _move(source: AdminClient, begin: Begin) -> None:
    await _open(source, begin)
    if begin.after is None or await _is_behind(source, begin, begin.after):
        return
    await source.topics.expire_upto(begin.topic, begin.cursor, MessageId(*begin.after))
    for _ in range(_LOOKS):  # a real Pulsar answers before it has moved the cursor
        if await _is_behind(source, begin, begin.after):
            return
        await asyncio.sleep(_LOOK_S)
    raise OperationTimeout(f"{begin.topic}: the cursor {begin.cursor} has not moved to {begin.after} yet; start again")


async def _is_behind(source: AdminClient, begin: Begin, after: Position) -> bool:
    position = cursor_position(await source.topics.internal_stats(begin.topic), begin.cursor)
    return position is not None and position >= after


async def open_cursors(config: PipelineConfig) -> None:
    """Open missing cursors at the first existing entry, so that the source keeps what arrives from now on."""
    async with Inspection(config) as look:
        begins = []
        for selection in (await look.selected()).values():
            if selection.address is not None:
                route = await look.route(selection)
                begins += [Begin(route.remote, name, route.cursor, None) for name in selection.partitions()]
        await concurrently(partial(_open, look.source), begins)


async def _open(source: AdminClient, begin: Begin) -> None:
    with suppress(AlreadyExists):
        await source.topics.create_subscription(begin.topic, begin.cursor, MessageId(*EARLIEST))
