"""Where the job tells what it does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

__all__ = ["JsonLines", "Records", "Report"]

Records = Sequence[Mapping[str, Any]]
"""Status records of topic-partitions, as the admin API has them."""


class Report(Protocol):
    """Takes events as they come, and every second what is known of all topic-partitions if ``wants_records``."""

    wants_records: bool

    def take(self, event: Mapping[str, Any]) -> None: ...

    def show(self, records: Records) -> None: ...

    def close(self) -> None: ...


class JsonLines:
    """One JSON object per line on standard output."""

    wants_records = False

    def take(self, event: Mapping[str, Any]) -> None:
        """A reader that is gone is no reason to stop."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(event), flush=True)  # noqa: T201 - the job's output

    def show(self, records: Records) -> None:
        """They are in the events as far as they change."""

    def close(self) -> None: ...
