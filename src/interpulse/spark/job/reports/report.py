"""Interface through which the job reports what it does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Records = Sequence[Mapping[str, Any]]
"""Status records of topic-partitions, as in the admin API."""


class Written(NamedTuple):
    """Entries that were written, with their messages and bytes."""

    entries: int
    messages: int
    bytes: int

    def plus(self, other: Written) -> Written:
        return Written(*(mine + its for mine, its in zip(self, other, strict=True)))

    def less(self, other: Written) -> Written:
        """Return the difference, nothing of what would be negative."""
        return Written(*(max(0, mine - its) for mine, its in zip(self, other, strict=True)))


NOTHING_WRITTEN = Written(0, 0, 0)


class Report(Protocol):
    """Receiver of events, and every second of the state of all topic-partitions if ``wants_records``."""

    wants_records: bool

    def take(self, event: Mapping[str, Any]) -> None: ...

    def show(self, records: Records, written: Mapping[str, Written]) -> None:
        """Show the state, and what was written since the last call by cluster, also within a micro-batch."""

    def close(self) -> None: ...


class JsonLines:
    """Report of one JSON object per line on standard output."""

    wants_records = False

    def take(self, event: Mapping[str, Any]) -> None:
        """Print an event. A closed pipe does not stop the job."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(event), flush=True)  # noqa: T201 - the job's output

    def show(self, records: Records, written: Mapping[str, Written]) -> None:
        """Ignore records: their changes are events."""

    def close(self) -> None: ...
