"""Messages of a batch that a start or an end with a batch index selects."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from interpulse.model.ids import Position
from interpulse.spark.offsets import CutPosition, TopicRange
from interpulse.spark.rows.columns import Message


def admission(ranges: Iterable[TopicRange]) -> Callable[[Message], bool] | None:
    """Return the predicate that selects the messages to read, or None if all are. Both ends are inclusive.

    The ranges decide, not the options: a stream that resumes from its checkpoint began elsewhere.
    """
    firsts: dict[str, CutPosition] = {}
    lasts: dict[str, CutPosition] = {}
    for item in ranges:
        if isinstance(item.after, CutPosition):
            firsts[item.topic] = item.after
        if isinstance(item.upto, CutPosition):
            lasts[item.topic] = item.upto
    if not firsts and not lasts:
        return None

    def admits(message: Message) -> bool:
        if message.batch_index < 0:
            return True
        first, last = firsts.get(message.topic), lasts.get(message.topic)
        place = Position(message.ledger, message.entry)
        if first is not None and place == (first.ledger, first.entry + 1) and message.batch_index < first.batch_index:
            return False
        return last is None or place != last or message.batch_index <= last.batch_index

    return admits
