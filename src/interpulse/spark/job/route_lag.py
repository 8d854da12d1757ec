"""How far one route is behind: what Spark reports, and while it is silent the cursor on the source."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import PulsarError
from interpulse.spark.job.progress import BatchProgress
from interpulse.spark.job.route import Route

__all__ = ["RouteLag"]

_SILENCE_S: Final = 3.0
_ASKED_MAX: Final = 200


class _Backlog(NamedTuple):
    """What waits on the source for one topic-partition, and since when."""

    entries: int
    since: float


class RouteLag:
    """``progress`` is what the last micro-batch reported."""

    def __init__(self, route: Route, source: AdminClient) -> None:
        self.progress: BatchProgress | None = None
        self._route = route
        self._source = source
        self._backlog: dict[str, _Backlog] = {}
        self._heard_at = 0.0

    def note_progress(self, progress: BatchProgress) -> None:
        """A micro-batch is over."""
        self.progress = progress
        self._heard_at = time.monotonic()
        self._keep_held()

    def _keep_held(self) -> set[str]:
        """Of what is held Spark's offsets run ahead of what is written: there the cursor goes on telling the lag."""
        held = set(self._route.files.held())
        self._backlog = {name: known for name, known in self._backlog.items() if name in held}
        return held

    async def refresh(self, names: Sequence[str]) -> None:
        """While Spark says nothing (starting, failing, one long batch) the cursor on the source tells the lag."""
        if time.monotonic() - self._heard_at < _SILENCE_S:
            held = self._keep_held()
            names = [name for name in names if name in held]
        if len(names) > _ASKED_MAX:
            return
        for name in names:
            try:
                waiting = _waiting(await self._source.topics.stats(name), self._route.cursor, self._route.remote)
            except PulsarError:
                continue  # the source itself is away: what was known last stays
            before = self._backlog.get(name)
            since = before.since if before is not None and before.entries else time.monotonic()
            self._backlog[name] = _Backlog(waiting, since)

    def of(self, name: str) -> tuple[int | None, float | None]:
        """Entries and seconds that a topic-partition is behind, as far as known."""
        backlog = self._backlog.get(name)
        if backlog is not None:
            return backlog.entries, round(time.monotonic() - backlog.since, 3) if backlog.entries else 0.0
        lag = self.progress.topics.get(name) if self.progress is not None else None
        return (None, None) if lag is None else (lag.entries, round(lag.seconds, 3))


def _waiting(stats: Mapping[str, Any], cursor: str, remote: str) -> int:
    """The backlog of the cursor: listed under replication on our brokers, under subscriptions on others."""
    replication = stats.get("replication", {}).get(remote, {})
    subscription = stats.get("subscriptions", {}).get(cursor, {})
    return int(replication.get("replicationBacklog") or subscription.get("msgBacklog") or 0)
