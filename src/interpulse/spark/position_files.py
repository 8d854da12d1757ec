"""Files with the positions of copies: ``<statePath>/positions/*.json``, from tasks and commits to the replication job.

Tasks on the driver's machine write one every second, before what they have copied may be acknowledged on the source.
The commit of a batch writes what they have not. They are not synced: positions that a crash of the machine loses are
read from the target.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from interpulse.clock import now_ms
from interpulse.replication.position_runs import Run, checked_run
from interpulse.spark.state_disk import LOCAL_DISK, StateDisk, write_atomically

_log = logging.getLogger(__name__)

_SUFFIX: Final = ".json"
_GAP_FILE: Final = "gap"
_FILES_MAX: Final = 4096
"""Bound of unread files. At four tasks, a reader may be away for a quarter of an hour."""


class PositionFiles:
    """The positions of copies below a state path, written by many processes and read by one."""

    def __init__(self, state_path: str | Path, disk: StateDisk = LOCAL_DISK) -> None:
        self.has_gap = False
        """True if the last `read_new` came too late, or met a damaged file: copies are missing, read the target."""
        self._directory = Path(state_path) / "positions"
        self._disk = disk
        self._returned: list[str] = []
        self._gap: Hashable = None
        """Version of the gap that was reported."""

    def write(self, runs: Mapping[str, Sequence[Run]], *, writer: str) -> None:
        """Write the runs of source topic-partitions to a new file, if there are any.

        ``writer`` is unique among those that write at the same time. Raises OSError.
        """
        if not runs:
            return
        if len(self._names()) >= _FILES_MAX:
            _log.warning("positions of copies are not read and therefore deleted directory=%s", self._directory)
            self.clear()
            self._replace(_GAP_FILE, str(now_ms()))
        body = {topic: [(*run.source, *run.target, run.length) for run in items] for topic, items in runs.items()}
        self._replace(f"{now_ms()}-{writer}{_SUFFIX}", json.dumps(body))

    def read_new(self) -> dict[str, list[Run]]:
        """Return the runs that were written since the last call, by source topic-partition.

        The next call deletes their files, so keep them before. A reader that starts again gets what was not deleted,
        also a second time. Look at `has_gap` afterwards. Raises OSError.
        """
        for name in self._returned:
            self._disk.unlink(self._directory / name)
        self._returned = []
        self.has_gap = self._take_gap()
        runs: dict[str, list[Run]] = {}
        for name in self._names():
            for topic, items in self._read(name).items():
                runs.setdefault(topic, []).extend(items)
            self._returned.append(name)
        return runs

    def clear(self) -> None:
        """Delete all files unread."""
        for name in (*self._names(), _GAP_FILE):
            self._disk.unlink(self._directory / name)

    def _take_gap(self) -> bool:
        """Return True if files were deleted unread since the last call, which may have returned True for others."""
        path = self._directory / _GAP_FILE
        reported, self._gap = self._gap, self._disk.version(path)
        if self._gap is not None and self._gap == reported:
            self._disk.unlink(path)
            self._gap = None
        return self._gap is not None

    def _names(self) -> list[str]:
        """Return the names of complete files, in the order of time."""
        names = self._disk.names(self._directory)
        return sorted(name for name in names if name.endswith(_SUFFIX) and not name.startswith("."))

    def _read(self, name: str) -> dict[str, list[Run]]:
        path = self._directory / name
        text = self._disk.read(path)
        if text is None:
            return {}  # a writer has deleted all, and left a gap
        try:
            return _parsed(text)
        except ValueError as error:
            _log.warning("positions of copies cannot be read, the target has them file=%s error=%s", path, error)
            self.has_gap = True
            return {}

    def _replace(self, name: str, text: str) -> None:
        write_atomically(self._directory / name, text, durable=False, disk=self._disk)


def _parsed(text: str) -> dict[str, list[Run]]:
    """Parse the content of a file. Raises ValueError for anything else."""
    body: Any = json.loads(text)
    try:
        return {topic: [checked_run(*fields) for fields in items] for topic, items in body.items()}
    except (AttributeError, TypeError) as error:
        raise ValueError(f"not positions of copies: {error}") from error
