"""The lane files of a sink: ``<statePath>/lanes/<batch>.json``, one per committed batch, and ``anchors.json``.

Written by the sink's commit on the driver, atomically (temporary name, then rename), the last hundred kept. Each file
holds all lanes, so the newest one below a batch id is the state that batch starts from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interpulse.spark.lanes import LaneState, dump_lanes, load_lanes

__all__ = ["LaneFiles", "write_atomically"]

_KEPT = 100


def write_atomically(path: Path, text: str, *, durable: bool = True) -> None:
    """Replace a file so that a reader finds the old or the new content; ``durable``: also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)


class LaneFiles:
    """The state of all lanes of one sink, below a directory on the driver."""

    def __init__(self, state_path: str) -> None:
        self._root = Path(state_path)
        self._lanes = self._root / "lanes"

    def newest(self, below: int | None = None) -> tuple[int, dict[str, LaneState]]:
        """The newest batch id (below a bound) and its lanes; ``(-1, {})`` when there is none."""
        batches = [batch for batch in self._batches() if below is None or batch < below]
        if not batches:
            return -1, {}
        batch = max(batches)
        return batch, load_lanes((self._lanes / f"{batch}.json").read_text(encoding="utf-8"))

    def anchors(self) -> dict[str, LaneState]:
        """Where lanes stood before their first batch, as the replication job recorded it."""
        path = self._root / "anchors.json"
        return load_lanes(path.read_text(encoding="utf-8")) if path.exists() else {}

    def write_anchors(self, anchors: Mapping[str, LaneState]) -> None:
        write_atomically(self._root / "anchors.json", dump_lanes(anchors))

    def commit(self, batch: int, changed: Mapping[str, LaneState]) -> None:
        """Record the lanes after a batch: those that moved, and the others as they were."""
        _, before = self.newest(below=batch)
        write_atomically(self._lanes / f"{batch}.json", dump_lanes({**before, **changed}))
        for old in sorted(self._batches())[:-_KEPT]:
            (self._lanes / f"{old}.json").unlink(missing_ok=True)

    def forget(self) -> None:
        """Lane states without the checkpoint they belong to are worse than none: the target is asked instead."""
        for batch in self._batches():
            (self._lanes / f"{batch}.json").unlink()
        (self._root / "anchors.json").unlink(missing_ok=True)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """What the last batch wrote, for whoever reports progress."""
        write_atomically(self._root / "last_commit.json", json.dumps(summary), durable=False)

    def summary(self) -> dict[str, Any] | None:
        path = self._root / "last_commit.json"
        if not path.exists():
            return None
        body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return body

    def _batches(self) -> list[int]:
        if not self._lanes.is_dir():
            return []
        return [int(path.stem) for path in self._lanes.glob("*.json") if path.stem.isdigit()]
