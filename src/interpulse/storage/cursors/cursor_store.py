"""Where cursors are kept: the seam to it, and cursors that are records below the record of their topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from interpulse.model.names import decode_local_name, encode_local_name
from interpulse.storage.api import Change, Delete, MetadataStore, MetadataUnavailable, Put, scan_pages
from interpulse.storage.cursors.cursor_records import JSON_CURSORS, UNREADABLE, CursorCodec, CursorRecord
from interpulse.storage.logs.topic_records import record_key

__all__ = ["CursorStore", "RecordedCursors", "TopicCursors", "cursor_key", "read_cursor_names"]

_CURSORS_PER_PAGE: Final = 100


class TopicCursors(Protocol):
    """The stored cursors of one topic, by name. Its user lets one call follow the other.

    All methods raise MetadataError or PersistenceError if they cannot store or read, and `LogFenced` once another
    process has taken the topic over.
    """

    async def load(self) -> dict[str, CursorRecord]:
        """Every stored cursor, which from now on no earlier owner of the topic can change."""

    async def put(
        self, name: str, record: CursorRecord, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}
    ) -> None:
        """Store a cursor that is new, or of which more changed than what was acknowledged; durable on return.

        ``also`` is stored with it, if ``expect`` holds; raises `CommitConflict` otherwise.
        """

    async def flush(self, records: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        """Store what was acknowledged on these subscriptions; durable on return. ``last``: the topic is being closed.

        One that cannot be stored keeps its earlier state; the first failure is raised when all were tried.
        """

    async def delete(self, name: str, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        """Forget one cursor, with ``also`` and ``expect`` as in `put`."""


class CursorStore(Protocol):
    """The cursors of all topics."""

    def of(self, log_name: str) -> TopicCursors:
        """Those of one topic."""


def cursor_key(log_name: str, cursor: str) -> str:
    """Key of the record of a cursor."""
    return f"{record_key(log_name)}/{encode_local_name(cursor)}"


async def read_cursor_names(metadata: MetadataStore, log_name: str) -> list[str]:
    """The names of all stored cursors of a topic, sorted."""
    return sorted(map(decode_local_name, await metadata.children(record_key(log_name))))


class RecordedCursors:
    """Each cursor is one record, which is written as a whole. See `CursorStore`."""

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
        """All in one commit."""
        puts = [
            Put(cursor_key(self._log_name, name), self._codec.encode(name, record)) for name, record in records.items()
        ]
        if puts:
            await self._metadata.commit(puts)

    async def delete(self, name: str, *, also: Sequence[Change] = (), expect: Mapping[str, int | None] = {}) -> None:
        await self._metadata.commit([*also, Delete(cursor_key(self._log_name, name))], expect)
