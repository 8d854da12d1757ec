"""Cursors that pipelines keep on the source, needed ones and those left by finished pipelines.

A leftover cursor keeps the log of its topic for ever, unless retention or a backlog quota says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from interpulse.model.errors import NotFound
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.spark.job.inspection.inspection import Inspection, at_once
from interpulse.spark.job.pipeline_config import PipelineConfig
from interpulse.spark.job.source_backlog import cursor_position, entries_after
from interpulse.spark.job.source_kind import cursor_name
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
        groups = await at_once(_of_topic(look, topic, wanted) for topic in await _topics(look))
    return sorted(cursor for cursors in groups for cursor in cursors)


async def _topics(look: Inspection) -> list[str]:
    """Return the topics, including those that are no longer selected, in the namespaces of selected ones."""
    rules, source = look.config.select, look.source
    if rules.from_policies:
        tenants = await source.tenants.list()
        listed = await at_once(source.namespaces.list(tenant) for tenant in tenants)
        names = {NamespaceName.parse(str(name)) for namespaces in listed for name in namespaces}
    else:
        names = {NamespaceName.parse(name) for name in rules.namespaces}
        names |= {TopicName.parse(name).namespace_name for name in rules.topics}
    groups = await at_once(
        source.topics.list(name, domains=(PERSISTENT,), system_included=True) for name in sorted(names, key=str)
    )
    return [topic for topics in groups for topic in topics]


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
    if (
        replication.get("connected")
        or replication.get("outboundConnection")
        or stats.get("subscriptions", {}).get(name, {}).get("consumers")
    ):
        return CONNECTED
    return KEPT if topic in wanted else LEFT


async def remove_cursors(config: PipelineConfig, cursors: Sequence[Cursor]) -> None:
    """Delete leftover cursors. The source refuses one that a job has taken up meanwhile."""
    async with config.source.admin() as source:
        for cursor in cursors:
            assert cursor.state == LEFT, cursor
            await source.topics.delete_subscription(cursor.topic, cursor.name)
