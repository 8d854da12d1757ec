"""Reader of the tail of one topic-partition: the lost site's entries, and the copies and keys at the other site."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Container, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from interpulse.client.consuming.copied_entries import CopySearch
from interpulse.client.consuming.entry_reader import Entry, EntryReader
from interpulse.failover.history.reading import namespace_cursors, shown_cursors
from interpulse.failover.site import SiteAccess
from interpulse.failover.tail.incident import LastCopy
from interpulse.failover.tail.rows import (
    CopiedPositions,
    KeyedMessage,
    TailMessage,
    keyed,
    payload_sha,
    tail_messages,
)
from interpulse.failover.tail.sameness import Lost, Sameness, lost_positions, sameness
from interpulse.model.errors import DataLoss, NotSupported, TopicNotFound
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.acknowledgements import Acknowledgements, before
from interpulse.replication.copy import skip_reason
from interpulse.wire.stamps import source_positions

_READER: Final = "interpulse-failover"
_BUFFER_BYTES: Final = 4 << 20
_OWN_CURSORS: Final = "pulsar."
"""Prefix of the cursors of replicators."""


@dataclass(frozen=True)
class TopicState:
    """One topic-partition at both sites, as it is when its tail is listed."""

    last: LastCopy
    end: Position
    """Last position at the lost site."""
    copy: Position
    """Position of the copy of ``last.copied`` at the site that serves, or of the one before; EARLIEST without one."""
    copies_end: Position
    """Last position at the site that serves."""
    start: Position
    """Position at the lost site behind which the tail is read."""
    state: Sameness
    lost: Lost | None


async def topic_state(lost: SiteAccess, serving: SiteAccess, last: LastCopy) -> TopicState:
    """Compare a topic-partition of the lost site, which answers again, with its last copy."""
    end, copies_end = await end_of(lost, last.topic), await end_of(serving, last.topic)
    there, copy = await _copy_at(serving, last, copies_end)
    original = None if last.copied == EARLIEST else await _first_from(lost, last.topic, last.copied, end)
    first = original and original.position
    state = sameness(last.copied, end, first, _payload(original), _payload(copy))
    gone = lost_positions(str(last.topic), state, last.copied, end, first, last.end)
    return TopicState(last, end, there, copies_end, _start(last, state, end, first), state, gone)


async def end_of(site: SiteAccess, topic: TopicName) -> Position:
    """Return the last position, also of a log of which nothing is left; EARLIEST without a topic."""
    try:
        last = await site.end(topic)
        if last.entry >= 0:
            return last
        return Position.parse(str((await site.admin.topics.internal_stats(topic))["lastConfirmedEntry"]))
    except TopicNotFound:
        return EARLIEST


def _start(last: LastCopy, state: Sameness, end: Position, first: Position | None) -> Position:
    if state is Sameness.REBUILT or (state is Sameness.TRIMMED and first is None):
        return end
    if state is Sameness.TRIMMED and first is not None:
        return before(first)
    return last.copied if last.first is None else before(last.first)


async def _copy_at(site: SiteAccess, last: LastCopy, end: Position) -> tuple[Position, Entry | None]:
    """Return the place of the last copy, and the copy itself if it is that of ``last.copied``."""
    if last.copied == EARLIEST or end.entry < 0:
        return EARLIEST, None
    search = CopySearch(site.client.session, last.topic)
    await search.open()
    copy = await search.last_copy(last.copied, None)
    if copy is None:
        return EARLIEST, None
    is_it = copy.source == last.copied
    return copy.there, await _first_from(site, last.topic, copy.there, copy.there) if is_it else None


async def _first_from(site: SiteAccess, topic: TopicName, position: Position, upto: Position) -> Entry | None:
    """Return the first entry from a position on; None if there is none, or what was there is gone."""
    if upto < position:
        return None
    async with aclosing(_entries(site, topic, before(position), upto)) as entries:
        try:
            return await anext(entries, None)
        except DataLoss:
            return None


async def _entries(site: SiteAccess, topic: TopicName, after: Position, upto: Position) -> AsyncGenerator[Entry]:
    if upto.entry < 0 or after >= upto:
        return
    reader = EntryReader(
        site.client.session, topic, after=after, upto=upto, buffer_bytes=_BUFFER_BYTES, subscription_prefix=_READER
    )
    async with reader:
        await reader.open()
        while batch := await reader.read_batch():
            for entry in batch:
                yield entry


def _payload(entry: Entry | None) -> str | None:
    return None if entry is None else payload_sha(entry.parsed.payload)


async def copied_since(serving: SiteAccess, state: TopicState) -> CopiedPositions:
    """Return the positions at the lost site of all entries from the start of the tail that have a copy."""
    copied = CopiedPositions()
    after = state.copy if state.last.first is None else EARLIEST
    async with aclosing(copies_in(serving, state.last.topic, after, state.copies_end)) as copies:
        async for source, _ in copies:
            copied.add(source)
    return copied


async def copies_in(
    site: SiteAccess, topic: TopicName, after: Position, upto: Position
) -> AsyncGenerator[tuple[Position, Entry]]:
    """Yield the copies of a part of a log, each with the position of its original at the other site."""
    async with aclosing(_entries(site, topic, after, upto)) as entries:
        async for entry in entries:
            metadata = entry.parsed.metadata
            is_copy = site.is_copy(metadata.replicated_from, metadata.producer_name)
            if is_copy and (positions := source_positions(metadata)):
                yield positions[-1], entry


async def originals_in(site: SiteAccess, topic: TopicName, after: Position, upto: Position) -> AsyncGenerator[Entry]:
    """Yield the entries of a part of a log that have to be copied to the other site."""
    async with aclosing(_entries(site, topic, after, upto)) as entries:
        async for entry in entries:
            if skip_reason(entry.parsed.metadata, site.other_cluster) is None:
                yield entry


async def tail_of(
    lost: SiteAccess, state: TopicState, copied: Container[Position], cursors: Mapping[str, Acknowledgements]
) -> AsyncIterator[TailMessage]:
    """Yield the messages that have to be copied from the lost site and have no copy, in its order."""
    topic = str(state.last.topic)
    async with aclosing(originals_in(lost, state.last.topic, state.start, state.end)) as entries:
        async for entry in entries:
            if entry.position not in copied:
                for message in tail_messages(topic, entry, cursors):
                    yield message


async def local_keys(serving: SiteAccess, state: TopicState, wanted: Container[str]) -> dict[str, KeyedMessage]:
    """Return the newest message of each wanted key that the serving site has taken itself since its promotion."""
    found: dict[str, KeyedMessage] = {}
    after = state.copy if state.last.promoted is None else state.last.promoted
    topic = str(state.last.topic)
    async with aclosing(_entries(serving, state.last.topic, after, state.copies_end)) as entries:
        async for entry in entries:
            for message in _local_messages(topic, entry):
                if message.key is not None and message.key in wanted:
                    found[message.key] = keyed(message)
    return found


def _local_messages(topic: str, entry: Entry) -> Iterator[TailMessage]:
    metadata = entry.parsed.metadata
    if not metadata.replicated_from and not metadata.HasField("marker_type"):
        yield from tail_messages(topic, entry, {})


async def cursors_of(site: SiteAccess, topics: Mapping[TopicName, object]) -> dict[str, dict[str, Acknowledgements]]:
    """Return the subscriptions of topic-partitions, by topic and name, without those of replicators."""
    found: dict[str, dict[str, Acknowledgements]] = {}
    for namespace in {topic.namespace_name for topic in topics}:
        try:
            shown: dict[str, dict[str, Acknowledgements]] = await namespace_cursors(site.admin, namespace)
        except NotSupported:
            within = [str(topic) for topic in topics if topic.namespace_name == namespace]
            shown = {topic: await shown_cursors(site.admin, topic) for topic in within}
        found |= {
            topic: {name: held for name, held in sorted(cursors.items()) if not name.startswith(_OWN_CURSORS)}
            for topic, cursors in shown.items()
        }
    return found
