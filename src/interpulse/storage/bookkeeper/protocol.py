"""The client's end of one connection to a bookie, without IO: requests to bytes, bytes to answers.

Version 2 of the protocol, as Pulsar's brokers speak it. Answers come in no promised order and name the ledger and the
entry, not the request. Invariants:

* every request gets one `Answer`, unless the connection ends before;
* of equal requests the oldest is answered first, which does no harm: they are answered alike, or one of them by a code.

A request carries a ticket, any object of the caller's, which comes back with its answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from struct import Struct, error
from typing import Any, Final, NamedTuple

from interpulse.storage.bookkeeper.errors import BrokenConnection, Code

__all__ = [
    "FRAME_BYTES_MAX",
    "FRAME_OVERHEAD",
    "LAST_ENTRY",
    "Answer",
    "ClientProtocol",
    "Frames",
    "add_frame",
]

LAST_ENTRY: Final = -1
"""Read as an entry's number: the last entry that the bookie has of the ledger."""

FRAME_BYTES_MAX: Final = 64 << 20
"""Longer than bookies can be set to send in practice; a length beyond it is no frame of theirs."""

FRAME_OVERHEAD: Final = 96
"""Bytes that a bookie's limit on frames has to leave beside the payload of an entry."""

_VERSION: Final = 2
_ADD: Final = 1
_READ: Final = 2
_BATCH_READ: Final = 7
_FENCING: Final = 1
_RECOVERY_ADD: Final = 2
_HIGH_PRIORITY: Final = 4

_LENGTH: Final = Struct(">I")
_FRONT: Final = Struct(">II")  # of an add: length, header
_READ_REQUEST: Final = Struct(">IIqq")
_BATCH_REQUEST: Final = Struct(">IIqqqiq")
_ANSWER: Final = Struct(">Iiqq")  # header, code, ledger, entry
_REQUEST_ID: Final = Struct(">q")


class Answer(NamedTuple):
    """What a bookie answered. Packets are there if the code is OK: one of a read, one or more of a batch read."""

    ticket: Any
    code: int
    packets: Sequence[bytes]


def _header(operation: int, flags: int = 0) -> int:
    return _VERSION << 24 | operation << 16 | flags


_ADD_HEADER: Final = _header(_ADD)
_RECOVERY_HEADER: Final = _header(_ADD, _RECOVERY_ADD | _HIGH_PRIORITY)


def add_frame(master_key: bytes, packet: bytes, *, recovery: bool = False) -> bytes:
    """The request to keep a packet; a recovery's is taken also after the ledger was fenced."""
    header = _RECOVERY_HEADER if recovery else _ADD_HEADER
    return _FRONT.pack(4 + len(master_key) + len(packet), header) + master_key + packet


class Frames:
    """Cuts a stream of bytes into the bodies of frames."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def cut(self, raw: bytes) -> Iterator[bytes]:
        """The bodies that are complete with these bytes; raises `BrokenConnection` for a length that cannot be."""
        pending = self._pending
        pending += raw
        begin = 0
        try:
            while len(pending) - begin >= 4:
                (length,) = _LENGTH.unpack_from(pending, begin)
                if not 4 <= length <= FRAME_BYTES_MAX:
                    raise BrokenConnection(f"a frame of {length} bytes; is this a bookie?")
                if len(pending) - begin - 4 < length:
                    return
                begin += 4 + length
                yield bytes(pending[begin - length : begin])
        finally:
            del pending[:begin]


class _Tickets:
    """Tickets by what their requests are about, the older first of equal ones."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, ...], Any] = {}
        self._others: dict[tuple[int, ...], deque[Any]] = {}

    def add(self, about: tuple[int, ...], ticket: Any) -> None:
        if self._first.setdefault(about, ticket) is not ticket:
            self._others.setdefault(about, deque()).append(ticket)

    def take(self, about: tuple[int, ...]) -> Any:
        try:
            ticket = self._first.pop(about)
        except KeyError:
            raise BrokenConnection(f"an answer about {about}, which nothing asked about") from None
        if self._others:
            self._take_other(about)
        return ticket

    def _take_other(self, about: tuple[int, ...]) -> None:
        others = self._others.get(about)
        if others:
            self._first[about] = others.popleft()
            if not others:
                del self._others[about]

    def all(self) -> list[Any]:
        return [*self._first.values(), *(ticket for others in self._others.values() for ticket in others)]

    def __len__(self) -> int:
        return len(self._first) + sum(map(len, self._others.values()))


class ClientProtocol:
    """One connection."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._adds = _Tickets()
        self._reads = _Tickets()
        self._batches = _Tickets()
        self._batch_count = 0

    def add(self, ledger_id: int, entry_id: int, ticket: Any) -> None:
        """Expect the answer to an `add_frame`, which the caller sends."""
        self._adds.add((ledger_id, entry_id), ticket)

    def read(
        self, ledger_id: int, entry_id: int, ticket: Any, *, fence_key: bytes = b"", recovery: bool = False
    ) -> bytes:
        """Ask for an entry.

        With the ledger's master key the bookie fences the ledger before, also if it does not know it.
        """
        self._reads.add((ledger_id, entry_id), ticket)
        flags = (_FENCING if fence_key else 0) | (_HIGH_PRIORITY if recovery else 0)
        return _READ_REQUEST.pack(20 + len(fence_key), _header(_READ, flags), ledger_id, entry_id) + fence_key

    def read_batch(self, ledger_id: int, first: int, ticket: Any, *, count_max: int, bytes_max: int) -> bytes:
        """Ask for an entry and those behind it.

        Bookies before 4.17 do not know this and close the connection.
        """
        self._batch_count += 1
        self._batches.add((ledger_id, first, self._batch_count), ticket)
        header = _header(_BATCH_READ)
        return _BATCH_REQUEST.pack(40, header, ledger_id, first, self._batch_count, count_max, bytes_max)

    def receive(self, raw: bytes) -> Iterator[Answer]:
        """What the bookie answers with these bytes; raises `BrokenConnection` if they are not its protocol."""
        for body in self._frames.cut(raw):
            try:
                yield self._answer(body)
            except error as problem:
                raise BrokenConnection(f"a frame of {len(body)} bytes is too short: {problem}") from None

    def unanswered(self) -> list[Any]:
        """The tickets of all requests that wait, those of one kind in the order of asking."""
        return [*self._adds.all(), *self._reads.all(), *self._batches.all()]

    @property
    def batches_waiting(self) -> int:
        """How many batch reads wait."""
        return len(self._batches)

    def _answer(self, body: bytes) -> Answer:
        header, code, ledger_id, entry_id = _ANSWER.unpack_from(body)
        if header == _ADD_HEADER:
            return Answer(self._adds.take((ledger_id, entry_id)), code, ())
        version, operation = header >> 24, header >> 16 & 0xFF
        if version != _VERSION:
            raise BrokenConnection(f"version {version} of the protocol; this client speaks {_VERSION}")
        if operation == _ADD:
            return Answer(self._adds.take((ledger_id, entry_id)), code, ())
        if operation == _READ:
            packets = [body[_ANSWER.size :]] if code == Code.OK else ()
            return Answer(self._reads.take((ledger_id, entry_id)), code, packets)
        if operation == _BATCH_READ:
            return self._batch_answer(body, code, ledger_id, entry_id)
        raise BrokenConnection(f"an answer to operation {operation}, which was not asked for")

    def _batch_answer(self, body: bytes, code: int, ledger_id: int, first: int) -> Answer:
        (request_id,) = _REQUEST_ID.unpack_from(body, _ANSWER.size)
        packets = []
        at = _ANSWER.size + _REQUEST_ID.size
        while code == Code.OK and at < len(body):
            (length,) = _LENGTH.unpack_from(body, at)
            at += 4 + length
            if at > len(body):
                raise BrokenConnection(f"an entry of {length} bytes that goes beyond its frame")
            packets.append(body[at - length : at])
        return Answer(self._batches.take((ledger_id, first, request_id)), code, packets)
