"""A model of two sites, of the lanes and the exchange of acknowledgements between them, and of their clients.

It plays a switch, the way back, and the loss of a site, and writes the history of that. A mutant is one mistake of the
product that the judge of histories has to notice.
"""

from __future__ import annotations

import random
from enum import StrEnum
from typing import Any, Final

from interpulse.failover.history.events import (
    Acknowledge,
    Cause,
    Deliver,
    Event,
    Fence,
    MessageName,
    Outcome,
    Promotion,
    Publish,
    Release,
    Reset,
    RoleSeen,
)
from interpulse.failover.history.record import CursorState, History, Incident, Listed, Log, Stake
from interpulse.model.ids import MessageId
from tests.durability.failover_model_site import OTHER, Entry, Site

TOPIC: Final = "persistent://public/default/orders"
INTERVAL_MS: Final = 1000
_NAMESPACE: Final = "public/default"
_IN_FLIGHT: Final = 7


class Mutant(StrEnum):
    """Mistakes that a judge has to notice."""

    DROPPED_RUN = "drop one mapped run"
    ACKNOWLEDGED_BEFORE_COPIED = "apply before the copy"
    ANOTHER_BATCH = "carry an index of another batch"
    FORGOTTEN_RESET = "forget a reset"
    EARLY_PROMOTION = "promote before the last copy"
    SKIPPED_SETTLE = "skip the settle"
    LAG_ZERO = "take lag 0 for drained"
    COUNTED_MARKERS = "lane numbers that count markers"
    PASSED_LOCAL = "cursor moved over a local entry"


class Model:
    """Two sites and everything around them, from one seed."""

    def __init__(self, seed: int, mutant: Mutant | None = None) -> None:
        self._random = random.Random(seed)
        self._mutant = mutant
        self._now_ms = 0
        self._events: list[Event] = []
        self._sites = {name: Site(name) for name in OTHER}
        self._numbers = dict.fromkeys(("p0", "p1", "p2", "local"), 0)
        self._epoch = 4
        self._incidents: list[Incident] = []

    def play(self) -> History:
        """Play everything, and return its history."""
        self._note(RoleSeen, "east", _NAMESPACE, "active", self._epoch)
        self._live("east", turns=30, both=True)
        self._reset("east")
        self._live("east", turns=20, both=True)
        self._switch("east", Cause.SWITCH)
        self._live("west", turns=30)
        self._restart_lane("west")
        self._switch("west", Cause.BACK)
        self._live("east", turns=20)
        self._lose("east")
        self._live("west", turns=10)
        self._exchange_all()
        logs = [Log(name, TOPIC, site.logged()) for name, site in self._sites.items()]
        cursors = [CursorState(name, TOPIC, "s", site.cursor()) for name, site in self._sites.items()]
        return History(
            ("east", "west"), self._events, logs, cursors, incidents=self._incidents, interval_ms=INTERVAL_MS
        )

    def _note(self, kind: Any, *arguments: Any) -> None:
        self._now_ms += 1
        self._events.append(kind(self._now_ms, *arguments))

    # ---- Clients

    def _live(self, active: str, turns: int, *, both: bool = False) -> None:
        """Publish and consume on the active site, while lanes copy and acknowledgements are exchanged.

        With ``both``, a producer of the other site publishes as well, as where each cluster has clients of its own.
        """
        for _ in range(turns):
            for producer in ("p0", "p1", "p2"):
                self._publish(active, producer)
            if both and self._random.random() < 0.5:
                self._publish(OTHER[active], "local")
            self._consume(active)
            self._copy(active, self._random.randrange(4) if self._random.random() < 0.7 else 0)
            self._copy(OTHER[active], self._random.randrange(2))
            if self._random.random() < 0.5:
                self._exchange()

    def _publish(self, site: str, producer: str) -> None:
        log = self._sites[site].log
        if self._random.random() < 0.2:
            log.append(Entry(()))
        first, count = self._numbers[producer], self._random.randint(1, 4)
        producer_name = f"{producer}-{site}" if producer == "local" else producer
        messages = tuple(MessageName(TOPIC, producer_name, first + each) for each in range(count))
        self._numbers[producer] += count
        for outcome in (Outcome.INVOKED, Outcome.OK):
            for index, message in enumerate(messages):
                position = MessageId(*self._sites[site].at(len(log)), -1, index) if outcome is Outcome.OK else None
                self._note(Publish, site, message, outcome, position)
        log.append(Entry(messages))

    def _consume(self, name: str, at_least: int = 0) -> None:
        """Receive some messages, acknowledge some of those in hand, and leave the others."""
        site = self._sites[name]
        waiting = [
            (index, at)
            for index, entry in enumerate(site.log)
            for at in range(len(entry.messages))
            if (index, at) not in site.acknowledged and (index, at) not in site.held
        ]
        for index, at in waiting[: self._random.randrange(at_least, 24)]:
            site.held.add((index, at))
            self._note(Deliver, name, site.log[index].messages[at], "s", f"consumer-{name}")
        for index, at in sorted(site.held):
            if self._random.random() < 0.7:
                site.held.discard((index, at))
                site.acknowledged.add((index, at))
                for outcome in (Outcome.INVOKED, Outcome.OK):
                    message = site.log[index].messages[at]
                    self._note(Acknowledge, name, message, "s", f"consumer-{name}", outcome)

    def _reset(self, name: str) -> None:
        site = self._sites[name]
        index = min(each for each, _ in site.acknowledged) + 1
        self._note(Reset, name, TOPIC, "s", site.at(index))
        site.acknowledged = {
            (each, at) for each, entry in enumerate(site.log[: index + 1]) for at in range(len(entry.messages))
        }
        site.held.clear()
        site.was_reset = True
        self._exchange()

    # ---- The product

    def _copy(self, name: str, limit: int | None = None) -> None:
        """Copy the next entries of a site."""
        source, target = self._sites[name], self._sites[OTHER[name]]
        end = len(source.log) if limit is None else min(len(source.log), source.next_copy + limit)
        for index in range(source.next_copy, end):
            entry = source.log[index]
            if not entry.messages or entry.source is not None:
                continue
            if self._mutant is not Mutant.DROPPED_RUN or index % _IN_FLIGHT:
                source.copies[index] = len(target.log)
            target.log.append(Entry(entry.messages, index))
        source.next_copy = max(source.next_copy, end)

    def _restart_lane(self, name: str) -> None:
        """Let a lane go on by what it reads back from its target."""
        source, target = self._sites[name], self._sites[OTHER[name]]
        last = max(entry.source for entry in target.log if entry.source is not None)
        if self._mutant is Mutant.COUNTED_MARKERS:
            copied = [index for index in range(last + 1) if source.log[index].source is None]
            last -= sum(not source.log[index].messages for index in copied)
        source.next_copy = last + 1

    def _exchange(self) -> None:
        """Carry acknowledgements both ways."""
        for name, site in self._sites.items():
            if site.was_reset:
                site.was_reset = False
                if self._mutant is not Mutant.FORGOTTEN_RESET:
                    self._sites[OTHER[name]].acknowledged = self._translated(site)
        for name, site in self._sites.items():
            other = self._sites[OTHER[name]]
            other.acknowledged |= self._translated(site)
            if self._mutant is Mutant.PASSED_LOCAL:
                self._pass_local(site, other)

    def _translated(self, site: Site) -> set[tuple[int, int]]:
        """Return the acknowledgements of a site as those of the other one, as far as counterparts exist there."""
        other = self._sites[OTHER[site.name]]
        found = set()
        for index, at in site.acknowledged:
            counterpart = self._counterpart(site, other, index) if index < len(site.log) else None
            if counterpart is not None:
                found.add((counterpart, at))
        if self._mutant is Mutant.ANOTHER_BATCH:
            found = {
                (index + 1 if index + 1 < len(other.log) and len(other.log[index + 1].messages) > at else index, at)
                if not all((index, each) in found for each in range(len(other.log[index].messages)))
                else (index, at)
                for index, at in found
            }
        return found

    def _counterpart(self, site: Site, other: Site, index: int) -> int | None:
        source = site.log[index].source
        if source is not None:
            return source if source in other.copies else None
        if index in site.copies or self._mutant is not Mutant.ACKNOWLEDGED_BEFORE_COPIED:
            return site.copies.get(index)
        return len(other.log) + sum(
            bool(entry.messages) and entry.source is None for entry in site.log[site.next_copy : index]
        )

    def _pass_local(self, site: Site, other: Site) -> None:
        """Move the cursor of the other site to the counterpart of this one's mark-delete, whatever is before it."""
        mark = next((index for index in range(len(site.log)) if not site.is_whole(index)), len(site.log)) - 1
        if mark >= 0 and (counterpart := self._counterpart(site, other, mark)) is not None:
            other.acknowledged |= {
                (index, at) for index in range(counterpart) for at in range(len(other.log[index].messages))
            }

    def _exchange_all(self) -> None:
        """Copy and exchange until nothing is left."""
        for name in self._sites:
            self._copy(name)
        self._exchange()
        self._exchange()

    # ---- Operations

    def _switch(self, name: str, cause: Cause) -> None:
        """Switch from a site to the other one."""
        source, target = self._sites[name], self._sites[OTHER[name]]
        reported_end = max(len(source.log) - _IN_FLIGHT, source.next_copy)
        self._epoch += 1
        self._note(RoleSeen, name, _NAMESPACE, "fenced", self._epoch)
        self._note(Fence, name, TOPIC, source.at(len(source.log) - 1))
        if self._mutant is Mutant.LAG_ZERO:
            self._copy(name, reported_end - source.next_copy)
        elif self._mutant is not Mutant.EARLY_PROMOTION:
            self._copy(name)
        self._consume(name, at_least=8)
        if self._mutant is not Mutant.SKIPPED_SETTLE:
            self._exchange()
        self._promote(target, cause)
        source.held.clear()

    def _promote(self, site: Site, cause: Cause) -> None:
        self._note(Release, site.name, TOPIC, site.at(len(site.log) - 1))
        self._note(RoleSeen, site.name, _NAMESPACE, "active", self._epoch)
        self._note(Promotion, site.name, cause)

    def _lose(self, name: str) -> None:
        """Lose a site, take over, let clients go on, and merge both tails when it is back."""
        site, other = self._sites[name], self._sites[OTHER[name]]
        self._copy(OTHER[name])
        self._exchange()
        reported, copied = len(site.log) - 1, site.next_copy
        known = sum(len(entry.messages) for entry in site.log[copied : reported + 1] if entry.source is None)
        for _ in range(3):
            self._publish(name, "p0")
            self._consume(name)
        closed = other.at(len(other.log) - 1)
        self._epoch += 1
        self._promote(other, Cause.TAKEOVER)
        for _ in range(5):
            self._publish(other.name, "p0")
            self._consume(other.name)
        end = site.at(len(site.log) - 1)
        tail = tuple(
            Listed(site.at(index), at, message)
            for index, entry in enumerate(site.log)
            if index >= copied and entry.source is None
            for at, message in enumerate(entry.messages)
        )
        stake = Stake(TOPIC, known, site.at(reported), end, closed)
        self._incidents.append(Incident(name, self._epoch, (stake,), tail))
        site.held.clear()
        self._exchange_all()
