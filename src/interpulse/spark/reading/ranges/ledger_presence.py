"""Check whether a ledger of a topic-partition still exists."""

from __future__ import annotations

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.session import Session
from interpulse.model.errors import DataLoss
from interpulse.model.ids import Position
from interpulse.model.names import TopicName

__all__ = ["ledger_is_there"]


async def ledger_is_there(session: Session, topic: TopicName, ledger: int, *, upto: Position, prefix: str) -> bool:
    """Return True if an entry of the ledger can be read, so that nothing in or behind it was trimmed.

    Brokers trim whole ledgers, the oldest first. ``upto`` is an entry behind the ledger, or in it, where the look ends.
    """
    reader = EntryReader(
        session,
        topic,
        after=Position(ledger, -1),
        upto=upto,
        buffer_bytes=64 * 1024,
        subscription_prefix=prefix,
        poll_timeout_ms=session.config.operation_timeout_ms,
    )
    async with reader:
        await reader.open()
        try:
            batch = await reader.read_batch()
        except DataLoss:
            return False  # nothing is there at all
    return bool(batch) and batch[0].position.ledger == ledger
