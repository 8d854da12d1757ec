"""Says in the log what keeps topics from being replicated: once per cluster and kind, however many topics there are.

What stands in the way of a single topic is in its status; the log names how many, the first of them, and the remedy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from interpulse.model.names import TopicName
from interpulse.replication.provision import ReplicationProblem

__all__ = ["ThrottledLog"]

log = logging.getLogger(__name__)

_GATHER_SECONDS: Final = 1.0
"""When a cluster goes away, its topics notice one after another."""
_PAUSE_SECONDS: Final = 60.0


class Timer(Protocol):
    """What has been put off."""

    def cancel(self) -> None: ...


def _later(seconds: float, call: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, call)


class ThrottledLog:
    """See the module. `close` at the end: what was not told yet is not told any more."""

    def __init__(self, *, later: Callable[[float, Callable[[], None]], Timer] = _later) -> None:
        self._later = later
        self._untold: dict[tuple[str, str], dict[TopicName, ReplicationProblem]] = {}
        self._timers: dict[tuple[str, str], Timer] = {}

    def note(self, cluster: str, topic: TopicName, problem: ReplicationProblem) -> None:
        """Something new stands in the way of a topic; told a little later, with what others have met by then."""
        kind = (cluster, problem.state)
        self._untold.setdefault(kind, {})[topic] = problem
        if kind not in self._timers:
            self._timers[kind] = self._later(_GATHER_SECONDS, lambda: self._tell(kind))

    def _tell(self, kind: tuple[str, str]) -> None:
        """Later events of this kind are counted for a while, and logged together at its end."""
        untold = self._untold.pop(kind, None)
        if not untold:
            del self._timers[kind]
            return
        first, problem = next(iter(untold.items()))
        log.warning(
            "topics cannot be replicated cluster=%s state=%s topics=%d first=%s reason=%s remedy=%s",
            *kind,
            len(untold),
            first,
            problem.reason,
            problem.remedy,
        )
        self._timers[kind] = self._later(_PAUSE_SECONDS, lambda: self._tell(kind))

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
