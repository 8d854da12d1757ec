"""Entries of compacted ledgers in Pulsar's form: the id of the message, then the entry as it was published.

Both are preceded by their size in 4 bytes. Source: docs/reference/cluster-protocol.md#compaction.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from google.protobuf.message import DecodeError

from interpulse.model.ids import Position
from interpulse.storage.api import LogEntry
from interpulse.wire import pulsar_api_pb2 as pb

_SIZE: Final = Struct(">I")
_NO_PARTITION: Final = -1


class PulsarCompacted:
    """Pulsar's form of compacted entries. See `interpulse.storage.logs.compacted.CompactedForm`."""

    def pack(self, log_entry: LogEntry) -> bytes:
        ledger, entry = log_entry.position
        message_id = pb.MessageIdData(ledgerId=ledger, entryId=entry, partition=_NO_PARTITION).SerializeToString()
        return b"".join((_SIZE.pack(len(message_id)), message_id, _SIZE.pack(len(log_entry.entry)), log_entry.entry))

    def unpack(self, stored: bytes) -> LogEntry:
        raw_id, start = _sized(stored, 0)
        entry, end = _sized(stored, start)
        if end != len(stored):
            raise ValueError(f"{len(stored) - end} bytes follow the entry")
        try:
            message_id = pb.MessageIdData.FromString(raw_id)
        except DecodeError as error:
            raise ValueError(f"the id of the message cannot be read: {error}") from None
        return LogEntry(Position(message_id.ledgerId, message_id.entryId), entry)


def _sized(stored: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes behind a size, and the offset at which they end."""
    start = at + _SIZE.size
    if start > len(stored):
        raise ValueError(f"it ends after {len(stored)} bytes, before a size")
    end = start + int.from_bytes(stored[at:start], "big")
    if end > len(stored):
        raise ValueError(f"it ends after {len(stored)} bytes and should have {end}")
    return stored[start:end], end
