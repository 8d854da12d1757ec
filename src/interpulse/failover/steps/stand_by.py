"""Step 9 of a switch: what the target takes arrives at the origin, which stands by."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Final

from interpulse.failover.operation import Evidence
from interpulse.failover.steps.plain_step import PlainStep
from interpulse.failover.switch import Switch
from interpulse.model.errors import AlreadyExists
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName
from interpulse.rules.failover_role import HEARTBEAT

_LIMIT_S: Final = 30


class StandBy(PlainStep):
    """A heartbeat that is published at the target and copied to the origin. Without it there is a warning."""

    name = "stand by"
    limit_s = _LIMIT_S
    overdue = None

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._topic = TopicName.parse(f"{switch.config.control_topic}{HEARTBEAT}")
        self._sent: MessageId | None = None
        self._sent_at = 0.0

    @property
    def shown(self) -> str:
        """Name for people."""
        return f"heartbeat {self._switch.target.access.name} -> {self._switch.origin.access.name}"

    async def act(self) -> None:
        """Publish the heartbeat."""
        switch = self._switch
        with suppress(AlreadyExists):
            await switch.target.access.admin.topics.create(self._topic)
        producer = await switch.target.access.client.create_producer(str(self._topic))
        async with producer:
            self._sent_at = switch.seconds()
            self._sent = await producer.send(json.dumps({"operation": switch.operation.id}))

    async def holds(self) -> Evidence | None:
        """Return the time that the heartbeat took; None until it has arrived."""
        if self._sent is None or await self._switch.origin.access.last_copied(self._topic) < self._sent.position:
            return None
        seconds = self._switch.seconds() - self._sent_at
        return Evidence(f"{self.shown} {seconds:.2f} s", {"seconds": round(seconds, 3)})
