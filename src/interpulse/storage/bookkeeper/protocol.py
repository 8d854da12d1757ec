"""The client's end of one connection to a bookie, without IO: requests to bytes, bytes to answers.

Version 2 of the protocol, as Pulsar's brokers use it. Answers come in no fixed order and name the ledger and the entry,
not the request.

Invariants:

* Every request gets one `Answer`, unless the connection ends before.
* Of equal requests the oldest is answered first. That does no harm: they get the same answer, or one of them a code.

A request carries a ticket, any object of the caller, which returns with its answer. Additions are requested in runs
with one ticket. Equal answers in the order of a run return as one `Added`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat
from struct import Struct, error
from typing import Any, Final, NamedTuple

from interpulse.storage.bookkeeper.errors import BrokenConnection, Code

LAST_ENTRY: Final = -1
"""The entry id that reads the last entry of the ledger on the bookie."""

FRAME_BYTES_MAX: Final = 64 << 20
"""More than bookies can be configured to send in practice. A greater length is no frame of a bookie."""

FRAME_OVERHEAD: Final = 96
"""The bytes that a bookie's limit on frames must leave besides the payload of an entry."""

_VERSION: Final = 2
_ADD: Final = 1
_READ: Final = 2
_BATCH_READ: Final = 7
_FENCING: Final = 1
_RECOVERY_ADD: Final = 2
_HIGH_PRIORITY: Final = 4

_LENGTH: Final = Struct(">I")
_FRONT: Final = Struct(">II")  # of an addition: length, header
_READ_REQUEST: Final = Struct(">IIqq")
_BATCH_REQUEST: Final = Struct(">IIqqqiq")
_ANSWER: Final = Struct(">Iiqq")  # header, code, ledger, entry
_REQUEST_ID: Final = Struct(">q")
_ADD_ANSWER: Final = Struct(">Qiqq")  # a whole answer to an addition: front, code, ledger, entry


class Added(NamedTuple):
    """A bookie's answer to additions of consecutive entries."""

    ticket: Any
    code: int
    first: int
    entries: int


class Answer(NamedTuple):
    """A bookie's answer to a read.

    It has packets if the code is OK, possibly several after a batch read. Those of a batch are views of the received
    bytes, so that payloads are copied once.
    """

    ticket: Any
    code: int
    packets: Sequence[bytes | memoryview]


def _header(operation: int, flags: int = 0) -> int:
    return _VERSION << 24 | operation << 16 | flags


_ADD_HEADER: Final = _header(_ADD)
_ADD_ANSWER_FRONT: Final = _ANSWER.size << 32 | _ADD_HEADER  # length, header
_RECOVERY_HEADER: Final = _header(_ADD, _RECOVERY_ADD | _HIGH_PRIORITY)


def add_frame(master_key: bytes, packet: bytes, *, recovery: bool = False) -> bytes:
    """Return the request to add a packet. With ``recovery`` a fenced ledger accepts it too."""
    header = _RECOVERY_HEADER if recovery else _ADD_HEADER
    return _FRONT.pack(4 + len(master_key) + len(packet), header) + master_key + packet


def add_frames(master_key: bytes, fronts: Iterable[bytes], payloads: Sequence[bytes], front_size: int) -> list[bytes]:
    """Return the requests to add packets, each made of a front and a payload; see `Digest.fronts`."""
    sizes = map((4 + len(master_key) + front_size).__add__, map(len, payloads))
    headers = map(_FRONT.pack, sizes, repeat(_ADD_HEADER))
    return list(map(b"".join, zip(headers, repeat(master_key), fronts, payloads, strict=False)))


class Frames:
    """A stream of bytes, cut into the bodies of frames."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of an incomplete frame
        self._size = 0  # bytes in the pieces
        self._needed = 4  # bytes that the pieces must reach: a length, or a whole frame

    def cut(self, raw: bytes) -> Iterator[memoryview]:
        """Yield the bodies that are complete with these bytes. Raise `BrokenConnection` for an impossible length.

        A large frame comes in many pieces, which are joined once.
        """
        self._pieces.append(raw)
        self._size += len(raw)
        if self._size < self._needed:
            return
        whole = raw if len(self._pieces) == 1 else b"".join(self._pieces)
        view, begin = memoryview(whole), 0
        try:
            while len(whole) - begin >= 4:
                (length,) = _LENGTH.unpack_from(whole, begin)
                if not 4 <= length <= FRAME_BYTES_MAX:
                    raise BrokenConnection(f"a frame of {length} bytes; is this a bookie?")
                if len(whole) - begin - 4 < length:
                    self._needed = 4 + length
                    return
                begin += 4 + length
                yield view[begin - length : begin]
            self._needed = 4
        finally:
            self._keep(whole[begin:])

    def take_short(self, size: int) -> bytes:
        """Take back an incomplete frame of fewer than ``size`` bytes, to be cut again with the following bytes."""
        if self._size >= size:
            return b""
        short = b"".join(self._pieces)
        self._needed = 4
        self._keep(b"")
        return short

    @property
    def between(self) -> bool:
        """True if no frame is incomplete."""
        return not self._size

    def _keep(self, rest: bytes) -> None:
        self._pieces = [rest] if rest else []
        self._size = len(rest)


class _Tickets:
    """Tickets by ledger and number; of equal ones the older first."""

    def __init__(self) -> None:
        self._first: dict[int, dict[int, Any]] = {}
        self._others: dict[tuple[int, int], deque[Any]] = {}

    def add(self, ledger_id: int, numbers: Sequence[int], ticket: Any) -> None:
        first = self._first.setdefault(ledger_id, {})
        if len(numbers) > 1 and first.keys().isdisjoint(numbers):
            first.update(dict.fromkeys(numbers, ticket))  # without a step of Python per entry
            return
        for number in numbers:
            if first.setdefault(number, ticket) is not ticket:
                self._others.setdefault((ledger_id, number), deque()).append(ticket)

    def take(self, ledger_id: int, number: int) -> Any:
        (taken, missing) = self.take_run(ledger_id, number, 1)
        if missing:
            raise BrokenConnection(missing)
        return taken[0][0]

    def take_run(self, ledger_id: int, first: int, count: int) -> tuple[list[tuple[Any, int]], str]:
        """Return the tickets of consecutive numbers with their counts, and the problem with the first missing one."""
        numbers = self._first.get(ledger_id, {})
        if count == 1 and first in numbers and not self._others:
            alone = numbers.pop(first)
            if not numbers:
                del self._first[ledger_id]
            return [(alone, 1)], ""
        tickets: list[Any] = []
        problem = ""
        try:
            tickets.extend(map(numbers.pop, range(first, first + count)))  # without a step of Python per entry
        except KeyError as missing:
            problem = f"an answer about {ledger_id}:{missing.args[0]}, which nothing asked about"
        if self._others:
            for number in range(first, first + len(tickets)):
                self._put_other(ledger_id, number)
        if not numbers:
            self._first.pop(ledger_id, None)
        if len(tickets) == 1:
            return [(tickets[0], 1)], problem
        return [(ticket, len(list(alike))) for ticket, alike in groupby(tickets)], problem

    def _put_other(self, ledger_id: int, number: int) -> None:
        others = self._others.get((ledger_id, number))
        if others:
            self._first[ledger_id][number] = others.popleft()
            if not others:
                del self._others[ledger_id, number]

    def all(self) -> list[tuple[int, Any]]:
        """Return all numbers with their tickets."""
        first = [item for numbers in self._first.values() for item in numbers.items()]
        return first + [(number, ticket) for (_, number), others in self._others.items() for ticket in others]

    def clear(self) -> None:
        self._first.clear()
        self._others.clear()

    def __len__(self) -> int:
        return sum(map(len, self._first.values())) + sum(map(len, self._others.values()))


def _answered_alike(raw: bytes) -> tuple[list[tuple[int, int, int, int]], int]:
    """Return the answers to additions at the start of the bytes, and their size.

    Each is ledger, code, first entry and count of consecutive entries. This loop turns once for every entry.
    """
    alike = []
    ledger_id = code = first = after = taken = 0
    whole = len(raw) // _ADD_ANSWER.size * _ADD_ANSWER.size
    for front, said, about, entry_id in _ADD_ANSWER.iter_unpack(memoryview(raw)[:whole]):
        if front != _ADD_ANSWER_FRONT:
            break
        taken += 1
        if entry_id == after and about == ledger_id and said == code:
            after += 1
            continue
        if after > first:
            alike.append((ledger_id, code, first, after - first))
        ledger_id, code, first, after = about, said, entry_id, entry_id + 1
    if after > first:
        alike.append((ledger_id, code, first, after - first))
    return alike, taken * _ADD_ANSWER.size


class ClientProtocol:
    """One connection."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._adds = _Tickets()
        self._reads = _Tickets()
        self._batches = _Tickets()
        self._batch_count = 0

    def add(self, ledger_id: int, entry_ids: Sequence[int], ticket: Any) -> None:
        """Expect the answers to an `add_frame` for each of these entries. The caller sends the frames."""
        self._adds.add(ledger_id, entry_ids, ticket)

    def read(
        self, ledger_id: int, entry_id: int, ticket: Any, *, fence_key: bytes = b"", recovery: bool = False
    ) -> bytes:
        """Return the request to read an entry.

        With ``fence_key``, the ledger's master key, the bookie first fences the ledger, even if it has no entries of
        it.
        """
        self._reads.add(ledger_id, (entry_id,), ticket)
        flags = (_FENCING if fence_key else 0) | (_HIGH_PRIORITY if recovery else 0)
        return _READ_REQUEST.pack(20 + len(fence_key), _header(_READ, flags), ledger_id, entry_id) + fence_key

    def read_batch(self, ledger_id: int, first: int, ticket: Any, *, count_max: int, bytes_max: int) -> bytes:
        """Return the request to read consecutive entries. Bookies before 4.17 close the connection on it."""
        self._batch_count += 1
        self._batches.add(ledger_id, (self._batch_count,), ticket)
        header = _header(_BATCH_READ)
        return _BATCH_REQUEST.pack(40, header, ledger_id, first, self._batch_count, count_max, bytes_max)

    def receive(self, raw: bytes) -> Iterator[Added | Answer]:
        """Yield the answers in these bytes. Raise `BrokenConnection` if they are not a bookie's protocol."""
        if not self._frames.between:
            raw = self._frames.take_short(_ADD_ANSWER.size) + raw
        if self._frames.between:
            alike, taken = _answered_alike(raw)
            raw = raw[taken:]
            for ledger_id, code, begin, answered in alike:
                first = begin
                tickets, problem = self._adds.take_run(ledger_id, begin, answered)
                for ticket, count in tickets:
                    yield Added(ticket, code, first, count)
                    first += count
                if problem:
                    raise BrokenConnection(problem)
        for body in self._frames.cut(raw) if raw else ():
            try:
                yield self._answer(body)
            except error as problem:
                raise BrokenConnection(f"a frame of {len(body)} bytes is too short: {problem}") from None

    def forget(self) -> None:
        """Drop all open requests."""
        for tickets in (self._adds, self._reads, self._batches):
            tickets.clear()

    def unanswered_adds(self) -> list[tuple[int, Any]]:
        """Return the entries and tickets of open additions."""
        return self._adds.all()

    def unanswered_reads(self) -> list[Any]:
        """Return the tickets of open reads."""
        return [ticket for _, ticket in self._reads.all() + self._batches.all()]

    @property
    def batches_waiting(self) -> int:
        """The number of open batch reads."""
        return len(self._batches)

    def _answer(self, body: memoryview) -> Added | Answer:
        header, code, ledger_id, entry_id = _ANSWER.unpack_from(body)
        version, operation = header >> 24, header >> 16 & 0xFF
        if version != _VERSION:
            raise BrokenConnection(f"version {version} of the protocol; this client speaks {_VERSION}")
        if operation == _ADD:
            return Added(self._adds.take(ledger_id, entry_id), code, entry_id, 1)
        if operation == _READ:
            packets = [bytes(body[_ANSWER.size :])] if code == Code.OK else ()
            return Answer(self._reads.take(ledger_id, entry_id), code, packets)
        if operation == _BATCH_READ:
            return self._batch_answer(body, code, ledger_id)
        raise BrokenConnection(f"an answer to operation {operation}, which was not asked for")

    def _batch_answer(self, body: memoryview, code: int, ledger_id: int) -> Answer:
        (request_id,) = _REQUEST_ID.unpack_from(body, _ANSWER.size)
        packets = []
        at = _ANSWER.size + _REQUEST_ID.size
        while code == Code.OK and at < len(body):
            (length,) = _LENGTH.unpack_from(body, at)
            at += 4 + length
            if at > len(body):
                raise BrokenConnection(f"an entry of {length} bytes that goes beyond its frame")
            packets.append(body[at - length : at])
        return Answer(self._batches.take(ledger_id, request_id), code, packets)
