"""The compacted ledger of a topic in a cluster: the cursor ``__compaction`` names it, and is positioned at its horizon.

Both are in one record, so that the next owner of the topic reads them together.
Source: docs/reference/cluster-protocol.md#compaction.
"""

from __future__ import annotations

from interpulse.broker.live.topic.subscription_set import SubscriptionSet
from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.ids import Position
from interpulse.storage.api import CompactedLedger
from interpulse.storage.cursors import COMPACTED_LEDGER, COMPACTION_CURSOR, CursorRecord


class CompactionPointer:
    """The pointer; see `interpulse.storage.api.CompactedPointer`."""

    def __init__(self, subscriptions: SubscriptionSet, state: TopicStateStore, stored: CursorRecord | None) -> None:
        """Start from ``stored``, the cursor as it was read."""
        self._subscriptions = subscriptions
        self._state = state
        ledger_id = None if stored is None else stored.numbers.get(COMPACTED_LEDGER)
        self.named: tuple[int, Position] | None = None
        if stored is not None and ledger_id is not None:
            self.named = ledger_id, stored.mark_delete

    async def name(self, ledger: CompactedLedger | None) -> None:
        """Store a new pointer. The cursor changes before the write, so that no older state follows it.

        Raises SubscriptionNotFound, ServiceNotReady if the topic is being closed, MetadataError and PersistenceError.
        """
        subscription = self._subscriptions.get(COMPACTION_CURSOR)
        cursor = subscription.cursor
        mark_delete, numbers = cursor.mark_delete, subscription.numbers
        other = {name: value for name, value in numbers.items() if name != COMPACTED_LEDGER}
        subscription.numbers = other if ledger is None else {**other, COMPACTED_LEDGER: ledger.ledger_id}
        cursor.reset(mark_delete if ledger is None else ledger.horizon)
        record, changes = subscription.take_record()
        try:
            await self._state.write_pointer(COMPACTION_CURSOR, record)
        except BaseException:
            subscription.numbers = numbers
            cursor.reset(mark_delete)
            raise
        subscription.stored_as(changes)
