"""One open consumer: its permits, its unacknowledged entries, and its counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, repeat
from operator import itemgetter
from typing import Any, Protocol

from interpulse.broker.live.api import ConsumerSink, Delivery
from interpulse.broker.live.dispatch.consumer_choice import message_total
from interpulse.broker.live.measures import ConsumerMeasure
from interpulse.broker.live.requests import SubscribeRequest
from interpulse.broker.live.stats import TrafficMeter
from interpulse.clock import iso_time
from interpulse.model.errors import ConsumerNotFound
from interpulse.model.ids import MessageId, Position
from interpulse.rules.limits import consumer_blocked

_position, _entry, _message_count = itemgetter(0), itemgetter(1), itemgetter(4)


class ConsumerOwner(Protocol):
    """The interface of the subscription for its consumers."""

    @property
    def name(self) -> str: ...

    @property
    def now_ms(self) -> Callable[[], int]: ...

    def flow_granted(self) -> None: ...

    def acknowledge(self, consumer: Consumer, positions: Sequence[Position], ack_set: Sequence[int]) -> None: ...

    def acknowledge_upto(self, position: Position, ack_set: Sequence[int]) -> None: ...

    def redeliver(self, consumer: Consumer, positions: Sequence[Position]) -> None: ...

    def remove(self, consumer: Consumer) -> None: ...

    async def seek(self, position: MessageId, ack_set: Sequence[int] = ()) -> None: ...

    async def seek_to_time(self, publish_time_ms: int) -> None: ...

    async def unsubscribe(self, consumer: Consumer, *, force: bool) -> None: ...


class Consumer:
    """A consumer; see `interpulse.broker.live.api.LiveConsumer`."""

    def __init__(self, owner: ConsumerOwner, request: SubscribeRequest, sink: ConsumerSink) -> None:
        self.request = request
        self.sink = sink
        self.consumer_id = request.consumer_id
        self.name = request.consumer_name
        self.epoch = request.epoch
        self.permits = 0
        """The number of messages that it may get now."""
        self.blocked = False
        """True from the limit of held messages until half of them are released."""
        self.pending: dict[Position, int] = {}
        """Entries that this consumer alone holds, with their unacknowledged messages; Shared types only."""
        self.unacknowledged = 0
        """Messages in `pending`."""
        self.out = TrafficMeter()
        self.redelivered = TrafficMeter()
        self.acknowledged = TrafficMeter()
        self.closed = False
        self.end_told = False
        """True after the client was notified that the topic is terminated and drained."""
        self._owner = owner
        self._granted = 0
        self._unacknowledged_max = 0
        self._now_ms = owner.now_ms
        self._connected_ms = owner.now_ms()
        self._first_sent_ms = self.last_sent_ms = self._last_acknowledged_ms = 0
        self._first_flow_ms = self._last_flow_ms = 0

    @property
    def subscription_name(self) -> str:
        return self._owner.name

    @property
    def metadata(self) -> Mapping[str, str]:
        return self.request.metadata

    @property
    def read_compacted(self) -> bool:
        return self.request.read_compacted

    @property
    def priority_level(self) -> int:
        return self.request.priority_level

    # --- calls of the front end

    def flow(self, permits: int) -> None:
        if self.closed:
            return
        self._granted += permits
        self._count_permits()
        self._last_flow_ms = self._now_ms()
        self._first_flow_ms = self._first_flow_ms or self._last_flow_ms
        self._owner.flow_granted()

    def resume(self) -> None:
        if not self.closed:
            self._owner.flow_granted()

    def acknowledge(self, *positions: Position, ack_set: Sequence[int] = ()) -> None:
        if not self.closed:
            self._last_acknowledged_ms = self._now_ms()
            self.acknowledged.messages += len(positions)
            self._owner.acknowledge(self, positions, ack_set)

    def acknowledge_cumulative(self, position: Position, ack_set: Sequence[int] = ()) -> None:
        if not self.closed:
            self._last_acknowledged_ms = self._now_ms()
            self.acknowledged.messages += 1
            self._owner.acknowledge_upto(position, ack_set)

    def redeliver(self, positions: Sequence[Position] = (), epoch: int | None = None) -> None:
        if self.closed:
            return
        if epoch is not None:
            self.epoch = epoch
        self._owner.redeliver(self, positions)

    async def seek(self, position: MessageId, ack_set: Sequence[int] = ()) -> None:
        self._check_open()
        await self._owner.seek(position, ack_set)

    async def seek_to_time(self, publish_time_ms: int) -> None:
        self._check_open()
        await self._owner.seek_to_time(publish_time_ms)

    async def unsubscribe(self, force: bool = False) -> None:
        self._check_open()
        await self._owner.unsubscribe(self, force=force)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._owner.remove(self)

    # --- calls of the dispatcher

    def deliver(self, batch: Sequence[Delivery]) -> None:
        """Send entries and charge their permits."""
        messages = message_total(batch)
        self._granted -= messages
        self._count_permits()
        out = self.out
        out.messages += messages
        out.entries += len(batch)
        out.bytes += sum(map(len, map(_entry, batch)))
        self.last_sent_ms = self._now_ms()
        self._first_sent_ms = self._first_sent_ms or self.last_sent_ms
        self.sink.deliver(self.consumer_id, batch)

    def hold(self, batch: Sequence[Delivery]) -> None:
        """Note entries that only this consumer got."""
        self.pending.update(zip(map(_position, batch), map(_message_count, batch), strict=True))
        self.unacknowledged += message_total(batch)

    def release(self, position: Position, messages_left: int = 0) -> bool:
        """Release an entry, or all but ``messages_left`` of it; return False if this consumer does not hold it."""
        held = self.pending.pop(position, None)
        if held is None:
            return False
        if messages_left:
            self.pending[position] = messages_left
        self.unacknowledged -= held - messages_left
        if self.permits < self._granted:
            self._count_permits()
        return True

    def release_all(self, positions: Sequence[Position]) -> Sequence[Position]:
        """Release whole entries. Return those that this consumer held, once each."""
        released = list(map(self.pending.pop, positions, repeat(0)))
        self.unacknowledged -= sum(released)
        self._count_permits()
        return positions if all(released) else list(compress(positions, released))

    def give_up(self, positions: Iterable[Position]) -> None:
        """Release entries that other consumers get; this consumer must hold all of them."""
        self.unacknowledged -= sum(map(self.pending.pop, positions))
        self._count_permits()

    def hold_at_most(self, messages: int) -> None:
        """Limit the held messages; at the limit, the consumer pauses until it holds half. 0 = no limit."""
        self._unacknowledged_max = messages
        self._count_permits()

    def forget_held(self) -> None:
        """Release everything; it will be sent again."""
        self.pending.clear()
        self.unacknowledged = 0
        self._count_permits()

    def _count_permits(self) -> None:
        limit = self._unacknowledged_max
        if not limit:
            self.permits, self.blocked = self._granted, False
            return
        self.blocked = consumer_blocked(self.unacknowledged, limit, before=self.blocked)
        self.permits = 0 if self.blocked else min(self._granted, limit - self.unacknowledged)

    def close_by_broker(self) -> None:
        """Have the client reconnect."""
        if not self.closed:
            self.close()
            self.sink.consumer_closed(self.consumer_id)

    def _check_open(self) -> None:
        if self.closed:
            raise ConsumerNotFound("Consumer not found")

    # --- statistics

    def stats(self) -> dict[str, Any]:
        request = self.request
        return {
            "msgRateOut": self.out.message_rate,
            "msgThroughputOut": self.out.byte_rate,
            "bytesOutCounter": self.out.bytes,
            "msgOutCounter": self.out.messages,
            "msgRateRedeliver": self.redelivered.message_rate,
            "messageAckRate": self.acknowledged.message_rate,
            "chunkedMessageRate": 0.0,
            "consumerName": self.name,
            "availablePermits": self._granted,
            "unackedMessages": self.unacknowledged,
            "avgMessagesPerEntry": round(self.out.messages / self.out.entries) if self.out.entries else 0,
            "blockedConsumerOnUnackedMsgs": self.blocked,
            "address": request.address,
            "connectedSince": iso_time(self._connected_ms),
            "clientVersion": request.client_version,
            "lastAckedTimestamp": self._last_acknowledged_ms,
            "lastConsumedTimestamp": self.last_sent_ms,
            "firstMessagesSentTimestamp": self._first_sent_ms,
            "lastConsumedFlowTimestamp": self._last_flow_ms,
            "firstConsumedFlowTimestamp": self._first_flow_ms,
            "metadata": dict(request.metadata),
            "lastAckedTime": iso_time(self._last_acknowledged_ms),
            "lastConsumedTime": iso_time(self.last_sent_ms),
        }

    def measure(self) -> ConsumerMeasure:
        """Return the metrics."""
        return ConsumerMeasure(
            self.redelivered.message_rate,
            self.acknowledged.message_rate,
            self.unacknowledged,
            self.blocked,
            self.out.message_rate,
            self.out.byte_rate,
            self._granted,
        )

    def tick(self, seconds: float) -> None:
        """Compute the rates of the last period."""
        for meter in (self.out, self.redelivered, self.acknowledged):
            meter.tick(seconds)
