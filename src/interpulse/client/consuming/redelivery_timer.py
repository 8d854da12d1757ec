"""Timer for entries to be redelivered: negatively acknowledged, or not acknowledged in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from interpulse.model.ids import MessageId, Position


class RedeliveryTimer:
    """Holds messages for their delay, then returns all entries that are due together.

    Brokers redeliver whole entries. Therefore the messages of a batch share one delay, and each of them restarts it.
    Entries with the same delay become due in the order they were added, so each of the few delays has a queue.
    """

    def __init__(self, redeliver: Callable[[list[Position]], None]) -> None:
        self._redeliver = redeliver
        self._queues: dict[int, dict[Position, float]] = {}
        self._in_batches: dict[Position, set[int]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(self, message_id: MessageId, delay_ms: int) -> None:
        """Start or restart the delay of a message."""
        position = message_id.position
        if message_id.batch_index >= 0:
            self._in_batches.setdefault(position, set()).add(message_id.batch_index)
        self._forget(position)
        queue = self._queues.setdefault(delay_ms, {})
        queue[position] = due = self._loop.time() + delay_ms / 1000
        if self._timer is None or due < self._timer.when():
            self._arm()

    def discard(self, message_id: MessageId) -> None:
        """Remove a message. Its entry remains if other messages need it."""
        position = message_id.position
        others = self._in_batches.get(position)
        if others is not None:
            others.discard(message_id.batch_index)
            if others:
                return
            del self._in_batches[position]
        self._forget(position)

    def _forget(self, position: Position) -> None:
        for queue in self._queues.values():
            queue.pop(position, None)

    def discard_up_to(self, message_id: MessageId) -> None:
        """Remove this message and all before it."""
        if not self._queues:
            return
        position = message_id.position
        self._queues = {
            delay: {key: due for key, due in queue.items() if key >= position} for delay, queue in self._queues.items()
        }
        self._in_batches = {key: indexes for key, indexes in self._in_batches.items() if key >= position}
        for index in range(min(message_id.batch_index, 0), message_id.batch_index + 1):
            self.discard(message_id._replace(batch_index=index))

    def clear(self) -> None:
        self._queues.clear()
        self._in_batches.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        first_due = [next(iter(queue.values())) for queue in self._queues.values() if queue]
        if first_due:
            self._timer = self._loop.call_at(min(first_due), self._on_due)

    def _on_due(self) -> None:
        self._timer = None
        now = self._loop.time()
        due: list[tuple[float, Position]] = []
        for queue in self._queues.values():
            while queue and (first := next(iter(queue.items())))[1] <= now:
                del queue[first[0]]
                self._in_batches.pop(first[0], None)
                due.append((first[1], first[0]))
        self._queues = {delay: queue for delay, queue in self._queues.items() if queue}
        if due:
            self._redeliver([position for _, position in sorted(due)])
        self._arm()
