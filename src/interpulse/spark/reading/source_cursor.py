"""One topic-partition of the source as the driver follows it: its end, and its acknowledged position."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from interpulse.client.session import Session
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.client.transport.connection import Connection
from interpulse.model.errors import ConsumerBusy, PulsarError
from interpulse.model.ids import LATEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.reading.planner import TopicEnd
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.cursor_promise import ENTRY_READER_PROPERTY
from interpulse.wire.frames import MessageRun
from interpulse.wire.ids import message_id_to_wire, position_from_wire

_BUSY_TIMEOUT_MS: Final = 30_000


class SourceCursor:
    """Consumer that receives nothing: it asks for the last entry and for the acknowledged position.

    It belongs to the durable subscription if the options name one, else it leaves nothing behind. While the topic is
    idle it can :meth:`rest`.

    Our brokers refuse one for a replication cursor that policies have not opened (SubscriptionNotFound). The topic then
    keeps its position, and resumes at its cursor once there is one again.
    """

    def __init__(self, session: Session, topic: TopicName, options: ReadOptions, *, earliest: bool) -> None:
        self.topic = topic
        self.acknowledged: Position | None = None
        self._session = session
        self._options = options
        self._durable = options.predefined_subscription is not None
        self._name = options.predefined_subscription or f"{options.subscription_prefix}-{secrets.token_hex(5)}"
        self._earliest = earliest
        self._connection: Connection | None = None
        self._id = -1
        self._ring: Callable[[], None] | None = None
        self._beside: SourceCursor | None = None

    async def end(self) -> TopicEnd:
        """Return the last entry and the position that the durable subscription has acknowledged.

        Raise TopicNotFound.

        With ``readCompacted`` it is the last entry that compaction left. A durable subscription is not opened that way:
        its cursor would wait for the compacted entries to be acknowledged.
        """
        last, stands = await self._ask()
        if not self._durable:
            # It was opened at the end of the log, and never moves.
            return TopicEnd(last, None, stands if last.entry < 0 or self._options.read_compacted else None)
        if self._options.read_compacted:
            return (await self._passing().end())._replace(acknowledged=stands)
        return TopicEnd(last, stands)

    async def _ask(self) -> tuple[Position, Position | None]:
        """Ask for the last entry and the position of the subscription."""
        connection = self._connection or await self._open()
        consumer_id = self._id
        try:
            answer = await connection.request(pb.CommandGetLastMessageId(consumer_id=consumer_id))
        except PulsarError:
            self._connection = None  # the next question opens another consumer, which waits for the end of this one
            self._session.spawn(connection.consumers.close(consumer_id))
            raise
        response = answer.getLastMessageIdResponse
        stands = None
        if response.HasField("consumer_mark_delete_position"):
            stands = position_from_wire(response.consumer_mark_delete_position)
        return position_from_wire(response.last_message_id), stands

    def _passing(self) -> SourceCursor:
        """Open a second consumer beside the durable subscription, which leaves nothing behind."""
        if self._beside is None:
            passing = replace(self._options, predefined_subscription=None)
            self._beside = SourceCursor(self._session, self.topic, passing, earliest=False)
        return self._beside

    async def _open(self) -> Connection:
        """Open the consumer. After a crash the broker may hold the subscription for the old connection: wait for it."""

        def retriable(error: PulsarError) -> bool:
            return error.retriable or isinstance(error, ConsumerBusy)

        return await retry(self._attach, timeout_ms=_BUSY_TIMEOUT_MS, backoff=Backoff(100, 2_000), retriable=retriable)

    async def _attach(self) -> Connection:
        connection = await self._session.connect(self.topic)
        self._id = self._session.next_id()
        holds = (self.topic, self._name)
        await connection.consumers.open(self._id, self, self._subscribe_command(), holds=holds)
        self._connection = connection
        self.acknowledged = None  # the last acknowledgement may not have arrived
        return connection

    def _subscribe_command(self) -> pb.CommandSubscribe:
        begins_early = self._durable and self._earliest
        return pb.CommandSubscribe(
            topic=str(self.topic),
            subscription=self._name,
            subType=pb.CommandSubscribe.Exclusive,
            consumer_id=self._id,
            durable=self._durable,
            start_message_id=None if self._durable else message_id_to_wire(LATEST),
            initialPosition=pb.CommandSubscribe.Earliest if begins_early else pb.CommandSubscribe.Latest,
            force_topic_creation=False,
            read_compacted=(self._options.read_compacted and not self._durable) or None,
            metadata=commands.pairs({ENTRY_READER_PROPERTY: "true"}),
        )

    def acknowledge(self, position: Position) -> None:
        """Advance the durable subscription, without waiting."""
        if self._connection is None or not self._durable or position.entry < 0:
            return
        if self.acknowledged is not None and position <= self.acknowledged:
            return
        self._connection.write(commands.ack(self._id, [message_id_to_wire(position)], cumulative=True))
        self.acknowledged = position

    async def rest(self, ring: Callable[[], None]) -> bool:
        """Ask the broker to report a new message or the loss of the connection. Return False if it cannot.

        ``ring`` is called once, or twice for a durable subscription. The consumer is reopened at the end of the topic
        with a permit for the next message, whose content is ignored. A durable subscription would deliver what belongs
        to its users, so a second consumer waits beside it.
        """
        if not self._durable:
            await self.close()
            connection = await self._open()
            connection.write(commands.flow(self._id, 1))
        elif self._connection is None or not await self._passing().rest(ring) or self._connection is None:
            return False
        self._ring = ring
        return True

    def _rung(self) -> None:
        ring, self._ring = self._ring, None
        if ring is not None:
            ring()

    async def close(self) -> None:
        self._ring = None
        beside, self._beside = self._beside, None
        if beside is not None:
            await beside.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.consumers.close(self._id)

    # ---- Called by the connection

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None:
        """Ring for the message that ends the rest."""
        self._rung()

    def on_messages(self, run: MessageRun) -> None:
        """Ring for the messages that end the rest."""
        self._rung()

    def on_disconnected(self, assigned_url: str | None) -> None:
        self._connection = None
        self._rung()

    def on_active_change(self, active: bool) -> None: ...

    def on_end_of_topic(self) -> None: ...

    def on_leaving(self) -> None: ...

    def on_redirected(self, service_url: str) -> None: ...


STRETCH_MAX: Final = 8
_CALM_INTERVALS: Final = 15
"""Poll intervals without a change after which a topic-partition may rest."""
_REST_SECONDS_MAX: Final = 300.0
"""Longest rest, after which the topic-partition is asked anyway. Rests are spread over the second half of it."""


class PollPace:
    """Pace of one topic-partition: every poll while it grows, then less often, then only on notice."""

    def __init__(self, interval: float) -> None:
        """Start with the poll ``interval`` of a growing topic-partition."""
        self.due_at = 0.0
        """Time of the next question, on the clock of the callers."""
        self._interval = interval
        self._stretch = 1
        self._end: object = None
        """The end at the last question, None before the first one and after a ring."""
        self._changed_at = 0.0
        self._rung = False
        self.is_settled = False
        """True while the topic-partition rests or is about to, so that its news are reported."""

    def note(self, end: object, now: float, *, stretch_max: int = 1) -> bool:
        """Record the end. Return True if it has not moved for a while, so that the topic-partition may rest.

        Until then each question without news lengthens the interval to the next one, up to ``stretch_max`` times.
        """
        if end == self._end:
            self._stretch = min(self._stretch * 2, stretch_max)
        else:
            self._stretch, self._changed_at = 1, now
        self._end = end
        self.is_settled = False
        self.due_at = now + self._interval * self._stretch
        return now - self._changed_at >= self._interval * _CALM_INTERVALS

    def settle(self) -> None:
        """Suspend questions until the topic-partition rests, or until :meth:`ring`."""
        self._rung = False
        self.is_settled = True
        self.due_at = float("inf")

    def rest(self, now: float) -> None:
        if not self._rung:
            self.due_at = now + random.uniform(_REST_SECONDS_MAX / 2, _REST_SECONDS_MAX)

    def ring(self) -> None:
        """Resume questions: something arrived, or the broker can no longer send notices."""
        self._rung = True
        self.is_settled = False
        self._end = None
        self.due_at = 0.0
