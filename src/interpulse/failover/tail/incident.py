"""Record of a takeover: the last copy of each topic-partition, fixed before the other site was promoted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName

_DIRECTORY: Final = "incidents"
_BEFORE: Final = "before.json"


class IncidentError(ValueError):
    """An incident that is not there, or whose file cannot be used."""


@dataclass(frozen=True)
class LastCopy:
    """State of one topic-partition when the way from the lost site was closed."""

    topic: TopicName
    copied: Position = EARLIEST
    """Position at the lost site of the last entry that has a copy; EARLIEST if none has."""
    end: Position | None = None
    """Last position at the lost site by its last report, if there was one."""
    first: Position | None = None
    """Position at the lost site from which on entries without a copy are looked for. None: behind ``copied``."""
    promoted: Position | None = None
    """Last position at the site that took over when it was promoted. None: that of the copy of ``copied``."""

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> LastCopy:
        """Build it from the members of an object. Raise KeyError, TypeError or ValueError for unusable ones."""
        positions = {
            name: Position.parse(str(body[name]))
            for name in ("copied", "end", "first", "promoted")
            if body.get(name) is not None
        }
        return cls(TopicName.parse(str(body["topic"])), **positions)


@dataclass(frozen=True)
class Incident:
    """One takeover: its epoch, the site that was lost, and the site that serves since."""

    epoch: int
    lost: str
    to: str
    topics: tuple[LastCopy, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Incident:
        """Build it from the members of an object. Raise KeyError, TypeError or ValueError for unusable ones."""
        topics = tuple(map(LastCopy.from_json, body["topics"]))
        return cls(int(body["epoch"]), str(body["lost"]), str(body["to"]), topics)

    @classmethod
    def load(cls, directory: Path) -> Incident:
        """Read ``before.json`` of an incident. Raise IncidentError that names the file."""
        path = directory / _BEFORE
        try:
            return cls.from_json(json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise IncidentError(f"{path}: {error.strerror}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise IncidentError(f"{path} is not the record of a takeover, {error} is missing or unusable") from error


def incident_directory(state: Path, epoch: int | None) -> Path:
    """Return the directory of the incident of an epoch, or of the newest one. Raise IncidentError without one."""
    below = state / _DIRECTORY
    epochs = sorted(int(path.parent.name) for path in below.glob(f"*/{_BEFORE}") if path.parent.name.isdecimal())
    if not epochs:
        raise IncidentError(f"{below} has no incident: only a takeover leaves a tail")
    if epoch is not None and epoch not in epochs:
        known = ", ".join(map(str, epochs))
        raise IncidentError(f"{below} has no incident of epoch {epoch}: the epochs of takeovers are {known}")
    return below / str(epochs[-1] if epoch is None else epoch)
