"""Hands the rows of both sides to the rule of copies, group by group; what it finds are rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from interpulse.rules.copies import Discrepancy, Item, Problem, judge
from interpulse.spark.arrow_frames import arrow_schema
from interpulse.spark.verify.digests import is_unmarked, key_for_people, position_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FINDING_COLUMNS", "JUDGED_COLUMNS", "SOURCE", "TARGET", "Finding", "Judge"]

SOURCE: Final = 0
TARGET: Final = 1

JUDGED_COLUMNS: Final = ("topic", "key", "side", "identity", "content", "place", "overtaken")
"""What `Judge` reads of the rows, which come sorted by topic, key, side and place."""

FINDING_COLUMNS: Final = (
    "problem STRING, topic STRING, key STRING, source_place STRING, target_place STRING, detail STRING"
)

_ROWS_MAX: Final = 8192


class Finding(NamedTuple):
    """One problem. ``key`` is that of the message, where messages are matched by it."""

    problem: str
    topic: str
    key: str | None
    source_place: str | None
    target_place: str | None
    detail: str | None


@dataclass(frozen=True)
class Judge:
    """Judges group by group. ``copied``: the first and last source position of which a topic has a copy."""

    copied: Mapping[str, tuple[int, int]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(FINDING_COLUMNS)
        rows: list[dict[str, Any]] = []
        for finding in self.findings(batches):
            rows.append(finding._asdict())
            if len(rows) >= _ROWS_MAX:
                yield pa.RecordBatch.from_pylist(rows, schema)
                rows = []
        yield pa.RecordBatch.from_pylist(rows, schema)

    def findings(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Finding]:
        """Of batches with the columns of JUDGED_COLUMNS."""
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True))
        for (topic, key), members in groupby(rows, lambda row: row[:2]):
            sides: tuple[list[Item], list[Item]] = ([], [])
            for _, _, side, identity, content, place, overtaken in members:
                sides[side].append(Item(identity, content, place, overtaken))
            for problem in judge(*sides):
                yield self._finding(topic, key, problem)

    def _finding(self, topic: str, key: bytes, found: Discrepancy) -> Finding:
        here = None if found.original is None else found.original.place
        there = None if found.copy is None else found.copy.place
        detail, position = None, position_of(key)
        if found.problem is Problem.MISSING and position is not None:
            detail = self._where_missing(topic, position)
        elif is_unmarked(key):
            detail = "the copy does not say which entry it is a copy of; --match content does without"
        return Finding(str(found.problem), topic, key_for_people(key), here, there, detail)

    def _where_missing(self, topic: str, position: int) -> str:
        if topic not in self.copied:
            return "nothing of the topic is there"
        first, last = self.copied[topic]
        if position > last:
            return "behind the last copy: perhaps still on its way"
        return "before the first copy" if position < first else "between copies"
