"""What is written down with a ledger about its use, for operators' tools and in search of ledgers that nobody names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.model.names import decode_local_name
from interpulse.storage.bookkeeper.packets import DigestType
from interpulse.storage.journals import LedgerPurpose, LedgerUse
from interpulse.wire import pulsar_api_pb2 as pb

__all__ = ["custom_metadata", "digest_for"]

_FOR_ALL: Final = {"application": b"pulsar"}


def custom_metadata(log: str, purpose: LedgerPurpose) -> Mapping[str, bytes]:
    """Pulsar's words for it. Source: cluster 6.2."""
    if purpose.use is LedgerUse.TOPIC:
        return {"component": b"managed-ledger", "pulsar/managed-ledger": log.encode(), **_FOR_ALL}
    horizon = purpose.horizon
    upto = (
        b""
        if horizon is None
        else pb.MessageIdData(ledgerId=horizon.ledger, entryId=horizon.entry, batch_size=0).SerializeToString()
    )
    return {
        "component": b"compacted-ledger",
        "pulsar/compactedTopic": _topic(log).encode(),
        "pulsar/compactedTo": upto,
        **_FOR_ALL,
    }


def _topic(log: str) -> str:
    tenant, namespace, domain, local_name = log.split("/")
    return f"{domain}://{tenant}/{namespace}/{decode_local_name(local_name)}"


def digest_for(purpose: LedgerPurpose) -> DigestType | None:
    """The digest that readers of such a ledger expect; None = that of all others."""
    return DigestType.CRC32 if purpose.use is LedgerUse.COMPACTED else None
