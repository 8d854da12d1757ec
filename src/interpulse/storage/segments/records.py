"""The bytes of a segment: its head and records, and the index file beside it. See docs/on-disk-format.md.

A record holds consecutive entries of one ledger, written by one group commit. Its header has a checksum of its own, so
that a reader that lost its position finds the next record, and one for the body. ``group_offset`` is the distance of
the record from the start of its group: everything before that start was synced before this record was written. The
header's checksum starts from the record's location, so a copy of a record inside an entry is not taken for a record.

The index file is written behind the segment: a chunk of rows follows every group commit, unsynced, since the segment
alone suffices to rebuild it. It makes a restart fast, and it names the ledger of every record, so that a damaged record
affects only one log. A chunk marked *sealed* is the last one: the segment holds nothing behind it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from struct import Struct, pack, unpack_from
from typing import NamedTuple

from crc32c import crc32c

from interpulse.storage.logs.journal import Run

VERSION = 1
_SEGMENT_MAGIC = b"IPSEG"
_RECORD_MAGIC = b"\xd1IPr"  # not text, so that it is rare in entries
_SEGMENT = Struct("<5sBHQI")  # magic, version, zero, number, checksum of the 16 bytes before it
_HEAD = Struct("<4sQQIIII")  # magic, ledger, first entry, entries, body length, group offset, body checksum
_CHECKSUM = Struct("<I")
SEGMENT_HEAD = _SEGMENT.size
RECORD_HEAD = _HEAD.size + _CHECKSUM.size
BODY_BYTES_MAX = 64 * 1024  # runs are cut into records of this size, the least that one read must check


class DamagedRecord(Exception):
    """The bytes are not the record that was written."""


class RecordHead(NamedTuple):
    """The header of a record."""

    ledger_id: int
    first: int
    entries: int
    body_length: int
    group_offset: int
    body_checksum: int

    @property
    def length(self) -> int:
        """The size of the whole record."""
        return RECORD_HEAD + self.body_length


def pack_segment_head(number: int) -> bytes:
    """Return the first bytes of segment ``number``."""
    head = _SEGMENT.pack(_SEGMENT_MAGIC, VERSION, 0, number, 0)[: -_CHECKSUM.size]
    return head + _CHECKSUM.pack(crc32c(head))


def segment_head_version(content: bytes) -> int | None:
    """Return the format version, None if this is not the head of a segment."""
    if len(content) < SEGMENT_HEAD:
        return None
    magic, version, _, _, checksum = _SEGMENT.unpack_from(content)
    intact = magic == _SEGMENT_MAGIC and checksum == crc32c(content[: SEGMENT_HEAD - _CHECKSUM.size])
    return int(version) if intact else None


def split_run(run: Run) -> list[Run]:
    """Cut a run into parts for records of bounded size. An entry above the bound gets its own record."""
    ends = list(accumulate(map(len, run.entries)))
    if ends[-1] <= BODY_BYTES_MAX:
        return [run]
    parts, begin, written = [], 0, 0
    while begin < len(ends):
        end = max(begin + 1, bisect_right(ends, written + BODY_BYTES_MAX))
        parts.append(Run(run.ledger_id, run.first + begin, run.entries[begin:end]))
        begin, written = end, ends[end - 1]
    return parts


def location(number: int, offset: int) -> int:
    """Return the initial header checksum of a record at ``offset`` of segment ``number``."""
    return (number * 0x9E3779B1 + offset) & 0xFFFFFFFF


def encode_record(run: Run, group_offset: int, at: int) -> tuple[bytes, bytes, bytes]:
    """Return header, entry lengths and entries of a record. ``at`` is its `location`."""
    table = pack(f"<{len(run.entries)}I", *map(len, run.entries))
    entries = b"".join(run.entries)
    head = _HEAD.pack(
        _RECORD_MAGIC,
        run.ledger_id,
        run.first,
        len(run.entries),
        len(table) + len(entries),
        group_offset,
        crc32c(entries, crc32c(table)),
    )
    return head + _CHECKSUM.pack(crc32c(head, at)), table, entries


def parse_record_head(content: bytes, at: int, offset: int = 0) -> RecordHead:
    """Parse the header at ``offset`` of ``content``. ``at`` is its `location`. Raise `DamagedRecord`."""
    if len(content) - offset < RECORD_HEAD:
        raise DamagedRecord("the record is cut off")
    magic, *fields = _HEAD.unpack_from(content, offset)
    if magic != _RECORD_MAGIC:
        raise DamagedRecord("no record begins here")
    (checksum,) = _CHECKSUM.unpack_from(content, offset + _HEAD.size)
    if checksum != crc32c(content[offset : offset + _HEAD.size], at):
        raise DamagedRecord("the checksum of the record header is wrong")
    head = RecordHead(*fields)
    if not 0 < 4 * head.entries <= head.body_length:
        raise DamagedRecord("the record header contradicts itself")
    return head


def check_body(head: RecordHead, content: bytes, offset: int = 0) -> None:
    """Raise `DamagedRecord` unless the record at ``offset`` is complete and its checksum right."""
    body = memoryview(content)[offset + RECORD_HEAD : offset + head.length]
    if len(body) < head.body_length:
        raise DamagedRecord("the record is cut off")
    if crc32c(body) != head.body_checksum:
        raise DamagedRecord("the checksum of the entries is wrong")


def parse_entries(head: RecordHead, content: bytes, skip: int, count: int) -> list[bytes]:
    """Return entries ``skip`` to ``skip + count`` of a record whose body was checked."""
    table = unpack_from(f"<{head.entries}I", content, RECORD_HEAD)
    begin = RECORD_HEAD + 4 * head.entries
    if begin + sum(table) != head.length:
        raise DamagedRecord("the lengths of the entries do not fit the record")
    ends = list(accumulate(table[: skip + count], initial=begin))[skip:]
    return [content[low:high] for low, high in pairwise(ends)]


def find_record(content: bytes, number: int, begin: int, offset: int) -> int:
    """Return the offset of the next intact header at or after ``offset``, -1 if there is none.

    ``content`` begins at byte ``begin`` of segment ``number``.
    """
    while (offset := content.find(_RECORD_MAGIC, offset)) >= 0:
        try:
            parse_record_head(content, location(number, begin + offset), offset)
        except DamagedRecord:
            offset += 1
        else:
            return offset
    return -1


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
