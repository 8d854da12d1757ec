"""Comparison of arrived and published messages. Pure: rows and messages in, findings out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from dataset import Row

ROW_PROPERTY = "row"
REPLICATION_PREFIXES = ("__MSG_PROP_REPL_", "__interpulse_")
EXAMPLES_MAX = 5


@dataclass(slots=True)
class Verdict:
    """Counts of all errors, with a few examples of each kind."""

    published: int
    arrived: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        return not self.problems and self.arrived == self.published

    def add(self, problem: str, example: str) -> None:
        self.problems[problem] += 1
        if self.problems[problem] <= EXAMPLES_MAX:
            self.examples.append(f"{problem}: {example}")

    def findings(self) -> list[str]:
        """Return the errors as lines: the count of each kind, then the examples."""
        counts = [f"  {problem}: {count:,}" for problem, count in self.problems.most_common()]
        return counts + [f"    {example}" for example in self.examples]


def verdict_lines(verdict: Verdict, equal: str, different: str) -> list[tuple[str, str | None]]:
    """Return the lines of a verdict with their styles: one if everything is equal, else also the differences."""
    if verdict.equal:
        return [(f"verified: all {verdict.published:,} {equal}", "bold green")]
    findings: list[tuple[str, str | None]] = [(line, None) for line in verdict.findings()]
    return [(f"DIFFERENT: {verdict.published:,} {different}", "bold red"), *findings]


class Ledger:
    """Digests of all published rows, against which arriving messages are checked."""

    def __init__(self) -> None:
        self._digests: list[bytes] = []
        self._seen = bytearray()
        self._last_row_of_key: dict[tuple[int, str | None], int] = {}
        self._partition_of_key: dict[str, int] = {}
        self.verdict = Verdict(published=0)

    def published(self, row: Row) -> dict[str, str]:
        """Record a row that is about to be sent, and return the properties to send with it."""
        properties = {ROW_PROPERTY: str(len(self._digests))}
        self._digests.append(_digest(row.value, row.key, row.event_time_ms, properties))
        self._seen.append(0)
        return properties

    def arrived(
        self, partition: int, value: bytes, key: str | None, event_time_ms: int | None, properties: Mapping[str, str]
    ) -> None:
        """Check one message of a partition, in the order in which the partition delivers it."""
        self.verdict.arrived += 1
        own = {name: text for name, text in properties.items() if not name.startswith(REPLICATION_PREFIXES)}
        number = int(own.get(ROW_PROPERTY, "-1"))
        if not 0 <= number < len(self._digests):
            self.verdict.add("unknown message", f"partition {partition}, key {key}, properties {own}")
            return
        if self._seen[number]:
            self.verdict.add("duplicate", f"row {number} in partition {partition}")
        self._seen[number] = 1
        if _digest(value, key, event_time_ms, own) != self._digests[number]:
            self.verdict.add("different content", f"row {number}: key {key}, event time {event_time_ms}, {own}")
        self._check_order(partition, key, number)

    def _check_order(self, partition: int, key: str | None, number: int) -> None:
        if key is not None and self._partition_of_key.setdefault(key, partition) != partition:
            self.verdict.add("key in two partitions", f"key {key} in {partition}")
        if number < self._last_row_of_key.get((partition, key), -1):
            self.verdict.add("out of order", f"row {number} of key {key} in partition {partition}")
        self._last_row_of_key[partition, key] = number

    def conclude(self) -> Verdict:
        """Count the missing messages and return the verdict."""
        self.verdict.published = len(self._digests)
        for number, seen in enumerate(self._seen):
            if not seen:
                self.verdict.add("missing", f"row {number}")
        return self.verdict


def _digest(value: bytes, key: str | None, event_time_ms: int | None, properties: Mapping[str, str]) -> bytes:
    summary = repr((key, event_time_ms, sorted(properties.items()))).encode()
    return blake2b(value + b"\0" + summary, digest_size=16).digest()
