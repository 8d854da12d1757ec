"""Lag and copy rates of one route.

The lag is as Spark reports it, and from the source's cursor while Spark reports nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from interpulse.client.admin.admin_client import AdminClient
from interpulse.in_turns import concurrently
from interpulse.model.errors import PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.job.routes.route import Route
from interpulse.spark.job.source_backlog import Backlog, SourceBacklog, cursor_position

if TYPE_CHECKING:
    from interpulse.spark.job.reports.progress import BatchProgress, TopicLag

_SILENCE_S: Final = 3.0
_CAUGHT_UP_S: Final = 5.0
"""Pause between questions to the source while there is nothing to copy."""
_ASKED_IN_A_TURN: Final = 200


class RouteLag:
    """Lag of the topic-partitions of a route. ``progress`` is the report of the last micro-batch."""

    def __init__(self, route: Route, source: AdminClient) -> None:
        self.progress: BatchProgress | None = None
        self._route = route
        self._admin = source
        self._source = SourceBacklog(route.config.source)
        self._backlogs: dict[str, Backlog] = {}
        self._heard_at = 0.0
        self._asks_at = 0.0
        self._turn = 0
        self._live: Mapping[str, Position] = {}

    def note_progress(self, progress: BatchProgress) -> None:
        """Record a completed micro-batch."""
        self.progress = progress
        self._heard_at = time.monotonic()
        self._keep_held()

    def _keep_held(self) -> set[str]:
        """Keep the cursor's lag for held topics, where Spark's offsets are ahead of what is written."""
        held = set(self._route.files.held())
        self._source.forget(self._backlogs.keys() - held)
        self._backlogs = {name: backlog for name, backlog in self._backlogs.items() if name in held}
        return held

    async def refresh(self, names: Sequence[str], live: Mapping[str, Position]) -> None:
        """Read the lag from the source's cursors while Spark reports nothing (starting, failing, one long batch).

        ``live`` has the positions that the batch in progress has reached. With very many topic-partitions, each turn
        asks some of them.
        """
        self._live = live
        now = time.monotonic()
        if now - self._heard_at < _SILENCE_S:
            held = self._keep_held()
            names = [name for name in names if name in held]
        elif now < self._asks_at:
            return
        first = self._turn % max(1, len(names))
        asked = [*names[first:], *names[:first]][:_ASKED_IN_A_TURN]
        self._turn = first + len(asked)
        await concurrently(self._ask, asked)
        if names and all(name in self._backlogs and not self._backlogs[name].entries for name in names):
            self._asks_at = now + _CAUGHT_UP_S

    async def _ask(self, name: str) -> None:
        try:
            stats = await self._admin.topics.internal_stats(name)
        except PulsarError:
            return  # the source itself is away: what was known last stays
        position = cursor_position(stats, self._route.cursor)
        if position is not None:
            position = max(position, self._live.get(name, EARLIEST))
            self._backlogs[name] = await self._source.behind(name, position, stats)

    def of(self, name: str) -> Backlog | None:
        """Return the backlog of a topic-partition, if the source was asked for it."""
        return self._backlogs.get(name)

    def reported(self, name: str) -> TopicLag | None:
        """Return the lag of a topic-partition, if Spark has reported it."""
        return None if self.progress is None else self.progress.topics.get(name)

    async def close(self) -> None:
        await self._source.close()


_WINDOW_S: Final = 10.0


class CopyRate(NamedTuple):
    """Rate per second over the last ten seconds."""

    messages: float = 0.0
    bytes: float = 0.0


class RouteRates:
    """Recent writes of a route."""

    def __init__(self) -> None:
        self._written: deque[tuple[float, Mapping[str, Sequence[int]]]] = deque()
        self._messages_per_entry: dict[str, float] = {}

    def note(self, topics: Mapping[str, Sequence[int]], now: float) -> None:
        """Record the entries, messages and bytes of a completed batch by topic."""
        self._written.append((now, topics))
        for name, (entries, messages, _) in topics.items():
            self._messages_per_entry[name] = messages / entries

    def messages_in(self, name: str, entries: int | None) -> int | None:
        """Estimate the messages in waiting entries from the last written ones."""
        if not entries:
            return entries
        per_entry = self._messages_per_entry.get(name)
        return None if per_entry is None else round(entries * per_entry)

    def all(self, now: float) -> dict[str, CopyRate]:
        """Return the rates of topics that were written to; the others have none."""
        while self._written and self._written[0][0] <= now - _WINDOW_S:
            self._written.popleft()
        rates: dict[str, CopyRate] = {}
        for _, topics in self._written:
            for name, (_, messages, size) in topics.items():
                before = rates.get(name, CopyRate())
                rates[name] = CopyRate(before.messages + messages / _WINDOW_S, before.bytes + size / _WINDOW_S)
        return rates
