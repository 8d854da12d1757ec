"""Journal of one operation: a line for each event, synced before a step acts and after it holds.

After a kill the last line says how far the operation came. Lines are JSON in ``operations/<id>.jsonl``; the evidence of
a step for each topic is in ``operations/<id>.<step>.jsonl``, which appears complete.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from interpulse.failover.outcome import OperationFailed, Outcome

log = logging.getLogger(__name__)

BEGIN: Final = "begin"
DONE: Final = "done"
END: Final = "end"
_START: Final = "operation"
_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    _START: frozenset(),
    BEGIN: frozenset({"step", "at"}),
    DONE: frozenset({"step", "at", "evidence"}),
    END: frozenset({"outcome", "at"}),
}
"""Members that a line has besides its event. Those of the first line are of `Operation`."""


@dataclass(frozen=True)
class Operation:
    """One switch or takeover: its target, its epoch, and who began it at what time (ISO 8601)."""

    id: str
    kind: str
    to: str
    epoch: int
    began: str
    holder: str

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Operation:
        """Build it from the members of an object. Raise ValueError for one that is incomplete."""
        try:
            texts = {name: str(body[name]) for name in ("id", "kind", "to", "began", "holder")}
            return cls(**texts, epoch=int(body["epoch"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the record of an operation, {error} is missing or unusable: {body}") from None


class Journal:
    """Journal of an operation. The constructor reads what is there; `create` begins a new one."""

    def __init__(self, path: Path) -> None:
        """Read a journal. Raise OperationFailed that names the line if it cannot be used, and OSError."""
        self._path = path
        content = path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        if complete != content:  # the line that a kill cut off
            os.truncate(path, len(complete))
        self._lines = [_parsed(path, number, line) for number, line in enumerate(complete.split(b"\n")[:-1], 1)]
        try:
            self.operation = Operation.from_json(self._lines[0] if self._lines else {})
        except ValueError as error:
            raise _unusable(path, 1, str(error)) from error

    @classmethod
    def create(cls, state: Path, operation: Operation) -> Journal:
        """Begin the journal of an operation below the directory of the pair."""
        path = path_of(state, operation.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, _line({"event": _START, **asdict(operation)}))
        return cls(path)

    @classmethod
    def taken_over(cls, state: Path, record: Mapping[str, Any]) -> Journal:
        """Begin the journal of an operation that another machine began, with the step that its last record names.

        A journal that is here goes on. Raise ValueError for the record of no operation, and OperationFailed for a
        journal that cannot be used.
        """
        operation = Operation.from_json(record)
        if path_of(state, operation.id).exists():
            return cls(path_of(state, operation.id))
        journal = cls.create(state, operation)
        if "step" in record:
            journal.begin(str(record["step"]), str(record["at"]))
        return journal

    @classmethod
    def unfinished(cls, state: Path) -> Journal | None:
        """Return the newest journal of the directory that has no end; None without one.

        A file that cannot be used is logged and left out: only its own operation needs it.
        """
        paths = sorted((state / "operations").glob("*.jsonl"), reverse=True)
        journals = map(cls._read_or_log, (path for path in paths if path.name.count(".") == 1))
        return next((each for each in journals if each is not None and each.outcome is None), None)

    @classmethod
    def _read_or_log(cls, path: Path) -> Journal | None:
        try:
            return cls(path)
        except OperationFailed as error:
            log.warning("journal is left out reason=%s", error)
            return None

    @property
    def last(self) -> Mapping[str, Any]:
        """Newest line."""
        return self._lines[-1]

    @property
    def outcome(self) -> str | None:
        """Outcome of an operation that has ended; None before."""
        return self.last.get("outcome") if self.last["event"] == END else None

    @property
    def started_steps(self) -> frozenset[str]:
        """Names of the steps whose act was started, in this run or an earlier one."""
        return frozenset(line["step"] for line in self._lines if line["event"] == BEGIN)

    def evidence_of(self, step: str) -> Mapping[str, Any] | None:
        """Return the evidence with which a step was done; None if it was not."""
        done = (line for line in reversed(self._lines) if line["event"] == DONE and line["step"] == step)
        return next((line["evidence"] for line in done), None)

    def done_at(self, step: str) -> str | None:
        """Return the time at which a step was first seen to hold; None if it was not."""
        return next((line["at"] for line in self._lines if line["event"] == DONE and line["step"] == step), None)

    def begin(self, step: str, at: str) -> None:
        """Note that a step is going to act."""
        self._append({"event": BEGIN, "step": step, "at": at})

    def done(self, step: str, at: str, evidence: Mapping[str, Any]) -> None:
        """Note that a step holds."""
        self._append({"event": DONE, "step": step, "at": at, "evidence": dict(evidence)})

    def end(self, outcome: str, at: str) -> None:
        """Note the end of the operation."""
        self._append({"event": END, "outcome": outcome, "at": at})

    def write_evidence(self, step: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace the rows of evidence of a step."""
        replace_file(self._path.with_suffix(f".{step}.jsonl"), "".join(map(_line, rows)))

    def _append(self, line: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(line))
            file.flush()
            os.fsync(file.fileno())
        self._lines.append(line)


def path_of(state: Path, operation_id: str) -> Path:
    """Return the path of the journal of an operation below the directory of the pair."""
    return state / "operations" / f"{operation_id}.jsonl"


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """Return a line. Raise OperationFailed if it is not one of a journal."""
    try:
        body = json.loads(line)
    except ValueError as error:
        raise _unusable(path, number, f"it is no JSON, {error}") from error
    event = str(body.get("event")) if isinstance(body, dict) else ""
    if event not in _MEMBERS:
        raise _unusable(path, number, f"it has none of the events {', '.join(_MEMBERS)}")
    if missing := _MEMBERS[event] - body.keys():
        raise _unusable(path, number, f"the event {event} has no {', '.join(sorted(missing))}")
    return dict(body)


def _unusable(path: Path, number: int, reason: str) -> OperationFailed:
    return OperationFailed(
        f"{path} line {number} is not one of a journal: {reason}. Move the file away; if its operation is unfinished, "
        "the same command with --resume goes on from what both sites show",
        Outcome.REFUSED,
    )


def _line(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False) + "\n"


def replace_file(path: Path, text: str) -> None:
    """Write a file that appears complete and durable, in place of one that is there. Raise OSError."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raise OSError."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
