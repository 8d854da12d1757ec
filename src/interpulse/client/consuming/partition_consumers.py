"""Partition consumers of a consumer or reader, and their shared inbox."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from interpulse.client.checks import check_type
from interpulse.client.consuming.consumer_config import ConsumerConfig
from interpulse.client.consuming.partition_consumer import Inbox, PartitionConsumer
from interpulse.client.partitions import PartitionWatch, open_all, partition_names
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, InvalidRequest, PulsarError
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.model.names import TopicName

SeekTarget = MessageId | Position | int | Callable[[str], MessageId | Position | int]
"""Message, EARLIEST, LATEST, publish time in ms since the epoch, or a function.

The function returns one of the others for the name of a topic or partition.
"""


class PartitionConsumers:
    """Partition consumers, one per topic or partition.

    Topics may be added and removed, and partitioned topics may grow.

    ``make`` creates the consumer of a topic or partition. Its second argument is True for a topic or partition that was
    discovered later and is read from its beginning.
    """

    def __init__(
        self,
        session: Session,
        make: Callable[[TopicName, bool], PartitionConsumer],
        config: ConsumerConfig,
        *,
        what: str,
    ) -> None:
        self.inbox = Inbox()
        self._session = session
        self._make = make
        self._config = config
        self._what = what
        self._counts: dict[TopicName, int] = {}
        self._consumers: dict[str, PartitionConsumer] = {}
        self._changing = asyncio.Lock()
        self._watch: PartitionWatch | None = None
        self._closed = False

    def __iter__(self) -> Iterator[PartitionConsumer]:
        return iter(list(self._consumers.values()))

    def __len__(self) -> int:
        return len(self._consumers)

    @property
    def names(self) -> set[str]:
        """Topics and partitions that are consumed."""
        return set(self._consumers)

    @property
    def is_connected(self) -> bool:
        return not self._closed and all(consumer.is_connected for consumer in self._consumers.values())

    def get(self, name: str) -> PartitionConsumer | None:
        return self._consumers.get(name)

    async def add(self, topics: Sequence[TopicName], *, late: bool = False) -> None:
        """Find the partitions of topics and open all of them, or none. Raise the broker's refusal."""
        async with self._changing:
            new = [topic for topic in topics if topic not in self._counts]
            counts = dict(zip(new, await asyncio.gather(*map(self._count, new)), strict=True))
            names = [partition for topic, count in counts.items() for partition in partition_names(topic, count)]
            await self._open([name for name in names if str(name) not in self._consumers], late=late)
            self._counts |= counts
        if any(counts.values()) and self._config.auto_update_partitions and self._watch is None:
            interval_ms = self._config.auto_update_partitions_interval_ms
            self._watch = PartitionWatch(
                self._session, self.update_partitions, interval_ms=interval_ms, what=self._what
            )

    async def _count(self, topic: TopicName, *, create: bool | None = None) -> int:
        create = self._config.force_topic_creation if create is None else create
        return await self._session.lookup.partitions(topic, create=create, fallback_on_old_broker=True)

    async def _open(self, names: list[TopicName], *, late: bool) -> None:
        added = await self._make_all(names, late=late)
        try:
            await open_all(list(added.values()))
            await self._check_open(added)
        except BaseException:
            self._consumers = {name: consumer for name, consumer in self._consumers.items() if name not in added}
            raise

    async def _make_all(self, names: list[TopicName], *, late: bool) -> dict[str, PartitionConsumer]:
        """Create and register the consumers before opening them. Messages may arrive before the last one is open."""
        if len(names) > 1:
            await self._session.look_ahead(names)
        added = {str(name): self._make(name, late) for name in names}
        self._consumers |= added
        return added

    async def _check_open(self, added: dict[str, PartitionConsumer]) -> None:
        if self._closed:
            await asyncio.gather(*(consumer.close() for consumer in added.values()))
            raise AlreadyClosed(f"{self._what} is closed")

    async def add_listed(self, names: Sequence[str], *, late: bool = False) -> dict[str, PulsarError]:
        """Open topics that a broker has listed, each independently and without a partition lookup.

        Return the failures.
        """
        async with self._changing:
            new = [TopicName.parse(name) for name in names if name not in self._consumers]
            added = await self._make_all(new, late=late)
            outcomes = await asyncio.gather(*(consumer.open() for consumer in added.values()), return_exceptions=True)
            failures: dict[str, PulsarError] = {}
            for name, outcome in zip(added, outcomes, strict=True):
                if isinstance(outcome, PulsarError):
                    failures[name] = outcome
                    self._consumers.pop(name, None)
                elif outcome is not None:
                    raise outcome
            await self._check_open(added)
        return failures

    async def remove(self, topics: Sequence[TopicName]) -> None:
        """Close the consumers of these topics and of all their partitions. Unknown topics are ignored."""
        async with self._changing:
            names = [name for topic in topics for name in partition_names(topic, self._counts.pop(topic, 0))]
            gone = [self._consumers.pop(str(name), None) for name in names]
            await asyncio.gather(*(consumer.close() for consumer in gone if consumer is not None))

    def drop(self, name: str) -> None:
        """Remove a consumer that has ended by itself."""
        self._consumers.pop(name, None)

    def on_failed(self, failure: PulsarError) -> None:
        """Fail all consumers with the failure of one, unless it was closed."""
        if not isinstance(failure, AlreadyClosed):
            self.inbox.fail(failure)

    async def update_partitions(self) -> None:
        """Look for new partitions of all topics. No topic is created.

        Raise the first failure after every topic was tried; TopicNotFound for a deleted topic.
        """
        failures: list[PulsarError] = []
        async with self._changing:
            for topic in [topic for topic, count in self._counts.items() if count]:
                try:
                    await self._update(topic)
                except PulsarError as failure:
                    failures.append(failure)
        if failures:
            raise failures[0]

    async def _update(self, topic: TopicName) -> None:
        if self._closed:
            raise AlreadyClosed(f"{self._what} is closed")
        earlier = self._counts[topic]
        count = await self._count(topic, create=False)
        if count > earlier:
            await self._open(partition_names(topic, count, first=earlier), late=True)
            self._counts[topic] = count

    async def seek(self, target: SeekTarget, *, included: bool = True) -> None:
        """Move all consumers. A message id of a partition moves that partition only."""
        async with self._changing:
            moved = list(self._consumers.values())
            if isinstance(target, MessageId) and len(moved) > 1 and target.position not in (EARLIEST, LATEST):
                moved = self._partition_of(target)
            targets = {
                consumer: _checked(target(str(consumer.topic)) if callable(target) else target) for consumer in moved
            }
            await asyncio.gather(*(consumer.seek(to, included=included) for consumer, to in targets.items()))

    def _partition_of(self, target: MessageId) -> list[PartitionConsumer]:
        consumers = [
            consumer for consumer in self._consumers.values() if consumer.topic.partition_index == target.partition
        ]
        if len(consumers) != 1 or target.partition < 0:
            raise InvalidRequest(
                f"message id {target} fits one topic or partition only, and there are {len(self._consumers)}: "
                f"give a time, EARLIEST, LATEST, or a function of the topic's name"
            )
        return consumers

    async def any(self, question: Callable[[PartitionConsumer], Awaitable[bool]]) -> bool:
        """Return True if ``question`` is true for a consumer. Ask one after the other and stop at the first."""
        async with self._changing:
            for consumer in self._consumers.values():
                if await question(consumer):
                    return True
        return False

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription on all topics and partitions."""
        async with self._changing:
            await asyncio.gather(*(consumer.unsubscribe(force=force) for consumer in self._consumers.values()))

    async def close(self) -> None:
        """Close all consumers. Those being opened are closed as soon as they are open."""
        self._closed = True
        if self._watch is not None:
            await self._watch.stop()
        await asyncio.gather(*(consumer.close() for consumer in self._consumers.values()))


def _checked(target: MessageId | Position | int) -> MessageId | int:
    """Return a valid seek target. Raise TypeError for any other value."""
    check_type("target", target, MessageId, Position, int)
    return target if isinstance(target, int) else MessageId.of(target)
