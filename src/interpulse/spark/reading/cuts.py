"""Which messages of a batch are read where a start or an end was given with a batch index."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interpulse.model.ids import Position
from interpulse.spark.offsets import CutPosition, point_of
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.rows.columns import Message

__all__ = ["admission"]


def admission(options: ReadOptions) -> Callable[[Message], bool] | None:
    """Says of a message whether it is read; None where all are. Both ends are inclusive."""
    firsts, lasts = _cuts(options.starting_offsets), _cuts(options.ending_offsets)
    if not firsts and not lasts:
        return None
    known: dict[str, tuple[CutPosition | None, CutPosition | None]] = {}

    def admits(message: Message) -> bool:
        if message.batch_index < 0:
            return True
        if message.topic not in known:
            known[message.topic] = point_of(firsts, message.topic), point_of(lasts, message.topic)
        first, last = known[message.topic]
        place = Position(message.ledger, message.entry)
        if first is not None and place == (first.ledger, first.entry + 1) and message.batch_index < first.batch_index:
            return False
        return last is None or place != last or message.batch_index <= last.batch_index

    return admits


def _cuts(given: object) -> dict[str, CutPosition]:
    points = given if isinstance(given, Mapping) else {}
    return {topic: point for topic, point in points.items() if isinstance(point, CutPosition)}
