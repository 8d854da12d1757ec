"""Positions of copies that are read from the target, where they were not collected or are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from interpulse.client.consuming.copied_entries import CopiedEntry, copied_entries
from interpulse.client.session import Session
from interpulse.in_turns import Turn
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.replication.position_runs import PositionRuns, Run
from interpulse.spark.reading.throttle import Rate, Throttle


async def rebuild_runs(
    session: Session,
    topic: TopicName,
    is_copy: Callable[[CopiedEntry], bool],
    after: Position,
    upto: Position,
    *,
    bytes_per_second: int,
) -> PositionRuns:
    """Return the runs of the copies in ``(after, upto]`` of a topic-partition of the target.

    ``is_copy`` selects the copies of one lane or replicator. An entry may have been stored twice, as chunks are that
    are sent again: its last copy counts. Reads ``bytes_per_second`` on average, 0 for no limit. Raises TopicNotFound.
    """
    runs, turn, limit = PositionRuns(), Turn(), _ReadLimit(str(topic), bytes_per_second)
    async with aclosing(copied_entries(session, topic, after, upto, on_arrival=limit.charge)) as copies:
        async for copy in copies:
            if is_copy(copy):
                runs.cut(copy.source)
                runs.add(Run(copy.source, copy.there, 1))
            await turn.give_way()
    return runs


class _ReadLimit:
    """Limit of the bytes that are read from one topic-partition."""

    def __init__(self, topic: str, bytes_per_second: int) -> None:
        self._topic = topic
        self._now = asyncio.get_running_loop().time
        self._throttle = Throttle()
        self._throttle.set_rates({topic: Rate(0, bytes_per_second)}, self._now())

    async def charge(self, entries: int, size: int) -> None:
        """Charge what was read, and wait until more may be read."""
        self._throttle.charge(self._topic, entries, size)
        debt_s = self._throttle.debt_s(self._topic, self._now())
        if debt_s:
            await asyncio.sleep(debt_s)
