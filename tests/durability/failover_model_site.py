"""One site of the model of failovers: a log of batches and the cursor of one shared subscription."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from interpulse.failover.history.events import MessageName
from interpulse.failover.history.record import LoggedMessage
from interpulse.model.ids import EARLIEST, Position
from interpulse.replication.acknowledgements import Acknowledgements, Span

_LEDGERS: Final = {"east": 3, "west": 8}
OTHER: Final = {"east": "west", "west": "east"}


@dataclass(frozen=True)
class Entry:
    """A stored batch, or a marker, which has no messages."""

    messages: tuple[MessageName, ...]
    source: int | None = None


@dataclass
class Site:
    """One cluster: a log, and the cursor of one shared subscription."""

    name: str
    log: list[Entry] = field(default_factory=list)
    acknowledged: set[tuple[int, int]] = field(default_factory=set)
    held: set[tuple[int, int]] = field(default_factory=set)
    """Messages in the hands of a consumer."""
    was_reset: bool = False
    next_copy: int = 0
    """Index of the first entry that the lane to the other site has not read."""
    copies: dict[int, int] = field(default_factory=dict)
    """Index on the other site by the index here."""

    def at(self, index: int) -> Position:
        return Position(_LEDGERS[self.name], index)

    def is_whole(self, index: int) -> bool:
        return all((index, at) in self.acknowledged for at in range(len(self.log[index].messages)))

    def cursor(self) -> Acknowledgements:
        whole = [index for index in range(len(self.log)) if self.is_whole(index)]
        masks = {
            self.at(index): sum(1 << at for at in range(len(entry.messages)) if (index, at) not in self.acknowledged)
            for index, entry in enumerate(self.log)
            if not self.is_whole(index)
        }
        return Acknowledgements(EARLIEST, tuple(Span(self.at(each), self.at(each)) for each in whole), masks)

    def logged(self) -> list[LoggedMessage]:
        other = _LEDGERS[OTHER[self.name]]
        return [
            LoggedMessage(self.at(index), at, message, None if entry.source is None else Position(other, entry.source))
            for index, entry in enumerate(self.log)
            for at, message in enumerate(entry.messages)
        ]
