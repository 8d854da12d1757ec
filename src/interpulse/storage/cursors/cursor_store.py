"""The seam to the store of cursors, and cursors stored as records below the record of their topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from interpulse.model.names import decode_local_name, encode_local_name
from interpulse.storage.api import Change, Delete, MetadataStore, MetadataUnavailable, Put, scan_pages
from interpulse.storage.cursors.cursor_records import JSON_CURSORS, UNREADABLE, CursorCodec, CursorRecord
from interpulse.storage.logs.topic_records import record_key

_CURSORS_PER_PAGE: Final = 100


class TopicCursors(Protocol):
    """The stored cursors of one topic, by name. The caller makes one call at a time.

    All methods raise MetadataError or PersistenceError if they cannot store or read, and `LogFenced` once another
    process has taken over the topic.
    """

    async def load(self) -> dict[str, CursorRecord]:
        """Return every stored cursor. From now on no earlier owner of the topic can change them."""

    async def put(
        self, name: str, record: CursorRecord, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}
    ) -> None:
        """Store a cursor that is new, or whose settings changed; durable on return.

        ``also`` is committed with it under ``expect``. Raise `CommitConflict` if that does not hold.
        """

    async def flush(self, records: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        """Store the acknowledgements of these subscriptions; durable on return. ``last``: the topic is being closed.

        A cursor that cannot be stored keeps its earlier state. The first failure is raised after all were tried.
        """

    async def delete(self, name: str, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        """Delete one cursor; for ``also`` and ``expect`` see `put`."""


class CursorStore(Protocol):
    """The cursors of all topics."""

    def of(self, log_name: str) -> TopicCursors:
        """Return the cursors of one topic."""


def cursor_key(log_name: str, cursor: str) -> str:
    """Return the key of a cursor's record."""
    return f"{record_key(log_name)}/{encode_local_name(cursor)}"


async def read_cursor_names(metadata: MetadataStore, log_name: str) -> list[str]:
    """Return the sorted names of all stored cursors of a topic."""
    return sorted(map(decode_local_name, await metadata.children(record_key(log_name))))


class RecordedCursors:
    """A `CursorStore` with one record per cursor, written as a whole."""

    def __init__(self, metadata: MetadataStore, codec: CursorCodec = JSON_CURSORS) -> None:
        self._metadata = metadata
        self._codec = codec

    def of(self, log_name: str) -> TopicCursors:
        return _TopicCursors(log_name, self._metadata, self._codec)


class _TopicCursors:
    def __init__(self, log_name: str, metadata: MetadataStore, codec: CursorCodec) -> None:
        self._log_name = log_name
        self._metadata = metadata
        self._codec = codec

    async def load(self) -> dict[str, CursorRecord]:
        prefix = f"{record_key(self._log_name)}/"
        cursors: dict[str, CursorRecord] = {}
        async for page in scan_pages(self._metadata, prefix, limit=_CURSORS_PER_PAGE):
            for key, stored in page:
                name = decode_local_name(key.removeprefix(prefix))
                try:
                    cursors[name] = self._codec.decode(name, stored.value)
                except UNREADABLE as error:
                    problem = f"the cursor {name} of {self._log_name} cannot be understood: {error!r}"
                    raise MetadataUnavailable(problem) from error
        return cursors

    async def put(
        self, name: str, record: CursorRecord, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}
    ) -> None:
        put = Put(cursor_key(self._log_name, name), self._codec.encode(name, record))
        await self._metadata.commit([*also, put], expect)

    async def flush(self, records: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        """Store all records in one commit."""
        puts = [
            Put(cursor_key(self._log_name, name), self._codec.encode(name, record)) for name, record in records.items()
        ]
        if puts:
            await self._metadata.commit(puts)

    async def delete(self, name: str, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        await self._metadata.commit([*also, Delete(cursor_key(self._log_name, name))], expect)
