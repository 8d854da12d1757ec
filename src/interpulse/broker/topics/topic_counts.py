"""The number of topics of a namespace, for its limit: counted once, then kept up to date.

The store reports changed records, and the next call reads those again, so a call costs as much as has changed since the
last one. Between a call and the commit that rests on it, others may create topics too. A commit therefore *claims* its
topics, and fails like any lost race if anything was claimed or changed since its count.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from interpulse.broker import metadata_paths as keys
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.storage.api import CommitConflict, MetadataStore, scan_pages

_KEYS_PER_PAGE = 1000


@dataclass(frozen=True, slots=True)
class TopicCount:
    """A number of topics, stored or being stored; system topics do not count. ``state`` is for `claim`."""

    topics: int
    state: int


@dataclass(slots=True)
class _Counted:
    names: set[str] = field(default_factory=set)  # keys of records that count
    touched: set[str] = field(default_factory=set)  # keys of records to read again
    claimed: Counter[str] = field(default_factory=Counter)  # keys of records that are being stored
    state: int = 0  # grows with every change
    listing: asyncio.Lock = field(default_factory=asyncio.Lock)
    listed: bool = False
    unsure: bool = False  # anything may have changed since the listing began


class TopicCounts:
    """Counts of topics, only for namespaces that were asked about."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._counted: dict[str, _Counted] = {}

    async def of(self, namespace: NamespaceName) -> TopicCount:
        """Return the present number of topics."""
        counted = self._counted.get(str(namespace))
        if counted is None:
            if not self._counted:
                self._store.watch(f"{keys.TOPIC_RECORDS}/", self._on_changed)
            counted = self._counted[str(namespace)] = _Counted()
        if not counted.listed:
            async with counted.listing:
                await self._list(namespace, counted)
        await self._look_again(counted)
        coming = sum(key not in counted.names for key in counted.claimed)
        return TopicCount(len(counted.names) + coming, counted.state)

    @contextmanager
    def claim(self, namespace: NamespaceName, topics: Iterable[TopicName], count: TopicCount) -> Iterator[None]:
        """Count these topics while they are being stored. Raise CommitConflict if ``count`` is out of date."""
        counted = self._counted[str(namespace)]
        if counted.state != count.state:
            raise CommitConflict(keys.namespace_records(namespace))
        claimed = Counter(filter(_counts, map(keys.topic_record, topics)))
        counted.claimed += claimed
        counted.state += 1
        try:
            yield
        finally:
            counted.claimed -= claimed
            counted.state += 1

    async def _list(self, namespace: NamespaceName, counted: _Counted) -> None:
        """List all records. Records that change meanwhile are read again afterwards."""
        prefix = f"{keys.topic_records(namespace, PERSISTENT)}/"
        while not counted.listed:  # an earlier caller may have done it
            names: set[str] = set()
            counted.unsure = False
            async for page in scan_pages(self._store, prefix, limit=_KEYS_PER_PAGE):
                names.update(key for key, _ in page if key.find("/", len(prefix)) < 0 and _counts(key))
            counted.names, counted.listed = names, not counted.unsure

    async def _look_again(self, counted: _Counted) -> None:
        while counted.touched:
            touched = sorted(counted.touched)
            stored = await self._store.get_many(touched)
            counted.touched.difference_update(touched)
            counted.names.difference_update(touched)
            counted.names.update(filter(_counts, stored))

    def _on_changed(self, key: str) -> None:
        if key == f"{keys.TOPIC_RECORDS}/":
            for counts in self._counted.values():
                counts.listed, counts.unsure = False, True
                counts.state += 1
        parts = key.split("/", 6)
        counted = self._counted.get("/".join(parts[2:4])) if len(parts) == 6 else None
        if counted is not None:
            counted.touched.add(key)
            counted.state += 1


def _counts(record_key: str) -> bool:
    topic = keys.topic_of_record(record_key)
    return topic is not None and not topic.is_system
