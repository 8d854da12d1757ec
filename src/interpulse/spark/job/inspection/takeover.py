"""Start of a pipeline where another one ended: its source cursors move behind what the target holds.

For a cut-over from Pulsar's own replicator, and for a pipeline whose checkpoint is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from interpulse.model.errors import AlreadyExists, OperationTimeout, TopicNotFound
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.spark.job.inspection.inspection import Inspection, at_once
from interpulse.spark.job.pipeline_config import PipelineConfig, PipelineConfigError
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.source_backlog import cursor_position, last_entry

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
        names = {name for _, selected in routes for name in selected}
        unknown = sorted(wanted.skip_until.keys() - names)
        if unknown:
            raise PipelineConfigError(
                f"--skip-until: {', '.join(unknown)} is not selected; it names topic-partitions, here {_some_of(names)}"
            )
        return [
            begin
            for route, selected in routes
            for begin in await at_once(_begin(look, route, wanted, name) for name in selected)
        ]


def _some_of(names: set[str]) -> str:
    return ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "") if names else "none"


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
    if after is not None and after > (end := last_entry(await look.stats(name))):
        raise PipelineConfigError(
            f"{name}: {route.remote} holds entries up to {after}, and {look.config.source.cluster} ends at {end}: it "
            f"was rebuilt, or the topic recreated. Say where it begins with --skip-until {name}=LEDGER:ENTRY"
        )
    return Begin(route.remote, name, route.cursor, after)


async def move_cursors(config: PipelineConfig, begins: list[Begin]) -> None:
    """Open the cursors and move them forward to where they begin. On return they are there, or further."""
    async with Inspection(config) as look:
        await at_once(_move(look, begin) for begin in begins)


async def _move(look: Inspection, begin: Begin) -> None:
    await _open(look, begin.topic, begin.cursor)
    if begin.after is None or await _is_behind(look, begin):
        return
    topics = look.source.topics
    await topics.expire_upto(begin.topic, begin.cursor, MessageId(*begin.after))
    for _ in range(_LOOKS):  # a real Pulsar answers before it has moved the cursor
        if await _is_behind(look, begin):
            return
        await asyncio.sleep(_LOOK_S)
    raise OperationTimeout(f"{begin.topic}: the cursor {begin.cursor} has not moved to {begin.after} yet; start again")


async def _is_behind(look: Inspection, begin: Begin) -> bool:
    assert begin.after is not None
    stands = cursor_position(await look.stats(begin.topic), begin.cursor)
    return stands is not None and stands >= begin.after


async def open_cursors(config: PipelineConfig) -> list[Begin]:
    """Open missing cursors at the first existing entry, so that the source keeps what arrives from now on."""
    async with Inspection(config) as look:
        begins = []
        for selection in (await look.selected()).values():
            if selection.address is not None:
                route = await look.route(selection)
                begins += [Begin(route.remote, name, route.cursor, None) for name in selection.partitions()]
        await at_once(_open(look, begin.topic, begin.cursor) for begin in begins)
        return begins


async def _open(look: Inspection, topic: str, cursor: str) -> None:
    with suppress(AlreadyExists):
        await look.source.topics.create_subscription(topic, cursor, MessageId(*EARLIEST))
