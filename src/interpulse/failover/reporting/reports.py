"""Reports about topic-partitions, and what is at stake by them. Pure.

A report compares the end of a topic-partition at the site that serves with the newest copy at the other one. What was
published later is not known: it is shown with the last rate, and never added to what is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interpulse.clock import iso_time
from interpulse.model.ids import Position
from interpulse.model.names import TopicName


@dataclass(frozen=True, slots=True)
class Report:
    """Report about one topic-partition at the site ``site``. Times are milliseconds since 1970."""

    site: str
    at_ms: int
    end: Position
    copied: Position
    """Position at ``site`` of the newest copy at the other site."""

    messages: int = 0
    """Messages that clients published since the topic was loaded."""

    behind_entries: int = 0
    behind_messages: int = 0
    behind_bytes: int = 0
    oldest_ms: int | None = None
    """Age of the oldest message without a copy; None if nothing is behind, or the age is not known."""

    rate: float = 0.0
    """Messages a second that clients publish."""

    def to_json(self) -> dict[str, Any]:
        return {
            "site": self.site,
            "at": self.at_ms,
            "end": str(self.end),
            "copied": str(self.copied),
            "messages": self.messages,
            "behindEntries": self.behind_entries,
            "behindMessages": self.behind_messages,
            "behindBytes": self.behind_bytes,
            "oldestMs": self.oldest_ms,
            "rate": self.rate,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Report:
        """Parse a report. Raise KeyError or ValueError if it is none."""
        return cls(
            body["site"],
            int(body["at"]),
            Position.parse(body["end"]),
            Position.parse(body["copied"]),
            int(body["messages"]),
            int(body["behindEntries"]),
            int(body["behindMessages"]),
            int(body["behindBytes"]),
            body["oldestMs"],
            float(body["rate"]),
        )

    @property
    def content(self) -> Report:
        """The report without its time, to compare it with an earlier one."""
        return replace(self, at_ms=0, oldest_ms=None)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all topic-partitions of a site. They are written while nothing changes, too: silence is not rest."""

    site: str
    at_ms: int
    topics: int
    behind_messages: int
    rate: float

    def to_json(self) -> dict[str, Any]:
        return {
            "site": self.site,
            "at": self.at_ms,
            "topics": self.topics,
            "behindMessages": self.behind_messages,
            "rate": self.rate,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Totals:
        """Parse the sums. Raise KeyError or ValueError if they are none."""
        return cls(body["site"], int(body["at"]), int(body["topics"]), int(body["behindMessages"]), float(body["rate"]))


def totals(site: str, at_ms: int, reports: Mapping[TopicName, Report]) -> Totals:
    """Return the sums of the reports of a site."""
    behind, rate = (sum(getattr(each, name) for each in reports.values()) for name in ("behind_messages", "rate"))
    return Totals(site, at_ms, len(reports), behind, rate)


@dataclass(frozen=True, slots=True)
class Stake:
    """Topic-partition with messages at stake."""

    topic: TopicName
    published_up_to: Position
    copied_up_to: Position
    messages: int
    bytes: int
    oldest_ms: int | None


@dataclass(frozen=True, slots=True)
class AtStake:
    """Messages at stake by the last reports, and what is not known."""

    site: str
    reported_ms: int
    """Time of the newest report: what was published later is not known."""

    topics: int
    rate: float
    """Messages a second that were published last, over all topic-partitions."""

    stakes: Sequence[Stake]

    @property
    def messages(self) -> int:
        return sum(each.messages for each in self.stakes)

    def sentences(self) -> list[str]:
        """Return what is known and what is not, for people."""
        at = iso_time(self.reported_ms)
        return [
            f"At stake by the report of {at}: {self.messages} messages in {len(self.stakes)} of {self.topics} "
            "topic-partitions.",
            f"Not known: what was published after {at}, at the last rate about {self.rate:.0f} messages a second.",
        ]

    def to_json(self) -> dict[str, Any]:
        rows = [
            {
                "topic": str(each.topic),
                "publishedUpTo": str(each.published_up_to),
                "copiedUpTo": str(each.copied_up_to),
                "messages": each.messages,
                "bytes": each.bytes,
                "oldestMs": each.oldest_ms,
            }
            for each in self.stakes
        ]
        known = {"site": self.site, "reportedAt": self.reported_ms, "topics": self.topics, "messages": self.messages}
        return {**known, "topicPartitions": rows, "notKnownMessagesPerSecond": self.rate}


def at_stake(
    site: str, reports: Mapping[TopicName, Report], copied: Mapping[TopicName, Position], sums: Totals | None = None
) -> AtStake | None:
    """Return what is at stake if ``site`` is lost; None without a report of it.

    ``copied`` are the positions of the newest copies, as read from the other site now: later than those of the reports.
    Topic-partitions without one there use the report's.
    """
    own = {topic: report for topic, report in reports.items() if report.site == site}
    own_sums = sums if sums is not None and sums.site == site else None
    if not own and own_sums is None:
        return None
    newest = max([each.at_ms for each in own.values()] + ([own_sums.at_ms] if own_sums else []))
    stakes = [
        stake
        for topic, report in sorted(own.items(), key=lambda item: str(item[0]))
        if (stake := _stake(topic, report, max(report.copied, copied.get(topic, report.copied)))) is not None
    ]
    rate = sum(each.rate for each in own.values())
    return AtStake(site, newest, max(len(own), own_sums.topics if own_sums else 0), rate, stakes)


def _stake(topic: TopicName, report: Report, copied: Position) -> Stake | None:
    """Return what a topic-partition has at stake; None if everything is copied."""
    if not report.behind_entries or copied >= report.end:
        return None
    left = _share_left(report, copied)
    messages, size = (math.ceil(value * left) for value in (report.behind_messages, report.behind_bytes))
    return Stake(topic, report.end, copied, messages, size, report.oldest_ms)


def _share_left(report: Report, copied: Position) -> float:
    """Return the share of what was behind that is still without a copy. It is exact within one ledger."""
    if copied.ledger != report.end.ledger or copied == report.copied:
        return 1.0
    return min(1.0, (report.end.entry - copied.entry) / report.behind_entries)
