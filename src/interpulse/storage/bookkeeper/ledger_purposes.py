"""The properties that follow from a ledger's purpose: its quorum, its digest and its custom metadata.

The metadata serve operators' tools, and the search for ledgers that nothing refers to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from interpulse.model.names import decode_local_name
from interpulse.model.policies.messaging_policies import Persistence
from interpulse.storage.bookkeeper.ledger_metadata import Quorum
from interpulse.storage.bookkeeper.packets import DigestType
from interpulse.storage.logs.journal import LedgerPurpose, LedgerUse
from interpulse.wire import pulsar_api_pb2 as pb

_FOR_ALL: Final = {"application": b"pulsar"}


async def _no_policy(log: str) -> Persistence | None:
    return None


class LogQuorums:
    """The quorum of a log: that of its policies, or the default.

    Existing ledgers keep the quorum with which they were created.
    """

    def __init__(self, default: Quorum) -> None:
        self.default = default
        self._policy: Callable[[str], Awaitable[Persistence | None]] = _no_policy

    def follow(self, policy: Callable[[str], Awaitable[Persistence | None]]) -> None:
        """Ask ``policy`` for each new ledger. If it raises, the ledger is not created."""
        self._policy = policy

    async def of(self, log: str) -> Quorum:
        """Return the quorum for the next ledger of a log. Impossible policies count as the default."""
        policy = await self._policy(log)
        if policy is None:
            return self.default
        quorum = Quorum(policy.ensemble, policy.write_quorum, policy.ack_quorum)
        return quorum if quorum.possible else self.default


def custom_metadata(log: str, purpose: LedgerPurpose) -> Mapping[str, bytes]:
    """Return the custom metadata of a ledger, in Pulsar's words.

    Source: docs/reference/cluster-protocol.md#ledger-metadata.
    """
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
    """Return the digest that readers of such a ledger expect, None for the digest of all other ledgers."""
    return DigestType.CRC32 if purpose.use is LedgerUse.COMPACTED else None
