"""Entries that the tasks of the micro-batch in progress have copied so far, as far as this machine shows."""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.model.ids import Position
from interpulse.spark.state_files import LaneFiles

Written = tuple[int, int, int]
"""Entries, messages and bytes."""
_NOTHING: Written = (0, 0, 0)


class LiveCopies:
    """Live figures of a route. Tasks that run ahead of their ranges report them every second."""

    def __init__(self, files: LaneFiles) -> None:
        self.positions: Mapping[str, Position] = {}
        """Source positions that the batch in progress has reached."""
        self._files = files
        self._counted: dict[tuple[int, str], Written] = {}

    def refresh(self) -> dict[str, Written]:
        """Read the reports. Return what was written since the last call, by topic."""
        news: dict[str, Written] = {}
        for batch, topics in self._files.live():
            written = {topic: (entries, messages, size) for topic, (_, entries, messages, size) in topics.items()}
            news |= self._news(batch, written)
        self.positions = self._files.live_positions()
        return news

    def complete(self, batch: int, written: Mapping[str, Written]) -> dict[str, Written]:
        """Take the figures of a completed batch. Return those that were not reported before, by topic."""
        news = self._news(batch, written)
        self._counted = {key: counts for key, counts in self._counted.items() if key[0] > batch}
        return news

    def _news(self, batch: int, written: Mapping[str, Written]) -> dict[str, Written]:
        news: dict[str, Written] = {}
        for topic, (entries, messages, size) in written.items():
            before = self._counted.get((batch, topic), _NOTHING)
            self._counted[batch, topic] = (entries, messages, size)
            if entries > before[0]:
                news[topic] = (entries - before[0], messages - before[1], size - before[2])
        return news
