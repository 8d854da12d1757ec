"""The records of BookKeeper in ZooKeeper: ledgers, their paths and purposes, and the addresses of bookies.

Values are immutable. A changed record keeps the fields of newer versions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import pairwise
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from interpulse.model.names import decode_local_name
from interpulse.model.policies.policy_records import Persistence
from interpulse.storage.bookkeeper import bookkeeper_pb2 as pb
from interpulse.storage.bookkeeper.errors import LedgerUnusable
from interpulse.storage.bookkeeper.packets import DigestType
from interpulse.storage.logs.journal import LedgerPurpose, LedgerUse
from interpulse.wire.pulsar_api_pb2 import MessageIdData

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


LEDGERS: Final = "/ledgers"
AVAILABLE: Final = f"{LEDGERS}/available"
READ_ONLY: Final = f"{AVAILABLE}/readonly"
LAYOUT: Final = f"{LEDGERS}/LAYOUT"
ID_PREFIX: Final = f"{LEDGERS}/idgen/ID-"

LEDGER_ID_MAX: Final = 2**31 - 2
"""Greater ids come from another counter and have longer paths. Such ledgers are read, but not created."""

_SHORT: Final = (2, 4, 4)
_LONG: Final = (3, 4, 4, 4, 4)


def path_of(ledger_id: int) -> str:
    """Return the path of a ledger's metadata."""
    widths = _SHORT if ledger_id <= LEDGER_ID_MAX else _LONG
    digits = f"{ledger_id:0{sum(widths)}d}"
    parts = []
    for width in widths:
        parts.append(digits[:width])
        digits = digits[width:]
    return "/".join((LEDGERS, *parts[:-1], f"L{parts[-1]}"))


def id_of(path: str) -> int | None:
    """Return the ledger with metadata at this path, None for other paths."""
    front, _, last = path.removeprefix(f"{LEDGERS}/").rpartition("/L")
    digits = front.replace("/", "") + last
    if not (digits.isascii() and digits.isdecimal()):
        return None
    return int(digits) if path_of(int(digits)) == path else None


_FOR_ALL: Final = {"application": b"pulsar"}


class LogQuorums:
    """The quorum of a log: that of its policies, or the default.

    Existing ledgers keep the quorum with which they were created.
    """

    def __init__(self, default: Quorum) -> None:
        self.default = default
        self._policy: Callable[[str], Awaitable[Persistence | None]] | None = None

    def follow(self, policy: Callable[[str], Awaitable[Persistence | None]]) -> None:
        """Ask ``policy`` for each new ledger. If it raises, the ledger is not created."""
        self._policy = policy

    async def of(self, log: str) -> Quorum:
        """Return the quorum for the next ledger of a log. Impossible policies count as the default."""
        policy = await self._policy(log) if self._policy else None
        quorum = Quorum(policy.ensemble, policy.write_quorum, policy.ack_quorum) if policy else self.default
        return quorum if quorum.possible else self.default


def custom_metadata(log: str, purpose: LedgerPurpose) -> Mapping[str, bytes]:
    """Return the custom metadata of a ledger, in Pulsar's words.

    Source: docs/reference/cluster-protocol.md#ledger-metadata.
    """
    if purpose.use is LedgerUse.TOPIC:
        return {"component": b"managed-ledger", "pulsar/managed-ledger": log.encode(), **_FOR_ALL}
    tenant, namespace, domain, local_name = log.split("/")
    upto = b""
    if purpose.horizon is not None:
        ledger, entry = purpose.horizon
        upto = MessageIdData(ledgerId=ledger, entryId=entry, batch_size=0).SerializeToString()
    return {
        "component": b"compacted-ledger",
        "pulsar/compactedTopic": f"{domain}://{tenant}/{namespace}/{decode_local_name(local_name)}".encode(),
        "pulsar/compactedTo": upto,
        **_FOR_ALL,
    }


def digest_for(purpose: LedgerPurpose) -> DigestType | None:
    """Return the digest that readers of such a ledger expect, None for the digest of all other ledgers."""
    return DigestType.CRC32 if purpose.use is LedgerUse.COMPACTED else None


_PROTOCOL = "bookie-rpc"


class Address(NamedTuple):
    """Host and port of a bookie."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def registered_address(bookie_id: str, value: bytes) -> Address | None:
    """Return the address in a registered value. Older bookies register none; their id is the address."""
    try:
        endpoints = pb.BookieServiceInfoFormat.FromString(value).endpoints
    except DecodeError:
        return parse_address(bookie_id)
    for endpoint in endpoints:
        if endpoint.protocol == _PROTOCOL:
            return Address(endpoint.host, endpoint.port)
    return parse_address(bookie_id)


def parse_address(bookie_id: str) -> Address | None:
    """Return the address that a bookie's id is, None if the id is another kind of name."""
    host, _, port = bookie_id.rpartition(":")
    return Address(host, int(port)) if host and port.isascii() and port.isdecimal() and int(port) < 65536 else None
