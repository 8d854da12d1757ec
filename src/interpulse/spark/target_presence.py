"""Being seen on the target between micro-batches.

Lanes are open only while a task writes. A target that sees no producer and no subscription for a minute takes the topic
for inactive and deletes it with what was copied (``brokerDeleteInactiveTopicsEnabled``). Pulsar's own replicator stays
connected; so do we, with one producer per topic-partition that never sends anything.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Collection

from interpulse.client.entry_sender import EntrySender
from interpulse.client.session import Session
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName

__all__ = ["TargetPresence"]

log = logging.getLogger(__name__)

_OPEN_MS = 5_000


class TargetPresence:
    """See the module. Producers come back by themselves after a lost connection; `close` at the end."""

    def __init__(self, lane_name: str) -> None:
        self._name = f"{lane_name}.{secrets.token_hex(4)}"  # nobody waits for the one of an earlier run to go
        self._senders: dict[str, EntrySender] = {}

    async def keep(self, session: Session, names: Collection[str]) -> None:
        """Be connected to these topic-partitions. One that refuses is asked again with the next call: whether it can
        be written is for its lane to find out."""
        for name in names:
            sender = self._senders.get(name)
            if sender is not None and sender.failure is None:
                continue
            topic = TopicName.parse(name)
            sender = EntrySender(session, topic, self._name, schema_of_topic=True, takeover_timeout_ms=_OPEN_MS)
            try:
                await sender.open()
            except PulsarError as refusal:
                log.info("target topic is not kept connected topic=%s reason=%s", name, refusal)
                continue
            self._senders[name] = sender

    async def leave(self, names: Collection[str]) -> None:
        """Be no longer connected to these."""
        going = [self._senders.pop(name) for name in names if name in self._senders]
        await asyncio.gather(*(sender.close() for sender in going))

    async def close(self) -> None:
        await self.leave(list(self._senders))
