"""An entry as bookies keep it: where it belongs, what was acknowledged when it was sent, a digest, and its payload.

Bookies neither check nor change a packet: the digest is made by the writer, and checked by readers.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from interpulse.storage.bookkeeper.errors import WrongDigest
from interpulse.wire.checksum import crc32c

__all__ = ["PACKET_OVERHEAD_MAX", "Digest", "DigestType", "Packet"]

_HEAD: Final = Struct(">qqqq")
PACKET_OVERHEAD_MAX: Final = 52
"""Bytes of a packet beside its payload, with the longest digest."""


class DigestType(IntEnum):
    """How the entries of a ledger are guarded; the numbers are those of its metadata."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


class Packet(NamedTuple):
    """An entry, read and found whole."""

    ledger_id: int
    entry_id: int
    last_confirmed: int
    """The last entry of which its writer knew, when sending this one, that it and all before it are acknowledged."""
    length: int
    """The bytes of all payloads up to this one, which is included."""
    payload: bytes


def _crc32c(head: bytes, payload: bytes) -> bytes:
    value: int = crc32c(payload, crc32c(head))
    return value.to_bytes(4, "big")


def _crc32(head: bytes, payload: bytes) -> bytes:
    return zlib.crc32(payload, zlib.crc32(head)).to_bytes(8, "big")


def _no_digest(head: bytes, payload: bytes) -> bytes:
    return b""


_CHECKSUMS: Final = {
    DigestType.CRC32: (_crc32, 8),
    DigestType.CRC32C: (_crc32c, 4),
    DigestType.DUMMY: (_no_digest, 0),
}


class Digest:
    """Seals and opens the packets of one ledger."""

    __slots__ = ("_compute", "_size", "kind", "master_key")

    def __init__(self, kind: DigestType, password: bytes = b"") -> None:
        self.kind = kind
        self.master_key = hashlib.sha1(b"ledger" + password).digest()
        """What bookies ask for before they take entries of the ledger, or fence it."""
        self._compute: Callable[[bytes, bytes], bytes]
        if kind is DigestType.HMAC:
            key = hashlib.sha1(b"mac" + password).digest()
            self._compute, self._size = lambda head, payload: hmac.digest(key, head + payload, "sha1"), 20
        else:
            self._compute, self._size = _CHECKSUMS[kind]

    def seal(self, ledger_id: int, entry_id: int, last_confirmed: int, length: int, payload: bytes) -> bytes:
        """The bytes of a packet."""
        head = _HEAD.pack(ledger_id, entry_id, last_confirmed, length)
        return head + self._compute(head, payload) + payload

    def open(self, raw: bytes, ledger_id: int, entry_id: int | None = None) -> Packet:
        """The packet of these bytes, of this ledger and entry, or of any entry; raises `WrongDigest`."""
        start = _HEAD.size + self._size
        if len(raw) < start:
            raise WrongDigest(f"a packet of {len(raw)} bytes, {start} are the least")
        head, payload = raw[: _HEAD.size], raw[start:]
        if self._compute(head, payload) != raw[_HEAD.size : start]:
            raise WrongDigest(f"the {self.kind.name} of the entry is another than that of its bytes")
        ledger, entry, last_confirmed, length = _HEAD.unpack(head)
        if ledger != ledger_id or entry_id not in (None, entry):
            raise WrongDigest(f"the entry is {ledger}:{entry}, not the one that was asked for")
        return Packet(ledger, entry, last_confirmed, length, payload)
