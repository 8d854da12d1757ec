"""A log of replication failures: one line per cluster and kind, for any number of topics.

The status of a topic has its own failure; the log gives the number of topics, the first of them, and the remedy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from interpulse.model.names import TopicName
from interpulse.replication.provision import ReplicationProblem

log = logging.getLogger(__name__)

_GATHER_SECONDS: Final = 1.0
"""The delay before a line: when a cluster fails, its topics notice one after another."""
_PAUSE_SECONDS: Final = 60.0


class Timer(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None: ...


def _later(seconds: float, call: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, call)


class ThrottledLog:
    """The log of replication failures. `close` drops the lines that still wait."""

    def __init__(self, *, later: Callable[[float, Callable[[], None]], Timer] = _later) -> None:
        self._later = later
        self._unreported: dict[tuple[str, str], dict[TopicName, ReplicationProblem]] = {}
        self._timers: dict[tuple[str, str], Timer] = {}

    def note(self, cluster: str, topic: TopicName, problem: ReplicationProblem) -> None:
        """Report a new failure of a topic; the line follows a little later, and includes failures until then."""
        kind = (cluster, problem.state)
        self._unreported.setdefault(kind, {})[topic] = problem
        if kind not in self._timers:
            self._timers[kind] = self._later(_GATHER_SECONDS, lambda: self._log_failures(kind))

    def _log_failures(self, kind: tuple[str, str]) -> None:
        """Log the failures of a kind, and count later ones for a while."""
        unreported = self._unreported.pop(kind, None)
        if not unreported:
            del self._timers[kind]
            return
        first, problem = next(iter(unreported.items()))
        log.warning(
            "topics cannot be replicated cluster=%s state=%s topics=%d first=%s reason=%s remedy=%s",
            *kind,
            len(unreported),
            first,
            problem.reason,
            problem.remedy,
        )
        self._timers[kind] = self._later(_PAUSE_SECONDS, lambda: self._log_failures(kind))

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
