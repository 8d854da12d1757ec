"""The part of a log that may be trimmed. Pure.

A ledger is trimmed as a whole, oldest first, never the current one, and only when every durable cursor has passed it.
Then the retention policy keeps it: for a time after it was full, or while the acknowledged part is below a size.
-1 = without limit, 0 = not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from interpulse.model.ids import Position
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.storage.api import LedgerRecord

_MEGABYTE = 1024 * 1024


def trim_before(
    ledgers: Sequence[LedgerRecord], acknowledged: Position, retention: RetentionPolicies, now_ms: int
) -> Position | None:
    """Return the position before which everything may be trimmed; None = nothing.

    ``acknowledged`` is the mark-delete position of the slowest durable cursor, ``LATEST`` when there is none. A ledger
    counts as full from the time at which the next one begins.
    """
    before: Position | None = None
    retained_bytes = sum(ledger.size for ledger in ledgers)
    for ledger, following in pairwise(ledgers):
        passed = acknowledged >= Position(ledger.ledger_id, ledger.entries - 1)
        if not passed or not _expendable(retention, now_ms - following.created_ms, retained_bytes):
            break
        before = Position(following.ledger_id, 0)
        retained_bytes -= ledger.size
    return before


def _expendable(retention: RetentionPolicies, age_ms: int, retained_bytes: int) -> bool:
    """Return True if the oldest ledger may be trimmed: it is too old, or the size is exceeded."""
    too_old = 0 <= retention.time_minutes * 60_000 <= age_ms
    too_large = 0 <= retention.size_mb * _MEGABYTE < retained_bytes
    return too_old or too_large
