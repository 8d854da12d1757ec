"""Entries that the tasks of the micro-batch in progress have copied so far, as far as this machine shows."""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.job.reports.report import NOTHING_WRITTEN, Written
from interpulse.spark.state_files import LaneFiles


class LiveCopies:
    """Live figures of a route. Tasks that run ahead of their ranges report them every second."""

    def __init__(self, files: LaneFiles) -> None:
        self.positions: Mapping[str, Position] = {}
        """Source positions that the batch in progress has reached."""
        self._files = files
        self._counted: dict[tuple[int, str, str], Written] = {}
        """Figures of each batch, task and topic."""
        self._noted: dict[int, Written] = {}
        """Figures of each batch that were noted while it ran."""
        self._untaken = NOTHING_WRITTEN

    def refresh(self) -> dict[str, Written]:
        """Read the reports. Return what was written since the last call, by topic."""
        news: dict[str, Written] = {}
        positions: dict[str, Position] = {}
        for task, (batch, topics) in self._files.live().items():
            for topic, (position, *counts) in topics.items():
                positions[topic] = max(Position.parse(position), positions.get(topic, EARLIEST))
                key, written = (batch, task, topic), Written(*counts)
                before = self._counted.get(key, NOTHING_WRITTEN)
                self._counted[key] = written
                if written.entries < before.entries:
                    before = NOTHING_WRITTEN  # another attempt
                grown = written.less(before)
                if grown.entries:
                    news[topic] = news.get(topic, NOTHING_WRITTEN).plus(grown)
                    self._noted[batch] = self._noted.get(batch, NOTHING_WRITTEN).plus(grown)
                    self._untaken = self._untaken.plus(grown)
        self.positions = positions
        return news

    def complete(self, batch: int, topics: Mapping[str, Written], total: Written) -> dict[str, Written]:
        """Take the figures of a completed batch. Return those that were not reported before, by topic.

        ``total`` counts, unlike ``topics``, also what is written where there are too many topics to list.
        """
        counted: dict[str, Written] = {}
        for (number, _, topic), counts in self._counted.items():
            if number == batch:
                counted[topic] = counted.get(topic, NOTHING_WRITTEN).plus(counts)
        rests = {
            topic: Written(*written).less(counted.get(topic, NOTHING_WRITTEN)) for topic, written in topics.items()
        }
        self._untaken = self._untaken.plus(total.less(self._noted.get(batch, NOTHING_WRITTEN)))
        self._counted = {key: counts for key, counts in self._counted.items() if key[0] > batch}
        self._noted = {number: counts for number, counts in self._noted.items() if number > batch}
        return {topic: rest for topic, rest in rests.items() if rest.entries}

    def take(self) -> Written:
        """Return what was written since the last call, by all topics together."""
        taken, self._untaken = self._untaken, NOTHING_WRITTEN
        return taken
