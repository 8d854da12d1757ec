"""Reporter of one site that serves: compares it with the copies at the other site, look by look.

A look costs one request for each topic, at the rate of the pair's file. Only what has changed costs more: the end of
the log, and the newest copy at the other site.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from interpulse.clock import now_ms
from interpulse.failover.reporting.looks import Look, Looks
from interpulse.failover.reporting.reports import Report, Totals, totals
from interpulse.failover.site import SiteAccess
from interpulse.in_turns import concurrently
from interpulse.model.errors import NotFound, PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.paced_requests import PacedRequests

log = logging.getLogger(__name__)

_AT_ONCE: Final = 64
_PATIENCE_MS: Final = 1000


class Reporter:
    """Reports about one site. ``other`` has the copies."""

    def __init__(
        self, site: SiteAccess, other: SiteAccess, requests_per_second: float, clock: Callable[[], int] = now_ms
    ) -> None:
        self.site = site
        self.reports: dict[TopicName, Report] = {}
        """Newest report of each topic-partition."""

        self.gone: frozenset[TopicName] = frozenset()
        """Topic-partitions that were deleted between the last two looks."""

        self.asks_copies = True
        """False while the other site is away: its newest copies are those of the last look."""

        self.paced = PacedRequests(requests_per_second, _PATIENCE_MS)
        self._other = other
        self._clock = clock
        self._looks: dict[TopicName, Looks] = {}

    async def look(self) -> dict[TopicName, Report]:
        """Return the reports that have changed since the last look. Raise the error of a site that does not answer.

        If the other site does not answer, its newest copies are those of the last look.
        """
        topics = await self.paced(self.site.topics, len(self.site.namespaces))
        stats = await self._stats(topics)
        self.gone = frozenset(self.reports.keys() - stats.keys())
        for topic in self.gone:
            del self.reports[topic]
            self._looks.pop(topic, None)
        made = await concurrently(lambda topic: self._report(topic, stats[topic]), stats, limit=_AT_ONCE)
        changed = {
            topic: report
            for topic, report in zip(stats, made, strict=True)
            if topic not in self.reports or report.content != self.reports[topic].content
        }
        self.reports |= changed
        return changed

    def totals(self) -> Totals:
        """Return the sums of the newest reports."""
        return totals(self.site.name, self._clock(), self.reports)

    async def _stats(self, topics: Iterable[TopicName]) -> dict[TopicName, Mapping[str, Any]]:
        """Return the statistics of the topic-partitions, with one request for each topic."""
        wanted = set(topics)
        asked = {topic.base if topic.is_partition else topic: topic.is_partition for topic in wanted}
        pages = await concurrently(lambda item: self._stats_of(*item), asked.items(), limit=_AT_ONCE)
        found = {TopicName.parse(name): stats for page in pages for name, stats in page.items()}
        return {topic: found[topic] for topic in sorted(wanted & found.keys(), key=str)}

    async def _stats_of(self, topic: TopicName, is_partitioned: bool) -> Mapping[str, Mapping[str, Any]]:
        topics = self.site.admin.topics
        try:
            if not is_partitioned:
                return {str(topic): await self.paced(lambda: topics.stats(topic))}
            whole = await self.paced(lambda: topics.partitioned_stats(topic))
            return whole.get("partitions") or {}
        except NotFound:
            return {}

    async def _report(self, topic: TopicName, stats: Mapping[str, Any]) -> Report:
        """Return the report of a topic-partition. One that is at rest and copied costs nothing more."""
        messages, rate = _published(stats), float(stats.get("msgRateIn", 0.0))
        before = self.reports.get(topic)
        if before is not None and before.messages == messages and not before.behind_entries:
            return replace(before, at_ms=self._clock(), rate=rate)
        end = await self.site.end(topic)
        copied = await self._copied(topic, end, before)
        looks = self._looks.setdefault(topic, Looks())
        at_ms = self._clock()
        looks.add(Look(at_ms, end, messages))
        entries = _entries_between(copied, end, self._backlog(stats))
        behind = looks.messages_after(copied, entries) if entries else 0
        return Report(
            self.site.name,
            at_ms,
            end,
            copied if entries else end,
            messages,
            entries,
            behind,
            round(behind * float(stats.get("averageMsgSize", 0.0))),
            looks.age_ms(copied, at_ms) if entries else None,
            rate,
        )

    async def _copied(self, topic: TopicName, end: Position, before: Report | None) -> Position:
        """Return the position here of the newest copy at the other site, or of the last look if that is away."""
        if end.entry < 0:
            return end
        known = EARLIEST if before is None else before.copied
        if not self.asks_copies:
            return known
        try:
            return await self._other.last_copied(topic)
        except PulsarError as error:
            log.info("newest copy is not known topic=%s site=%s error=%s", topic, self._other.name, error)
            return known

    def _backlog(self, stats: Mapping[str, Any]) -> int | None:
        """Return the entries that the replicator has not copied; None if the site has no cursor for them."""
        way = (stats.get("replication") or {}).get(self._other.cluster) or {}
        return way.get("replicationBacklog")


def _published(stats: Mapping[str, Any]) -> int:
    """Return the number of messages that clients published, without those of replicators."""
    copies = sum(int(way.get("msgInCount", 0)) for way in (stats.get("replication") or {}).values())
    return int(stats.get("msgInCounter", 0)) - copies


def _entries_between(copied: Position, end: Position, backlog: int | None) -> int:
    """Return the number of entries after ``copied``, at most the backlog of the job or replicator that copies them.

    Its cursor passes what needs no copy, such as copies from the other site, and never passes what has none.
    """
    if copied >= end:
        return 0
    between = end.entry - copied.entry if copied.ledger == end.ledger else None
    known = [number for number in (between, backlog) if number is not None]
    return min(known) if known else end.entry + 1
