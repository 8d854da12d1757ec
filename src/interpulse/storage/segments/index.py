"""The positions of a segment's records: in memory per ledger, and in the index file beside the segment.

The index file is written behind the segment: a chunk of rows follows every group commit, unsynced, since the segment
alone suffices to rebuild it. It makes a restart fast, and it names the ledger of every record, so that a damaged record
affects only one log. A chunk marked *sealed* is the last one: the segment holds nothing behind it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from interpulse.storage.segments.records import RECORD_HEAD

_MAGIC = b"IPIDX\x01\0\0"
_FILE_HEAD = Struct("<8sQ")  # magic with version, segment number
_CHUNK = Struct("<4sIIQI")  # magic, checksum of the rest, rows, bytes of the segment covered so far, flags
_CHUNK_REST = Struct("<IQI")
_CHUNK_MAGIC = b"\xd1IPc"
_SEALED = 1
_ROW = Struct("<QQQII")  # ledger, first entry, offset, length, entries
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
        self.verified = True  # False until the records were compared with their checksums

    @property
    def begin(self) -> int:
        """The first entry of the ledger in this segment."""
        return self.firsts[0]

    def add(self, first: int, entries: int, offset: int, length: int) -> None:
        """Append a record. A gap before it shows that a record is lost."""
        if self.firsts and first != self.end and self.damaged_at is None:
            self.damaged_at = offset
        self.firsts.append(first)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.end = first + entries
        self.size += length - RECORD_HEAD - 4 * entries

    def row_of(self, entry: int) -> int:
        """Return the index of the record that holds the entry."""
        return bisect_right(self.firsts, entry) - 1

    def row(self, index: int, ledger_id: int) -> Row:
        """Return a record as the index describes it."""
        first = self.firsts[index]
        end = self.firsts[index + 1] if index + 1 < len(self.firsts) else self.end
        return Row(ledger_id, first, end - first, self.offsets[index], self.lengths[index])


@dataclass(slots=True)
class IndexContent:
    """The content of an index file, up to its last valid chunk."""

    content: bytes = b""
    covered: int = 0
    sealed: bool = False

    @property
    def rows(self) -> list[Row]:
        """All records, in the order of the segment."""
        return [Row(ledger, first, n, offset, length) for ledger, first, offset, length, n in self.plain_rows()]

    def plain_rows(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield each row as a tuple: ledger, first entry, offset, length, entries. Cheaper than `Row` objects."""
        return _ROW.iter_unpack(self.content)


def pack_index_head(number: int) -> bytes:
    """Return the first bytes of the index of segment ``number``."""
    return _FILE_HEAD.pack(_MAGIC, number)


def encode_chunk(rows: Sequence[Row], covered: int, *, sealed: bool = False) -> bytes:
    """Encode rows for everything between the end of the last chunk and ``covered``."""
    body = b"".join(_ROW.pack(row.ledger_id, row.first, row.offset, row.length, row.entries) for row in rows)
    rest = _CHUNK_REST.pack(len(rows), covered, _SEALED if sealed else 0) + body
    return _CHUNK_MAGIC + crc32c(rest).to_bytes(4, "little") + rest


def parse_index(content: bytes, number: int) -> IndexContent:
    """Parse chunks up to the first that is damaged, cut off or missing."""
    index = IndexContent()
    if content[:INDEX_HEAD] != pack_index_head(number):
        return index
    view = memoryview(content)
    bodies = bytearray()
    offset = INDEX_HEAD
    while len(content) - offset >= _CHUNK.size and not index.sealed:
        magic, checksum, count, covered, flags = _CHUNK.unpack_from(content, offset)
        end = offset + _CHUNK.size + count * _ROW.size
        if magic != _CHUNK_MAGIC or end > len(content) or crc32c(view[offset + 8 : end]) != checksum:
            break
        bodies += view[offset + _CHUNK.size : end]
        index.covered, index.sealed, offset = covered, flags == _SEALED, end
    index.content = bytes(bodies)
    return index
