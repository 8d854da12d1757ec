"""Incidents: what is known about a takeover, for the day on which the lost site is back.

Each has a directory, ``incidents/<epoch>`` below the state of the pair. ``before.json`` says what is at stake and, once
the way from the lost site is closed, the last copy of each topic-partition. With ``after.json`` the incident is closed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from interpulse.failover.journal import replace_file

_BEFORE: Final = "before.json"
_AFTER: Final = "after.json"


class Incidents:
    """Incidents of a pair, below its directory."""

    def __init__(self, state: Path) -> None:
        self._directory = state / "incidents"

    def directory(self, epoch: int) -> Path:
        return self._directory / str(epoch)

    def before(self, epoch: int) -> dict[str, Any] | None:
        """Return what was known before the takeover; None if nothing is stored."""
        path = self.directory(epoch) / _BEFORE
        if not path.exists():
            return None
        body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return body

    def write_before(self, epoch: int, body: Mapping[str, Any]) -> None:
        """Replace what is known before the takeover."""
        self._write(epoch, _BEFORE, body)

    def close(self, epoch: int, body: Mapping[str, Any]) -> None:
        """Close an incident, if there is one of this epoch."""
        if self.directory(epoch).exists():
            self._write(epoch, _AFTER, body)

    def open_epochs(self) -> list[int]:
        """Return the epochs of incidents that are not closed."""
        found = [path.parent for path in self._directory.glob(f"*/{_BEFORE}") if path.parent.name.isdecimal()]
        return sorted(int(path.name) for path in found if not (path / _AFTER).exists())

    def _write(self, epoch: int, name: str, body: Mapping[str, Any]) -> None:
        directory = self.directory(epoch)
        directory.mkdir(parents=True, exist_ok=True)
        replace_file(directory / name, json.dumps(body, ensure_ascii=False) + "\n")
