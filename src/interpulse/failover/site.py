"""One site of a pair: what is read of it, the same for every kind of cluster, and the protocol of its acts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.client.closing import AsyncCloses
from interpulse.client.consuming.copied_entries import CopiedEntry, last_source
from interpulse.client.consuming.entry_reader import Entry, EntryReader, ask_last_position
from interpulse.failover.pair_config import PairConfig, SiteAddress
from interpulse.in_turns import concurrently
from interpulse.model.errors import NotFound
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.acknowledgements import before
from interpulse.replication.copy import is_copy_from, skip_reason
from interpulse.rules.failover_role import FailoverRole, is_exempt

OURS: Final = "ours"
REAL: Final = "real"
REPLICATING: Final = "REPLICATING"
"""State of a topic-partition that is copied, as replication jobs report it."""

_AT_ONCE: Final = 64
_READER: Final = "interpulse-failover"


@dataclass
class SiteAccess(AsyncCloses):
    """Clients of a site, and what they read there. The caller closes it."""

    name: str
    address: SiteAddress
    other_cluster: str
    namespaces: tuple[NamespaceName, ...]
    admin: AdminClient = field(init=False)
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.admin = self.address.admin()
        self.client = self.address.client()

    @classmethod
    def of(cls, config: PairConfig, name: str) -> SiteAccess:
        """Return the access to a site of the pair. Nothing is connected yet."""
        other = config.addresses[config.other(name)].cluster
        return cls(name, config.addresses[name], other, config.namespaces)

    @property
    def cluster(self) -> str:
        return self.address.cluster

    async def kind(self) -> str:
        """Return "ours" or "real", by the runtime configuration. Raise the error of a cluster that does not answer."""
        offered = await self.admin.brokers.runtime_configuration()
        return OURS if "supportsAcknowledgementSync" in offered else REAL

    async def topics(self) -> list[TopicName]:
        """Return the persistent topic-partitions of the pair, without system topics and those of the tool itself."""
        listed = await concurrently(self.admin.topics.list, self.namespaces, limit=_AT_ONCE)
        names = (TopicName.parse(name) for page in listed for name in page)
        return sorted((name for name in names if name.is_persistent and not is_exempt(name)), key=str)

    async def stats(self, topics: Sequence[TopicName]) -> dict[TopicName, Mapping[str, Any]]:
        """Return the stats of topic-partitions."""
        found = await concurrently(self.admin.topics.stats, topics, limit=_AT_ONCE)
        return dict(zip(topics, found, strict=True))

    async def end(self, topic: TopicName) -> Position:
        """Return the last position of a topic-partition; that of an empty log has a negative entry."""
        return await ask_last_position(self.client.session, topic)

    async def newest_entry(self, topic: TopicName) -> Entry | None:
        """Return the last entry of a topic-partition; None if there is none, or it is not for clients."""
        end = await self.end(topic)
        if end.entry < 0:
            return None
        reader = EntryReader(self.client.session, topic, after=before(end), upto=end, subscription_prefix=_READER)
        async with reader:
            await reader.open()
            batch = await reader.read_batch()
        return batch[-1] if batch else None

    async def last_copied(self, topic: TopicName) -> Position:
        """Return the position on the other site of the newest copy in a topic-partition here.

        Return EARLIEST without one, and for a topic that does not exist: it is created with its first copy.
        """
        try:
            last = await last_source(self.client.session, topic, await self.end(topic), self._is_copy)
        except NotFound:
            return EARLIEST
        return EARLIEST if last is None else last

    def _is_copy(self, entry: CopiedEntry) -> bool:
        return self.is_copy(entry.origin, entry.producer)

    def is_copy(self, origin: str, producer: str) -> bool:
        """Return True for an entry from the other site, by its ``replicated_from`` and the name of its producer."""
        return is_copy_from(self.other_cluster, self.cluster, origin=origin, producer=producer)

    async def first_to_copy(self, topic: TopicName, after: Position, upto: Position) -> Position | None:
        """Return the first entry of ``(after, upto]`` that has to be copied to the other site; None without one.

        Copies from there, markers and entries that are meant for other clusters need no copy. A log of which everything
        was trimmed has none: its cursors have passed it.
        """
        if upto.entry < 0 or after >= upto or (await self.end(topic)).entry < 0:
            return None
        reader = EntryReader(self.client.session, topic, after=after, upto=upto, subscription_prefix=_READER)
        async with reader:
            await reader.open()
            async with aclosing(_entries(reader)) as entries:
                async for entry in entries:
                    if skip_reason(entry.parsed.metadata, self.other_cluster) is None:
                        return entry.position
        return None

    async def close(self) -> None:
        """Close the clients."""
        await self.client.close()
        await self.admin.close()


async def _entries(reader: EntryReader) -> AsyncGenerator[Entry]:
    while batch := await reader.read_batch():
        for entry in batch:
            yield entry


class Fence(NamedTuple):
    """Result of fencing a site: the last position of each topic-partition behind which nothing is published there."""

    positions: Mapping[str, Position]
    closed_producers: int
    gaps: tuple[str, ...] = ()
    """Sentences about times for which a topic-partition was not fenced. The positions are read after them."""
    open_topics: tuple[str, ...] = ()
    """Topic-partitions that are not fenced at this moment."""


@dataclass(frozen=True)
class SubscriptionLook:
    """Subscriptions that are carried, at one moment. ``marks`` is for the next look at the same site."""

    is_changed: bool
    """True if anything was acknowledged since the look before."""
    subscriptions: frozenset[tuple[str, str]]
    marks: Mapping[NamespaceName, str]

    @property
    def count(self) -> int:
        """Return the number of subscriptions, by topic-partition and name."""
        return len(self.subscriptions)


class Site(Protocol):
    """Acts at one site of a pair. Each may be repeated, and raises the refusal of the cluster."""

    @property
    def access(self) -> SiteAccess:
        """Clients of the site."""

    @property
    def kind(self) -> str:
        """Return "ours" or "real"."""

    async def roles(self) -> dict[NamespaceName, FailoverRole]:
        """Return the role of each namespace with its epoch."""

    async def closed_ways(self, cluster: str) -> dict[str, str]:
        """Return the topic-partitions that are not copied from here to a cluster, with the reason and the remedy."""

    async def pending_ways(self, cluster: str) -> dict[str, str]:
        """Return the topic-partitions whose acknowledgements are not exchanged with a cluster, with state and reason.

        Reasons that begin with BEHIND end by themselves.
        """

    async def behind(self, cluster: str) -> int | None:
        """Return the number of messages that wait to be copied to a cluster; None if it is not known."""

    async def look_at_subscriptions(self, before: SubscriptionLook | None) -> SubscriptionLook:
        """Return the subscriptions that are carried, and compare them with the last look."""

    async def fence(self) -> Fence:
        """Close local producers and refuse new ones; lanes and replicators go on."""

    async def renewed_fence(self) -> Fence | None:
        """Return the fence with positions that were read again, if it had a gap since; None if it held."""

    async def release(self) -> None:
        """Take the fence back, so that local producers are served as before."""

    async def promote(self, epoch: int) -> None:
        """Serve local clients from this epoch on."""

    async def redirect(self, epoch: int, url: str) -> None:
        """Send clients to the other site, as far as this kind of cluster can."""

    async def standby(self, epoch: int) -> None:
        """Refuse local producers until the site is promoted."""

    async def close(self) -> None:
        """End a fence that this process holds. The clients stay open."""
