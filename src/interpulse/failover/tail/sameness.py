"""Comparison of a site that has returned with the one that was lost, for one topic-partition. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from interpulse.model.ids import EARLIEST, Position
from interpulse.replication.acknowledgements import after


class Sameness(StrEnum):
    """State of a topic-partition of a site that has returned."""

    SAME = "same"
    """The entry of the last copy is there with the same payload, or nothing was ever copied."""
    UNPROVEN = "unproven"
    """Nothing behind the last copy is missing, but the entry or its copy is gone, and they cannot be compared."""
    TRIMMED = "trimmed"
    """The entry is gone, and later ones may be: retention or an operator has removed them."""
    REBUILT = "rebuilt"
    """The log started over: it ends before the last copy, or has another entry there."""


@dataclass(frozen=True)
class Lost:
    """Positions behind ``after`` that the site no longer has. ``upto`` is the last one, None if it is not known."""

    topic: str
    after: Position
    upto: Position | None
    state: Sameness

    def to_json(self) -> dict[str, str | None]:
        """Return the members that ``-o json`` prints."""
        upto = None if self.upto is None else str(self.upto)
        return {"topic": self.topic, "after": str(self.after), "upto": upto, "state": str(self.state)}


def sameness(
    copied: Position, end: Position, first: Position | None, original: str | None, copy: str | None
) -> Sameness:
    """Return the state of a topic-partition that ends at ``end``.

    ``first`` is the first entry that it has from ``copied`` on, None without one. ``original`` and ``copy`` are the
    checksums of the payload of that entry and of the copy, None if there is no copy.
    """
    if copied == EARLIEST:
        return Sameness.SAME
    if end < copied and end.ledger <= copied.ledger:
        return Sameness.REBUILT
    if first is None:
        return Sameness.UNPROVEN if end == copied else Sameness.TRIMMED
    if first not in (copied, after(copied)):
        return Sameness.TRIMMED
    if first != copied or copy is None:
        return Sameness.UNPROVEN
    return Sameness.SAME if original == copy else Sameness.REBUILT


def lost_positions(
    topic: str, state: Sameness, copied: Position, end: Position, first: Position | None, reported: Position | None
) -> Lost | None:
    """Return the positions that are on neither site; None if everything behind the last copy is there.

    ``reported`` is the end of the log by the last report.
    """
    if state is Sameness.REBUILT:
        return Lost(topic, copied, reported, state)
    if state is Sameness.TRIMMED:
        return Lost(topic, copied, end if first is None else Position(first.ledger, first.entry - 1), state)
    return None
