"""Recovery of the segments at start.

A sealed segment is described by its index and not read at all. Of any other segment only the part behind the last index
chunk is read, every record with its checksums:

* A prefix of intact records stays. Some of its records were acknowledged, the others do no harm. It is written once
  more, since its sync may not have finished, and what a consumer has seen must stay.
* The rest is a *torn tail* if it can only belong to the group that was being written: it was never acknowledged and is
  cut off.
* Anything else that is wrong is *damage*. The header of the record, if intact, names its ledger; otherwise the gap in
  the entry ids does. Ledgers that neither clears are considered damaged.

No segment is written to after recovery: every start begins a new one.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from interpulse.storage.api import DataDirectoryUnusable
from interpulse.storage.segments.files import Files
from interpulse.storage.segments.records import (
    SEGMENT_HEAD,
    VERSION,
    DamagedRecord,
    IndexContent,
    LedgerRows,
    RecordHead,
    Row,
    check_body,
    encode_chunk,
    find_record,
    location,
    pack_index_head,
    parse_index,
    parse_record_head,
    segment_head_version,
)
from interpulse.storage.segments.segment_set import Segment, index_path, segment_path

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Scan:
    """The records of a part of a segment: ``damaged`` rows with a wrong body, ``lost`` offsets of unknown records."""

    rows: list[Row] = field(default_factory=list)
    damaged: list[Row] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    end: int = 0

    def add(self, row: Row, intact: bool) -> None:
        self.rows.append(row)
        if not intact:
            self.damaged.append(row)
        self.end = row.offset + row.length


def recover_segments(directory: Path, files: Files) -> list[Segment]:
    """Return all segments of the directory, oldest first. Torn tails are cut, and indexes completed.

    Raise OSError if the disk fails, `DataDirectoryUnusable` if a newer program wrote a segment.
    """
    names = [Path(name) for name in files.names(directory)]
    for name in names:
        if name.suffix == ".tmp":
            files.unlink(directory / name)
    numbers = {int(name.stem) for name in names if name.suffix in (".seg", ".idx") and name.stem.isdecimal()}
    return [_recover(directory, files, number) for number in sorted(numbers)]


def _recover(directory: Path, files: Files, number: int) -> Segment:
    index = _read_index(index_path(directory, number), files, number)
    path = segment_path(directory, number)
    segment = Segment(number, path, size=0, sealed=True)
    try:
        segment.size = _size_of(path, files)
    except FileNotFoundError:
        # A crash while it was created or unlinked leaves its index alone. If a log needs it, the log is damaged.
        _log.info("log segment is missing segment=%s", path)
    _add_indexed(segment, index)
    begin = max(index.covered, SEGMENT_HEAD)
    if not index.sealed and segment.size >= begin:
        _complete(directory, files, segment, index, begin)
    return segment


def _read_index(path: Path, files: Files, number: int) -> IndexContent:
    try:
        with closing(files.open(path)) as file:
            return parse_index(file.read(file.size, 0), number)
    except FileNotFoundError:
        return IndexContent()


def _size_of(path: Path, files: Files) -> int:
    with closing(files.open(path)) as file:
        head, size = file.read(SEGMENT_HEAD, 0), file.size
    version = segment_head_version(head)
    if version is not None and version > VERSION:
        raise DataDirectoryUnusable(str(path.parent), f"{path.name} has format {version}, this program knows {VERSION}")
    if version is None and size > SEGMENT_HEAD:
        _log.error("log segment has a damaged head segment=%s", path)
    return size


def _add_indexed(segment: Segment, index: IndexContent) -> None:
    """Take over the rows of the index. Most of the time of a restart goes here."""
    rows = LedgerRows()
    current = None
    for ledger_id, first, offset, length, entries in index.plain_rows():
        if ledger_id != current:
            current = ledger_id
            rows = segment.rows_of(ledger_id)
            rows.verified = False
        rows.add(first, entries, offset, length)
        if offset + length > segment.size and rows.damaged_at is None:
            rows.damaged_at = offset


def _complete(directory: Path, files: Files, segment: Segment, index: IndexContent, begin: int) -> None:
    """Read the part of the segment that the index does not cover, and seal the segment."""
    with closing(files.open(segment.path)) as file:
        content = file.read(segment.size - begin, begin)
    scan = _scan(content, segment.number, begin)
    for row in scan.rows:
        segment.add(row)
    for row in scan.damaged:
        rows = segment.ledgers[row.ledger_id]
        rows.damaged_at = row.offset if rows.damaged_at is None else min(rows.damaged_at, row.offset)
    segment.mysterious = bool(scan.lost)
    _suspect(segment, scan.lost)
    if scan.end < segment.size:
        _log.info("torn tail cut segment=%s offset=%d bytes=%d", segment.path, scan.end, segment.size - scan.end)
    if content:
        files.rewrite(segment.path, begin, content[: scan.end - begin])
    segment.size = scan.end
    if not scan.damaged and not scan.lost:
        _write_index(directory, files, segment, index.rows + scan.rows)


def _suspect(segment: Segment, lost: list[int]) -> None:
    """Mark ledgers that may have lost records. Only a later record without a gap clears a ledger."""
    for offset in lost:
        _log.error("log records of unknown ledgers are lost segment=%s offset=%d", segment.path, offset)
        for rows in segment.ledgers.values():
            if rows.offsets[-1] < offset and rows.damaged_at is None:
                rows.damaged_at = offset


def _write_index(directory: Path, files: Files, segment: Segment, rows: list[Row]) -> None:
    path = index_path(directory, segment.number)
    draft = path.with_suffix(".tmp")
    try:
        with closing(files.create(draft)) as file:
            file.write(pack_index_head(segment.number) + encode_chunk(rows, segment.size, sealed=True))
            file.sync()
        files.rename(draft, path)
        files.sync_directory(directory)
    except OSError as error:
        # A full disk must not keep the broker from starting; the next start reads this segment again.
        _log.warning("log index not rebuilt segment=%s error=%s", segment.path, error)


def _scan(content: bytes, number: int, begin: int) -> _Scan:
    scan = _Scan(end=begin)
    offset = 0
    while offset < len(content):
        head: RecordHead | None = None
        intact = False
        try:
            head = parse_record_head(content, location(number, begin + offset), offset)
            check_body(head, content, offset)
            intact = True
        except DamagedRecord:
            following = find_record(content, number, begin, offset + 1)
            if not _synced_before_later_group(content, number, begin, offset, following):
                return scan
        if head is None:
            scan.lost.append(begin + offset)
            offset = following
            continue
        scan.add(Row(head.ledger_id, head.first, head.entries, begin + offset, head.length), intact)
        offset += head.length
    return scan


def _synced_before_later_group(content: bytes, number: int, begin: int, offset: int, following: int) -> bool:
    """Return True if a record behind ``offset`` belongs to a later group, so that ``offset`` was on disk."""
    while following >= 0:
        head = parse_record_head(content, location(number, begin + following), following)
        if following - head.group_offset > offset:
            return True
        following = find_record(content, number, begin, following + 1)
    return False
