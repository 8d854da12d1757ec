"""Findings: problems as rows that show people where to look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from interpulse.spark.arrow_frames import arrow_schema
from interpulse.spark.verify.digests import is_unmarked, key_for_people, position_of
from interpulse.spark.verify.judging import Problem

if TYPE_CHECKING:
    import pyarrow as pa

FINDING_COLUMNS: Final = (
    "problem STRING, topic STRING, key STRING, source_place STRING, target_place STRING, detail STRING"
)
"""A finding is one problem. ``key`` is that of the message, where messages are matched by it."""


@dataclass(frozen=True)
class Findings:
    """The findings of the problems from `judge`, batch by batch.

    ``copied`` has the first and last source position of which a topic has a copy.
    """

    copied: Mapping[str, tuple[int, int]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches with FINDING_COLUMNS, from batches with the columns of `judge`."""
        import pyarrow as pa

        schema = arrow_schema(FINDING_COLUMNS)
        for batch in batches:
            yield pa.RecordBatch.from_pylist([self._finding(**problem) for problem in batch.to_pylist()], schema)

    def _finding(
        self, problem: str, topic: str, key: bytes, source_place: str | None, target_place: str | None
    ) -> dict[str, str | None]:
        detail, position = None, position_of(key)
        if problem == Problem.MISSING and position is not None:
            detail = self._where_missing(topic, position)
        elif is_unmarked(key):
            detail = "the copy does not say which entry it is a copy of; --match content does without"
        return {
            "problem": problem,
            "topic": topic,
            "key": key_for_people(key),
            "source_place": source_place,
            "target_place": target_place,
            "detail": detail,
        }

    def _where_missing(self, topic: str, position: int) -> str:
        if topic not in self.copied:
            return "the topic is empty"
        first, last = self.copied[topic]
        if position > last:
            return "behind the last copy: perhaps still on its way"
        return "before the first copy" if position < first else "between copies"
