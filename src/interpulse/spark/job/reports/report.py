"""Interface through which the job reports what it does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

Records = Sequence[Mapping[str, Any]]
"""Status records of topic-partitions, as in the admin API."""


class Report(Protocol):
    """Receiver of events, and every second of the state of all topic-partitions if ``wants_records``."""

    wants_records: bool

    def take(self, event: Mapping[str, Any]) -> None: ...

    def show(self, records: Records) -> None: ...

    def close(self) -> None: ...


class JsonLines:
    """Report of one JSON object per line on standard output."""

    wants_records = False

    def take(self, event: Mapping[str, Any]) -> None:
        """Print an event. A closed pipe does not stop the job."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(event), flush=True)  # noqa: T201 - the job's output

    def show(self, records: Records) -> None:
        """Ignore records: their changes are events."""

    def close(self) -> None: ...
