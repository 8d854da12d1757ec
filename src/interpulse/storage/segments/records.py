"""The bytes of a segment file: its head, and its records. See docs/on-disk-format.md.

A record holds consecutive entries of one ledger, written by one group commit. Its header has a checksum of its own, so
that a reader that lost its position finds the next record, and one for the body. ``group_offset`` is the distance of
the record from the start of its group: everything before that start was synced before this record was written. The
header's checksum starts from the record's location, so a copy of a record inside an entry is not taken for a record.
"""

from __future__ import annotations

from bisect import bisect_right
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
