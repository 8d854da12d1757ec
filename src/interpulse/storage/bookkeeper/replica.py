"""One slot in the ensemble of a ledger that is being written: its bookie, and the unanswered entries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from interpulse.storage.bookkeeper.bookies import Bookies
from interpulse.storage.bookkeeper.connection import BookieConnection
from interpulse.storage.bookkeeper.errors import BookieAway, Code, meaning
from interpulse.storage.bookkeeper.pending import PendingEntries

_PAUSE_S: Final = 0.05  # between attempts to reconnect
_REFUSED_PAUSE_S: Final = (0.01, 1.0)  # before entries are sent again to a bookie that was too busy
_FATAL: Final = (Code.FENCED, Code.UNAUTHORIZED, Code.BAD_REQUEST, Code.BAD_VERSION)


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """Time-outs after which a bookie has failed for a ledger."""

    reconnect_s: float = 1.0  # the longest wait for a lost connection
    busy_s: float = 30.0  # the longest time for which the bookie may be too busy


class ReplicaOwner(Protocol):
    """The writer of the ledger, as seen by a slot of its ensemble. Its methods must not raise."""

    ledger_id: int

    def on_stored(self) -> None:
        """Report that the bookie has more entries that `PendingEntries` waits for."""

    def on_failed(self, slot: int, reason: str) -> None:
        """Report once that the bookie has failed."""

    def on_refused(self, code: int) -> None:
        """Report that this client can no longer write the ledger."""


class Replica:
    """Sends entries to a bookie, repeatedly if needed, until it fails; `PendingEntries` has the unanswered ones."""

    __slots__ = (  # each open ledger has several replicas
        "_bookies", "_busy", "_busy_since", "_config", "_connecting", "_connection", "_loop", "_owner", "_pause_s",
        "_pending", "_slot", "_stopped", "_timer", "bookie_id",
    )  # fmt: skip

    def __init__(
        self,
        bookie_id: str,
        slot: int,
        owner: ReplicaOwner,
        pending: PendingEntries,
        bookies: Bookies,
        config: ReplicaConfig,
    ) -> None:
        self.bookie_id = bookie_id
        self._slot = slot
        self._owner = owner
        self._pending = pending
        self._bookies = bookies
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._busy: set[int] | None = None  # entries that were refused for now
        self._busy_since: float | None = None
        self._pause_s = _REFUSED_PAUSE_S[0]
        self._timer: asyncio.TimerHandle | None = None
        self._connection: BookieConnection | None = bookies.connected(bookie_id)
        self._connecting: asyncio.Task[None] | None = None
        self._stopped = False

    def send(self, entry_ids: range, frames: Sequence[bytes]) -> None:
        """Send the bookie its share of new entries."""
        if not self._stopped:
            share = self._pending.share(self._slot, entry_ids)
            self._send(share, frames if len(share) == len(frames) else None)

    def send_unanswered(self) -> None:
        """Send all entries that the bookie has not answered, in order."""
        if not self._stopped:
            self._send(self._pending.waiting(self._slot))

    def _send(self, entry_ids: Sequence[int], frames: Sequence[bytes] | None = None) -> None:
        if not entry_ids:
            return
        if self._connection is not None:
            frames = self._pending.frames(entry_ids) if frames is None else frames
            self._connection.add(self._owner.ledger_id, entry_ids, frames, self._answered)
        elif self._connecting is None:
            self._begin_connecting(0.0)

    def stop(self) -> None:
        """Stop waiting for the bookie."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._connecting is not None and self._connecting is not asyncio.current_task():
            self._connecting.cancel()

    def _answered(self, first: int, count: int, code: int) -> None:
        if self._stopped:
            return
        if code == Code.OK:
            self._busy_since = None
            self._pending.stored(self._slot, first, count)
            self._owner.on_stored()
        elif code == Code.TOO_MANY_REQUESTS:
            self._refused_for_now(range(first, first + count))
        elif code == Code.CONNECTION_LOST:
            self._reconnect()
        elif code in _FATAL:
            self.stop()
            self._owner.on_refused(code)
        else:
            self._fail(meaning(code))

    def _refused_for_now(self, entry_ids: range) -> None:
        now = self._loop.time()
        if self._busy_since is None:
            self._busy_since, self._pause_s = now, _REFUSED_PAUSE_S[0]
        if now - self._busy_since > self._config.busy_s:
            self._fail(f"{meaning(Code.TOO_MANY_REQUESTS)} for {self._config.busy_s:g} s")
            return
        if self._busy is None:
            self._busy = set()
        self._busy.update(entry_ids)
        if self._timer is None:
            self._timer = self._loop.call_later(self._pause_s * random.uniform(1, 2), self._send_busy)
            self._pause_s = min(self._pause_s * 2, _REFUSED_PAUSE_S[1])

    def _send_busy(self) -> None:
        self._timer = None
        busy, self._busy = self._busy, None
        if busy and self._connection is not None:
            self._send([entry_id for entry_id in self._pending.waiting(self._slot) if entry_id in busy])

    def _reconnect(self) -> None:
        """Begin to reconnect, once for all entries that the lost connection affects; all of them are sent again."""
        self._connection = None
        self._busy = None
        if self._connecting is None:
            self._begin_connecting(self._config.reconnect_s)

    def _begin_connecting(self, seconds: float) -> None:
        name = f"ledger {self._owner.ledger_id} to a bookie"
        self._connecting = asyncio.create_task(self._connect(seconds), name=name)

    async def _connect(self, seconds: float) -> None:
        """Try to connect for this long, but at least once."""
        until = self._loop.time() + seconds
        while True:
            try:
                async with asyncio.timeout_at(until if seconds else None):
                    self._connection = await self._bookies.connect(self.bookie_id)
            except (BookieAway, TimeoutError) as error:
                if self._loop.time() >= until:
                    self._connecting = None
                    self._fail(str(error) or meaning(Code.CONNECTION_LOST))
                    return
                await asyncio.sleep(_PAUSE_S)
                continue
            self._connecting = None
            self.send_unanswered()
            return

    def _fail(self, reason: str) -> None:
        if not self._stopped:
            self.stop()
            self._owner.on_failed(self._slot, reason)
