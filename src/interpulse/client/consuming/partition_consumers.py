"""The partition consumers behind a consumer or reader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from interpulse.client.checks import check_type
from interpulse.client.consuming.partition_consumer import PartitionConsumer
from interpulse.client.partition_watch import PartitionWatch
from interpulse.client.producing.producer import open_all, partition_names
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, InvalidRequest, PulsarError
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName

__all__ = ["Parts", "SeekTarget"]

SeekTarget = MessageId | Position | int | Callable[[str], MessageId | Position | int]
"""A message, EARLIEST, LATEST, a publish time in ms since the epoch, or what gives one of them for the name of a topic
or partition."""


class Parts:
    """One part per topic or partition; topics come and go, and partitioned ones grow.

    ``make`` makes the part of a topic or partition; its second argument says that it comes late: others are being
    read already, so it has to be taken from its beginning. ``create``: asking for the partitions may create a topic.
    ``watch_interval_ms`` is how often growth is looked for, None = never.
    """

    def __init__(
        self,
        session: Session,
        make: Callable[[TopicName, bool], PartitionConsumer],
        *,
        create: bool,
        watch_interval_ms: int | None,
        what: str,
    ) -> None:
        self._session = session
        self._make = make
        self._create = create
        self._watch_interval_ms = watch_interval_ms
        self._what = what
        self._counts: dict[TopicName, int] = {}
        self._parts: dict[str, PartitionConsumer] = {}
        self._changing = asyncio.Lock()
        self._watch: PartitionWatch | None = None
        self._closed = False

    def __iter__(self) -> Iterator[PartitionConsumer]:
        return iter(list(self._parts.values()))

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def names(self) -> set[str]:
        """The topics and partitions that are being read."""
        return set(self._parts)

    @property
    def topics(self) -> list[str]:
        """The topics as they were added."""
        return [str(topic) for topic in self._counts]

    def get(self, name: str) -> PartitionConsumer | None:
        return self._parts.get(name)

    async def add(self, topics: Sequence[TopicName], *, late: bool = False) -> None:
        """Find the partitions of topics and open all of them, or none. Raises what a broker refuses."""
        async with self._changing:
            new = [topic for topic in topics if topic not in self._counts]
            counts = dict(zip(new, await asyncio.gather(*map(self._count, new)), strict=True))
            names = [part for topic, count in counts.items() for part in partition_names(topic, count)]
            await self._open([name for name in names if str(name) not in self._parts], late=late)
            self._counts |= counts
        if any(counts.values()) and self._watch_interval_ms is not None and self._watch is None:
            self._watch = PartitionWatch(
                self._session, self.update_partitions, interval_ms=self._watch_interval_ms, what=self._what
            )

    async def _count(self, topic: TopicName, *, create: bool | None = None) -> int:
        create = self._create if create is None else create
        return await self._session.lookup.partitions(topic, create=create, fallback_on_old_broker=True)

    async def _open(self, names: list[TopicName], *, late: bool) -> None:
        added = await self._begin(names, late=late)
        try:
            await open_all(list(added.values()))
            await self._check_open(added)
        except BaseException:
            self._parts = {name: part for name, part in self._parts.items() if name not in added}
            raise

    async def _begin(self, names: list[TopicName], *, late: bool) -> dict[str, PartitionConsumer]:
        """Make the parts. They are known before they are open, because messages may come before the last one is."""
        if len(names) > 1:
            await self._session.look_ahead(names)
        added = {str(name): self._make(name, late) for name in names}
        self._parts |= added
        return added

    async def _check_open(self, added: dict[str, PartitionConsumer]) -> None:
        if self._closed:
            await asyncio.gather(*(part.close() for part in added.values()))
            raise AlreadyClosed(f"closed {self._what}")

    async def add_listed(self, names: Sequence[str], *, late: bool = False) -> dict[str, PulsarError]:
        """Open what a broker has listed, each by itself and without asking for partitions; returns the failures."""
        async with self._changing:
            new = [TopicName.parse(name) for name in names if name not in self._parts]
            added = await self._begin(new, late=late)
            outcomes = await asyncio.gather(*(part.open() for part in added.values()), return_exceptions=True)
            failures: dict[str, PulsarError] = {}
            for name, outcome in zip(added, outcomes, strict=True):
                if isinstance(outcome, PulsarError):
                    failures[name] = outcome
                    self._parts.pop(name, None)
                elif outcome is not None:
                    raise outcome
            await self._check_open(added)
        return failures

    async def remove(self, topics: Sequence[TopicName]) -> None:
        """Read these topics, and all their partitions, no more. Unknown ones are no failure."""
        async with self._changing:
            names = [part for topic in topics for part in partition_names(topic, self._counts.pop(topic, 0))]
            gone = [self._parts.pop(str(name), None) for name in names]
            await asyncio.gather(*(part.close() for part in gone if part is not None))

    def drop(self, name: str) -> None:
        """A part has ended by itself."""
        self._parts.pop(name, None)

    async def update_partitions(self) -> None:
        """Look for new partitions of all topics; nothing is created by it. Raises the first failure after all were
        tried; TopicNotFound for a topic that is gone."""
        failures: list[PulsarError] = []
        async with self._changing:
            for topic in [topic for topic, known in self._counts.items() if known]:
                try:
                    await self._update(topic)
                except PulsarError as failure:
                    failures.append(failure)
        if failures:
            raise failures[0]

    async def _update(self, topic: TopicName) -> None:
        if self._closed:
            raise AlreadyClosed(f"closed {self._what}")
        known = self._counts[topic]
        count = await self._count(topic, create=False)
        if count > known:
            await self._open(partition_names(topic, count, first=known), late=True)
            self._counts[topic] = count

    async def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Move all parts; a message id of a partition moves that partition alone."""
        async with self._changing:
            parts = list(self._parts.values())
            if isinstance(target, MessageId) and len(parts) > 1 and target.position not in (EARLIEST, LATEST):
                parts = self._partition_of(target)
            where = {part: _place(target(str(part.topic)) if callable(target) else target) for part in parts}
            await asyncio.gather(*(part.seek(to, included=included) for part, to in where.items()))

    def _partition_of(self, target: MessageId) -> list[PartitionConsumer]:
        found = [part for part in self._parts.values() if part.topic.partition_index == target.partition]
        if len(found) != 1 or target.partition < 0:
            raise InvalidRequest(
                f"message id {target} fits one topic or partition only, and there are {len(self._parts)}: "
                f"give a time, EARLIEST, LATEST, or a function of the topic's name"
            )
        return found

    async def any(self, question: Callable[[PartitionConsumer], Awaitable[bool]]) -> bool:
        """Ask the parts one after the other until one says yes."""
        async with self._changing:
            for part in self._parts.values():
                if await question(part):
                    return True
        return False

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription of all parts."""
        async with self._changing:
            await asyncio.gather(*(part.unsubscribe(force=force) for part in self._parts.values()))

    async def close(self) -> None:
        """Close all parts, and what is being opened as soon as it is open."""
        self._closed = True
        if self._watch is not None:
            await self._watch.stop()
        await asyncio.gather(*(part.close() for part in self._parts.values()))


def _place(target: MessageId | Position | int) -> MessageId | int:
    """Raises TypeError for what is no place in a topic."""
    check_type("target", target, MessageId, Position, int)
    return target if isinstance(target, int) else MessageId.of(target)
