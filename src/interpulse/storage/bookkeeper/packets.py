"""An entry as bookies store it: its ids, the last acknowledged entry at that time, a digest, and its payload.

Bookies neither check nor change a packet: the writer computes the digest, and readers check it.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import repeat, tee
from struct import Struct, error
from typing import Final, NamedTuple

from interpulse.storage.bookkeeper.errors import WrongDigest
from interpulse.wire.checksum import crc32c

_HEAD: Final = Struct(">qqqq")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")
PACKET_OVERHEAD_MAX: Final = 52
"""The most bytes of a packet besides its payload: those with the longest digest."""


class DigestType(IntEnum):
    """The kinds of digests, with the numbers of the ledger metadata."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


class Packet(NamedTuple):
    """An entry that was read and checked."""

    ledger_id: int
    entry_id: int
    last_confirmed: int
    """The last entry that its writer knew to be acknowledged, with all before it, when it sent this one."""
    length: int
    """The bytes of all payloads up to and including this one."""
    payload: bytes


_Pieces = Sequence[bytes]


_DigestOf = Callable[[bytes, bytes], bytes]
_DigestsOf = Callable[[_Pieces, Iterable[bytes]], Iterator[bytes]]


def _crc32c_of(head: bytes, payload: bytes) -> bytes:
    return _U32.pack(crc32c(payload, crc32c(head)))


def _crc32_of(head: bytes, payload: bytes) -> bytes:
    return _U64.pack(zlib.crc32(payload, zlib.crc32(head)))


def _no_digest(head: bytes, payload: bytes) -> bytes:
    return b""


def _crc32c(heads: _Pieces, payloads: Iterable[bytes]) -> Iterator[bytes]:
    return map(_U32.pack, map(crc32c, payloads, map(crc32c, heads)))


def _crc32(heads: _Pieces, payloads: Iterable[bytes]) -> Iterator[bytes]:
    return map(_U64.pack, map(zlib.crc32, payloads, map(zlib.crc32, heads)))


def _no_digests(heads: _Pieces, payloads: Iterable[bytes]) -> Iterator[bytes]:
    return repeat(b"", len(heads))


_CHECKSUMS: Final[Mapping[DigestType, tuple[_DigestOf, _DigestsOf, int]]] = {
    DigestType.CRC32: (_crc32_of, _crc32, 8),
    DigestType.CRC32C: (_crc32c_of, _crc32c, 4),
    DigestType.DUMMY: (_no_digest, _no_digests, 0),
}
"""The digest of one packet, the digests of many, and the size of one."""


class Digest:
    """Seals and opens the packets of ledgers with one kind of digest and one password."""

    __slots__ = ("_digest_of", "_digests", "_size", "kind", "master_key")

    def __init__(self, kind: DigestType, password: bytes = b"") -> None:
        self.kind = kind
        self.master_key = hashlib.sha1(b"ledger" + password).digest()
        """The key that bookies ask for before they add an entry to the ledger, or fence it."""
        self._digest_of: _DigestOf
        self._digests: _DigestsOf
        if kind is DigestType.HMAC:
            key = hashlib.sha1(b"mac" + password).digest()
            self._digest_of = lambda head, payload: hmac.digest(key, head + payload, "sha1")
            self._digests = lambda heads, payloads: map(self._digest_of, heads, payloads)
            self._size = 20
        else:
            self._digest_of, self._digests, self._size = _CHECKSUMS[kind]

    @property
    def front_size(self) -> int:
        """The number of bytes before the payload of a packet."""
        return _HEAD.size + self._size

    def seal(self, ledger_id: int, entry_id: int, last_confirmed: int, length: int, payload: bytes) -> bytes:
        """Return the bytes of a packet."""
        head = _HEAD.pack(ledger_id, entry_id, last_confirmed, length)
        return head + self._digest_of(head, payload) + payload

    def fronts(
        self, ledger_id: int, first: int, last_confirmed: int, lengths: Sequence[int], payloads: _Pieces
    ) -> Iterator[bytes]:
        """Return the bytes before the payload, for the packets of consecutive entries.

        One pass without a step of Python per entry, since every entry passes here.
        """
        numbers = range(first, first + len(payloads))
        heads = list(map(_HEAD.pack, repeat(ledger_id), numbers, repeat(last_confirmed), lengths))
        return map(bytes.__add__, heads, self._digests(heads, payloads))

    def open(self, raw: bytes | memoryview, ledger_id: int, entry_id: int | None = None) -> Packet:
        """Open a packet of this ledger, and of this entry unless it is None. Raise `WrongDigest`."""
        start = self.front_size
        if len(raw) < start:
            raise WrongDigest(f"a packet of {len(raw)} bytes, {start} are the least")
        head, payload = bytes(raw[: _HEAD.size]), bytes(raw[start:])
        if self._digest_of(head, payload) != raw[_HEAD.size : start]:
            raise WrongDigest(f"the {self.kind.name} of the entry is another than that of its bytes")
        ledger, entry, last_confirmed, length = _HEAD.unpack(head)
        if ledger != ledger_id or entry_id not in (None, entry):
            raise WrongDigest(f"the entry is {ledger}:{entry}, not the one that was asked for")
        return Packet(ledger, entry, last_confirmed, length, payload)

    def open_run(self, raws: Sequence[bytes | memoryview], ledger_id: int, first: int) -> list[bytes] | None:
        """Return the payloads if all packets are intact and consecutive, else None; `open` then finds the defect."""
        start = self.front_size
        fronts = [bytes(raw[:start]) for raw in raws]
        heads = [front[: _HEAD.size] for front in fronts]
        expected = zip(repeat(ledger_id), range(first, first + len(raws)), strict=False)
        try:
            in_place = [numbers[:2] for numbers in map(_HEAD.unpack, heads)] == list(expected)
        except error:
            return None  # too short
        # Each copy is digested while it is still in the processor's cache.
        copies, again = tee(map(bytes, [raw[start:] for raw in raws]))
        sealed = map(bytes.__add__, heads, self._digests(heads, again))
        payloads = [payload for payload, front, seal in zip(copies, fronts, sealed, strict=True) if front == seal]
        return payloads if in_place and len(payloads) == len(raws) else None


@lru_cache(maxsize=100)
def digest_of(kind: DigestType, password: bytes) -> Digest:
    """Return the shared digest of this kind and password."""
    return Digest(kind, password)
