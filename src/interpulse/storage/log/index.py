"""Where the records of a segment lie: in memory per ledger, and in the index file beside the segment.

The index file is written behind the segment: a chunk of rows follows every group commit, unsynced, since the segment
alone is enough to rebuild it. It makes a restart quick, and it names the ledger of every record, so that a damaged
record is the trouble of one log only. A chunk that says *sealed* is the last one: the segment holds nothing behind it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from interpulse.storage.log.records import RECORD_HEAD

__all__ = ["INDEX_HEAD", "IndexContent", "LedgerRows", "Row", "encode_chunk", "pack_index_head", "parse_index"]

_MAGIC = b"IPIDX\x01\0\0"
_FILE_HEAD = Struct("<8sQ")  # magic with version, segment number
_CHUNK = Struct("<4sIQII")  # magic, rows, bytes of the segment covered so far, flags, checksum of the chunk without it
_CHUNK_MAGIC = b"\xd1IPc"
_SEALED = 1
_ROW_WORDS = 4
_CHECKSUM_BYTES = 4
INDEX_HEAD = _FILE_HEAD.size


class Row(NamedTuple):
    """One record of a segment."""

    ledger_id: int
    first: int
    entries: int
    offset: int
    length: int


class LedgerRows:
    """The records of one ledger in one segment, in compact arrays: 20 bytes per record."""

    __slots__ = ("damaged_at", "end", "firsts", "lengths", "offsets", "size", "verified")

    def __init__(self) -> None:
        self.firsts = array("Q")
        self.offsets = array("Q")
        self.lengths = array("I")
        self.end = 0
        self.size = 0
        self.damaged_at: int | None = None  # offset of the first record known to be lost or damaged
        self.verified = True  # False while nobody has compared the records with their checksums

    @property
    def begin(self) -> int:
        """The first entry of the ledger in this segment."""
        return self.firsts[0]

    def add(self, first: int, entries: int, offset: int, length: int) -> None:
        """Append a record; one that does not follow the last one shows that a record between them is lost."""
        if self.firsts and first != self.end and self.damaged_at is None:
            self.damaged_at = offset
        self.firsts.append(first)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.end = first + entries
        self.size += length - RECORD_HEAD - 4 * entries

    def row_of(self, entry: int) -> int:
        """Which record holds the entry."""
        return bisect_right(self.firsts, entry) - 1

    def row(self, index: int, ledger_id: int) -> Row:
        """A record, as the index knows it."""
        first = self.firsts[index]
        end = self.firsts[index + 1] if index + 1 < len(self.firsts) else self.end
        return Row(ledger_id, first, end - first, self.offsets[index], self.lengths[index])


@dataclass(slots=True)
class IndexContent:
    """What an index file says. ``intact`` is false if something behind the last good chunk is not a chunk."""

    rows: list[Row] = field(default_factory=list)
    covered: int = 0
    sealed: bool = False
    intact: bool = True


def pack_index_head(number: int) -> bytes:
    """The first bytes of the index of segment ``number``."""
    return _FILE_HEAD.pack(_MAGIC, number)


def encode_chunk(rows: Sequence[Row], covered: int, *, sealed: bool = False) -> bytes:
    """Rows for everything between what the last chunk covered and ``covered``."""
    words = array("Q")
    for row in rows:
        words.extend((row.ledger_id, row.first, row.offset, row.entries << 32 | row.length))
    head = _CHUNK.pack(_CHUNK_MAGIC, len(rows), covered, _SEALED if sealed else 0, 0)[:-_CHECKSUM_BYTES]
    body = words.tobytes()
    return head + crc32c(body, crc32c(head)).to_bytes(_CHECKSUM_BYTES, "little") + body


def parse_index(content: bytes, number: int) -> IndexContent:
    """Read chunks up to the first that is damaged, cut off, or not there."""
    index = IndexContent()
    if content[:INDEX_HEAD] != pack_index_head(number):
        index.intact = False
        return index
    offset = INDEX_HEAD
    while offset < len(content) and not index.sealed:
        chunk = _chunk_at(content, offset)
        if chunk is None:
            index.intact = False
            return index
        rows, index.covered, index.sealed, offset = chunk
        index.rows.extend(rows)
    index.intact = offset == len(content)
    return index


def _chunk_at(content: bytes, offset: int) -> tuple[Iterable[Row], int, bool, int] | None:
    if len(content) - offset < _CHUNK.size:
        return None
    magic, count, covered, flags, checksum = _CHUNK.unpack_from(content, offset)
    begin = offset + _CHUNK.size
    end = begin + count * _ROW_WORDS * 8
    if magic != _CHUNK_MAGIC or end > len(content):
        return None
    if crc32c(content[begin:end], crc32c(content[offset : begin - _CHECKSUM_BYTES])) != checksum:
        return None
    words = array("Q", content[begin:end])
    columns = zip(words[0::4], words[1::4], words[2::4], words[3::4], strict=True)
    rows = (Row(ledger, first, last >> 32, at, last & 0xFFFFFFFF) for ledger, first, at, last in columns)
    return rows, covered, bool(flags & _SEALED), end
