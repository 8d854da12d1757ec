"""Detection of lost unread entries, from the ends of topics that the driver has seen. No IO."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.offsets import entries_between


@dataclass
class EndsSeen:
    """Last positions and the times when they were first seen, from which the age of the oldest unread entry follows.

    ``since`` is the time of the first one, ``newest`` the highest position.
    """

    since: Position = EARLIEST
    newest: Position = EARLIEST
    samples: deque[tuple[Position, float]] = field(default_factory=lambda: deque(maxlen=600))

    def record(self, last: Position, now: float, *, newest: Position | None = None) -> None:
        """Record the end ``last``. ``newest`` is the highest position the topic has had, if it is not ``last``."""
        newest = last if newest is None else newest
        if self.since == EARLIEST:
            self.since = newest
        self.newest = max(self.newest, newest)
        if last.entry >= 0 and (not self.samples or self.samples[-1][0] < last):
            self.samples.append((last, now))

    def age_of_first_after(self, done: Position, now: float) -> float:
        while self.samples and self.samples[0][0] <= done:
            self.samples.popleft()
        return now - self.samples[0][1] if self.samples else 0.0


def deleted_topic_loss(topic: str, seen: EndsSeen, read: Position) -> str | None:
    """Describe what is lost with a topic that no pattern matches any more. Return None if all of it was read.

    Source: docs/reference/spark-pipeline.md#deleted-topics.
    """
    last = seen.samples[-1][0] if seen.samples else EARLIEST
    if last.entry < 0 or last <= read:
        return None
    return f"{topic} was deleted, its entries behind {read} up to {last} were not read"


def trimmed_ledger_loss(
    topic: str, seen: EndsSeen, read: Position, first: Position | None, *, behind: Position | None = None
) -> str | None:
    """Describe what is lost when the ledger of ``read`` is gone. Return None if nothing is.

    ``first`` is the first entry of the topic, if any. ``behind`` is the entry that followed ``read`` while its ledger
    existed, if it is known. Nothing is lost if that entry still exists, if the stream has seen the ledger end where it
    had read to, or if it has read nothing of the ledger. Otherwise the length of the ledger is unknown, which is a
    loss.

    Source: docs/reference/spark-pipeline.md#trimmed-ledgers.
    """
    if behind is not None and first is not None and behind.ledger >= first.ledger:
        return None
    there = "none is there" if first is None else f"the first one there is {first}"
    ends = [end for end in (seen.since, *(end for end, _ in seen.samples)) if end.entry >= 0]
    missed = max((end for end in ends if read < end and (first is None or end.ledger < first.ledger)), default=None)
    if missed is not None:
        count = entries_between(read, missed)
        return f"{topic}: {count} or more entries behind {read} up to {missed} are gone, {there}"
    if behind is not None:
        return f"{topic}: the entries behind {read}, from {behind} on, are gone, {there}"
    if seen.since.ledger > read.ledger and read.entry >= 0:
        return f"{topic}: ledger {read.ledger}, read up to {read}, is gone with what came behind it, {there}"
    return None
