"""Steps 9 and 10 of a reconcile: both sites are compared, and the incident is closed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Final, NamedTuple

from interpulse.client.consuming.entry_reader import Entry
from interpulse.clock import iso_time, now_ms
from interpulse.failover.operation import Evidence
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.reconcile.arrivals import Arrivals
from interpulse.failover.reconcile.carried import Comparison, compared
from interpulse.failover.reconcile.reconcile import Reconcile
from interpulse.failover.site import Site
from interpulse.failover.steps.plain_step import PlainStep, some
from interpulse.failover.tail.reading import copies_in, end_of, originals_in
from interpulse.in_turns import concurrently
from interpulse.model.errors import DataLoss
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName

_AT_ONCE: Final = 16


class _Places(NamedTuple):
    """Entries of a topic-partition to compare: those of ``(after, upto]``, with copies behind ``copies_after``."""

    after: Position
    upto: Position
    copies_after: Position


class Compare(PlainStep):
    """Entries since the last copy before the loss, in both directions, with the payloads of their copies."""

    name = "compare"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile
        self.limit_s = reconcile.config.limits.drain_s
        self._ends: dict[str, Position] = {}
        self._back: Arrivals | None = None
        self._problems: list[str] = []

    async def holds(self) -> Evidence | None:
        """Return the number of entries that are the same; None while something is on its way.

        Raise OperationFailed if the sites are not the same although everything has arrived.
        """
        lost, serving = self._reconcile.lost, self._reconcile.serving
        if not await self._is_back():
            return None
        self._problems = []
        forth, back = await self._forth(), await self._since()
        names = lost.access.name, serving.access.name
        if self._problems:
            raise OperationFailed(f"The sites are not the same: {'; '.join(some(self._problems))}", Outcome.BROKEN_OFF)
        text = f"{forth} entries of {names[0]} and {back} of {names[1]} are the same at both sites"
        return Evidence(text, {"late": forth, "since": back})

    async def _is_back(self) -> bool:
        """Return True if everything that the other site has taken up to the first look is at the lost one."""
        reconcile = self._reconcile
        if self._back is None:
            self._ends = await _ends(reconcile.serving)
            after = reconcile.copies_after
            self._back = Arrivals(reconcile.serving, reconcile.lost, self._ends, after, even_if_trimmed=True)
        return await self._back.are_complete()

    async def _forth(self) -> int:
        reconcile = self._reconcile
        after, copies_after = reconcile.after, reconcile.copies_after
        places = {topic: _Places(after[topic], end, copies_after[topic]) for topic, end in reconcile.ends.items()}
        return await self._compare(reconcile.lost, reconcile.serving, places)

    async def _since(self) -> int:
        reconcile = self._reconcile
        rebuilt = set((reconcile.record or {})["rebuilt"])
        copies_after = reconcile.copies_after
        begins = {str(last.topic): last.copied for last in reconcile.incident.topics if str(last.topic) not in rebuilt}
        places = {
            topic: _Places(copies_after.get(topic, EARLIEST), end, begins.get(topic, EARLIEST))
            for topic, end in self._ends.items()
        }
        for topic in sorted(rebuilt):
            self._warn(f"{topic} was rebuilt: only what came since the promotion is there again; copy the rest to it")
        return await self._compare(reconcile.serving, reconcile.lost, places)

    async def _compare(self, source: Site, target: Site, places: Mapping[str, _Places]) -> int:
        async def one(topic: str) -> int:
            try:
                found = await _compare_topic(source, target, TopicName.parse(topic), places[topic])
            except DataLoss as error:
                self._warn(f"{topic} cannot be compared, retention has removed a part of it: {error}")
                return 0
            self._note(topic, target.access.name, found)
            return found.same

        return sum(await concurrently(one, places, limit=_AT_ONCE))

    def _warn(self, sentence: str) -> None:
        if sentence not in self._reconcile.warnings:
            self._reconcile.warnings.append(sentence)

    def _note(self, topic: str, site: str, found: Comparison) -> None:
        for word, positions in (("missing", found.missing), ("different", found.different)):
            if positions:
                self._problems.append(f"{topic}: {len(positions)} entries are {word} at {site}, first {positions[0]}")

    def waits_for(self) -> Sequence[str]:
        """Return what has not arrived."""
        return () if self._back is None else self._back.waits_for()


async def _ends(site: Site) -> dict[str, Position]:
    names = await site.access.topics()
    ends = await concurrently(lambda name: end_of(site.access, name), names, limit=_AT_ONCE)
    return {str(name): end for name, end in zip(names, ends, strict=True)}


async def _compare_topic(source: Site, target: Site, topic: TopicName, places: _Places) -> Comparison:
    """Compare entries with their copies. Memory holds a checksum of each."""
    after, upto, copies_after = places
    end = await end_of(target.access, topic)
    async with aclosing(copies_in(target.access, topic, copies_after, end)) as found:
        copies = {position: _checksum(entry) async for position, entry in found if after < position <= upto}
    async with aclosing(originals_in(source.access, topic, after, upto)) as found_here:
        originals = [(entry.position, _checksum(entry)) async for entry in found_here]
    return compared(originals, copies)


def _checksum(entry: Entry) -> bytes:
    return hashlib.sha256(entry.parsed.payload).digest()


class CloseIncident(PlainStep):
    """The record of the incident: ``after.json``, with which it is closed."""

    name = "report"
    overdue = Outcome.BROKEN_OFF

    def __init__(self, reconcile: Reconcile) -> None:
        self._reconcile = reconcile

    async def holds(self) -> Evidence | None:
        """Return the sums; None while the incident is open."""
        body = self._reconcile.incidents.after(self._reconcile.incident.epoch)
        if body is None:
            return None
        return Evidence(f"{body['messages']} messages merged; {self._reconcile.directory}", {"after": body})

    async def act(self) -> None:
        """Write the record."""
        reconcile = self._reconcile
        record = reconcile.record or {}
        steps = {name: reconcile.journal.done_at(name) for name in ("hold", "list", "open way", "copy", "compare")}
        reconcile.incidents.close(
            reconcile.incident.epoch,
            {
                "outcome": Outcome.DONE.name,
                "epoch": reconcile.incident.epoch,
                "lost": reconcile.incident.lost,
                "to": reconcile.incident.to,
                "at": iso_time(now_ms()),
                "operation": asdict(reconcile.operation),
                **{name: record.get(name) for name in ("messages", "bytes", "conflicts")},
                "lostPositions": record.get("lost"),
                "compared": reconcile.journal.evidence_of("compare"),
                "times": steps,
                "warnings": reconcile.warnings,
            },
        )
