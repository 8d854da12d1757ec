"""Presence on the target between micro-batches.

Lanes are open only while a task writes. A target that sees no producer and no subscription for a minute considers the
topic inactive and deletes it with its copies (``brokerDeleteInactiveTopicsEnabled``). Pulsar's own replicator stays
connected. So does the job, with one producer per topic-partition that never sends anything.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Collection
from typing import Final

from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.session import Session
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName

log = logging.getLogger(__name__)

_OPEN_MS: Final = 5_000
_OPENED_AT_ONCE: Final = 16


class TargetPresence:
    """Idle producers on the target; see the module. They reconnect by themselves. Call `close` at the end."""

    def __init__(self, lane_name: str) -> None:
        self._name = f"{lane_name}.{secrets.token_hex(4)}"  # does not wait until the one of an earlier run is gone
        self._senders: dict[str, EntrySender] = {}
        self._slots = asyncio.Semaphore(_OPENED_AT_ONCE)

    async def keep(self, session: Session, names: Collection[str]) -> None:
        """Stay connected to these topic-partitions. A refused one is retried with the next call.

        The lane of a topic-partition finds out whether it can be written.
        """
        await asyncio.gather(*(self._open(session, name) for name in names if not self._is_open(name)))

    def _is_open(self, name: str) -> bool:
        sender = self._senders.get(name)
        return sender is not None and sender.failure is None

    async def _open(self, session: Session, name: str) -> None:
        topic = TopicName.parse(name)
        sender = EntrySender(
            session, topic, self._name, schema_of_topic=True, takeover_timeout_ms=_OPEN_MS, encrypted=True
        )
        try:
            async with self._slots:
                await sender.open()
        except PulsarError as refusal:
            log.info("target topic is not kept connected topic=%s reason=%s", name, refusal)
            return
        self._senders[name] = sender

    async def leave(self, names: Collection[str]) -> None:
        """Disconnect from these topic-partitions. A failure is logged and does not affect the others."""
        going = [self._senders.pop(name) for name in names if name in self._senders]
        ends = await asyncio.gather(*(sender.close() for sender in going), return_exceptions=True)
        for sender, end in zip(going, ends, strict=True):
            if end is not None:
                log.warning("target topic not left properly topic=%s", sender.topic, exc_info=end)

    async def close(self) -> None:
        await self.leave(list(self._senders))
