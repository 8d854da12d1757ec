"""Incidents: what is known about a takeover, for the day on which the lost site is back.

Each has a directory, ``incidents/<epoch>`` below the state of the pair. ``before.json`` says what is at stake and, once
the way from the lost site is closed, the last copy of each topic-partition. With ``after.json`` the incident is closed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from interpulse.failover.journal import Journal, replace_file
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.pair import TAKEOVER

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

    def after(self, epoch: int) -> dict[str, Any] | None:
        """Return the record with which an incident was closed; None while it is open."""
        path = self.directory(epoch) / _AFTER
        body: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        return body

    def closed_by(self, operation: str) -> list[int]:
        """Return the epochs of incidents that an operation has closed, by its id."""
        epochs = [int(path.parent.name) for path in self._directory.glob(f"*/{_AFTER}") if path.parent.name.isdecimal()]
        return [epoch for epoch in epochs if ((self.after(epoch) or {}).get("operation") or {}).get("id") == operation]

    def _write(self, epoch: int, name: str, body: Mapping[str, Any]) -> None:
        directory = self.directory(epoch)
        directory.mkdir(parents=True, exist_ok=True)
        replace_file(directory / name, json.dumps(body, ensure_ascii=False) + "\n")


def refuse_open_incidents(state: Path) -> None:
    """Raise OperationFailed if an incident is open that is not the one of an unfinished takeover."""
    incidents, journal = Incidents(state), Journal.unfinished(state)
    own = journal.operation.epoch if journal is not None and journal.operation.kind == TAKEOVER else None
    others = [epoch for epoch in incidents.open_epochs() if epoch != own]
    if others:
        raise OperationFailed(
            f"The incident of epoch {others[0]} is open: {incidents.directory(others[0])} has no after.json. Its lost "
            "site may have messages that are nowhere else: merge them with reconcile when that site is back, or put "
            "a file after.json there once they are looked after",
            Outcome.REFUSED,
        )
