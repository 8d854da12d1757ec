"""Histories of operations on metadata, and the checker of `go_history/` that judges them.

An operation is a line of JSON with the moments of its call and its answer, by one clock. It is one of

* ``write`` and ``delete`` of a node, and ``check``, a commit that expects a node and does not change it;
* ``read`` of the newest value;
* ``claim``: a client acts in the belief that it has a lock;
* ``expire``: a session ends at some time after the call, and its ephemeral nodes with it.

If the answer to a write was lost, it has no moment: the write may be applied at any later time, or never.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from interpulse.storage.api import CommitConflict

Operation = dict[str, Any]
ABSENT: Operation = {"absent": True}

_SECONDS_MAX = 120


class Verdict(NamedTuple):
    """The judgement of a history."""

    linearizable: bool
    text: str
    """The counts, or the first answer that no order explains."""


def judge(program: Path, history: Sequence[Operation]) -> Verdict:
    """Check a history. Raise RuntimeError if the checker did not decide."""
    lines = "".join(json.dumps(operation) + "\n" for operation in history)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"no verdict: {done.stdout}{done.stderr}")
    return Verdict(done.returncode == 0, done.stdout)


class History:
    """Operations of several clients in one process."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    @contextmanager
    def write(self, key: str, client: str, kind: str, *, fresh: bool = True, **fields: object) -> Iterator[Operation]:
        """Record a commit that runs in the block.

        Without ``fresh`` a conflict is not recorded: it may rest on a state of the past.
        """
        operation = {"key": key, "client": client, "kind": kind, "call": now(), "return": None, "outcome": "unknown"}
        operation |= fields
        self.operations.append(operation)
        try:
            yield operation
            operation |= {"return": now(), "outcome": "ok"}
        except CommitConflict:
            if fresh:
                operation |= {"return": now(), "outcome": "conflict"}
            else:
                self.operations.remove(operation)
            raise

    def saw(self, key: str, client: str, kind: str, call: int, **fields: object) -> None:
        """Record a ``read`` or ``claim`` that began at ``call`` and ends now."""
        self.operations.append({"key": key, "client": client, "kind": kind, "call": call, "return": now(), **fields})

    def ended(self, sessions: dict[tuple[str, int], int]) -> None:
        """Record the ends of sessions: the first use of each by key and session."""
        for (key, session), call in sessions.items():
            fields = {"key": key, "client": "server", "kind": "expire", "call": call, "return": None}
            self.operations.append({**fields, "session": session})


def now() -> int:
    """Return the moment in nanoseconds."""
    return time.monotonic_ns()
