"""The metadata of a ledger in ZooKeeper: its bookies, its digest, and its end.

Values are immutable. A changed record keeps the fields of newer versions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import pairwise
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from interpulse.storage.bookkeeper import bookkeeper_pb2 as pb
from interpulse.storage.bookkeeper.errors import LedgerUnusable
from interpulse.storage.bookkeeper.packets import DigestType

NO_ENTRY_YET: Final = -1

_MAGIC: Final = b"BookieMetadataFormatVersion\t"
_FRONT: Final = _MAGIC + b"3\n"


class LedgerState(IntEnum):
    """The state of a ledger, with the numbers of its record."""

    OPEN = 1
    IN_RECOVERY = 2
    CLOSED = 3


class Quorum(NamedTuple):
    """The distribution of entries: bookies of the ledger, copies of each entry, and copies needed to acknowledge it."""

    ensemble: int
    write: int
    ack: int

    @property
    def possible(self) -> bool:
        """True if these numbers make a valid ledger."""
        return self.ensemble >= self.write >= self.ack >= 1

    def positions(self, entry_id: int) -> tuple[int, ...]:
        """Return the write set of an entry: the slots in the ensemble of the bookies that have it."""
        return tuple((entry_id + offset) % self.ensemble for offset in range(self.write))


class Segment(NamedTuple):
    """The bookies that have the entries from ``first`` on."""

    first: int
    ensemble: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LedgerMetadata:
    """The metadata of one ledger."""

    quorum: Quorum
    segments: tuple[Segment, ...]
    digest: DigestType = DigestType.CRC32C
    password: bytes = b""
    state: LedgerState = LedgerState.OPEN
    last_entry: int = NO_ENTRY_YET
    """The last entry of a closed ledger; -1 if it has none, or is not closed."""
    length: int = 0
    """The bytes of all payloads of a closed ledger."""
    custom: Mapping[str, bytes] = field(default_factory=dict)
    """The purpose of the ledger, for operators' tools."""
    created_ms: int | None = None
    token: int = 0
    """A number by which the creator recognizes its ledger."""
    record: bytes = field(default=b"", compare=False, repr=False)
    """The record from which this was read or changed."""

    @property
    def closed(self) -> bool:
        """True if the last entry is final."""
        return self.state is LedgerState.CLOSED

    @property
    def last_segment(self) -> Segment:
        """The segment in which an open ledger grows."""
        return self.segments[-1]

    def segment_of(self, entry_id: int) -> Segment:
        """Return the segment of an entry."""
        return self.segments[max(bisect_right([segment.first for segment in self.segments], entry_id) - 1, 0)]

    def bookies_of(self, entry_id: int) -> tuple[str, ...]:
        """Return the bookies that have an entry, in the order of its write set."""
        ensemble = self.segment_of(entry_id).ensemble
        return tuple(ensemble[position] for position in self.quorum.positions(entry_id))

    def recovering(self) -> LedgerMetadata:
        """Return the ledger in recovery, which its writer can no longer change."""
        return replace(self, state=LedgerState.IN_RECOVERY)

    def closed_at(self, last_entry: int, length: int) -> LedgerMetadata:
        """Return the ledger closed at its end."""
        return replace(self, state=LedgerState.CLOSED, last_entry=last_entry, length=length)

    def with_ensemble(self, first: int, ensemble: tuple[str, ...]) -> LedgerMetadata:
        """Return the ledger with these bookies for the entries from ``first`` on."""
        earlier = self.segments[:-1] if self.last_segment.first == first else self.segments
        return replace(self, segments=(*earlier, Segment(first, ensemble)))


def encode_metadata(ledger: LedgerMetadata) -> bytes:
    """Encode the value of the ledger's node."""
    message = pb.LedgerMetadataFormat.FromString(ledger.record) if ledger.record else _new_message(ledger)
    message.length = ledger.length
    message.lastEntryId = ledger.last_entry
    message.state = pb.LedgerMetadataFormat.State.ValueType(ledger.state)
    _put_segments(message, ledger.segments)
    body = message.SerializeToString(deterministic=True)
    return _FRONT + _varint(len(body)) + body


def _new_message(ledger: LedgerMetadata) -> pb.LedgerMetadataFormat:
    message = pb.LedgerMetadataFormat(
        quorumSize=ledger.quorum.write,
        ensembleSize=ledger.quorum.ensemble,
        ackQuorumSize=ledger.quorum.ack,
        digestType=pb.LedgerMetadataFormat.DigestType.ValueType(ledger.digest),
        password=ledger.password,
        cToken=ledger.token,
    )
    if ledger.created_ms is not None:
        message.ctime = ledger.created_ms
    for key, value in ledger.custom.items():
        message.customMetadata.add(key=key, value=value)
    return message


def _put_segments(message: pb.LedgerMetadataFormat, segments: tuple[Segment, ...]) -> None:
    stored = [_segment(segment) for segment in message.segment]
    same = 0
    while same < min(len(stored), len(segments)) and stored[same] == segments[same]:
        same += 1
    del message.segment[same:]
    for segment in segments[same:]:
        message.segment.add(ensembleMember=segment.ensemble, firstEntryId=segment.first)


def decode_metadata(ledger_id: int, value: bytes) -> LedgerMetadata:
    """Decode the value of a ledger's node. Raise `LedgerUnusable` if this client cannot read it."""
    if not value.startswith(_FRONT):
        raise LedgerUnusable(ledger_id, _format_problem(value))
    start, size = _read_varint(value, len(_FRONT))
    if size != len(value) - start:
        raise LedgerUnusable(ledger_id, f"its metadata have {len(value) - start} bytes and should have {size}")
    try:
        message = pb.LedgerMetadataFormat.FromString(value[start:])
        ledger = _ledger(message, value[start:])
    except (DecodeError, ValueError) as error:
        raise LedgerUnusable(ledger_id, f"its metadata cannot be read: {error}") from None
    problem = _problem(ledger)
    if problem:
        raise LedgerUnusable(ledger_id, problem)
    return ledger


def _ledger(message: pb.LedgerMetadataFormat, record: bytes) -> LedgerMetadata:
    ack = message.ackQuorumSize if message.HasField("ackQuorumSize") else message.quorumSize
    return LedgerMetadata(
        Quorum(message.ensembleSize, message.quorumSize, ack),
        tuple(_segment(segment) for segment in message.segment),
        DigestType(message.digestType),
        message.password,
        LedgerState(message.state),
        message.lastEntryId if message.HasField("lastEntryId") else NO_ENTRY_YET,
        message.length,
        {pair.key: pair.value for pair in message.customMetadata},
        message.ctime if message.HasField("ctime") else None,
        message.cToken,
        record,
    )


def _segment(message: pb.LedgerMetadataFormat.Segment) -> Segment:
    return Segment(message.firstEntryId, tuple(message.ensembleMember))


def _format_problem(value: bytes) -> str:
    if not value.startswith(_MAGIC):
        return "its node holds no ledger metadata"
    version = value[len(_MAGIC) :].partition(b"\n")[0][:20].decode(errors="replace")
    return f"its metadata have version {version}; only version 3 is supported"


def _problem(ledger: LedgerMetadata) -> str:
    """Return the defect of a decoded record, empty if there is none."""
    firsts = [segment.first for segment in ledger.segments]
    if not ledger.quorum.possible:
        return "its quorums {}/{}/{} are impossible".format(*ledger.quorum)
    if not firsts or firsts[0] != 0 or any(after <= before for before, after in pairwise(firsts)):
        return f"its segments begin at {firsts or 'nothing'}"
    if any(len(segment.ensemble) != ledger.quorum.ensemble for segment in ledger.segments):
        return f"a segment does not have {ledger.quorum.ensemble} bookies"
    return ""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    number = 0
    for count, octet in enumerate(raw[at : at + 5]):
        number |= (octet & 0x7F) << 7 * count
        if octet < 0x80:
            return at + count + 1, number
    return at, -1
