"""One open consumer, its permits and counters; and the choice of consumers by their permits.

One permit is one message. An entry goes to a consumer that has at least one permit left, so a batch may overdraw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress, repeat
from operator import attrgetter, itemgetter
from typing import Any, Protocol

from interpulse.broker.live.api import ConsumerSink, Delivery, SubscribeRequest
from interpulse.broker.live.metrics import ConsumerMeasure, TrafficMetrics
from interpulse.clock import iso_time
from interpulse.model.errors import ConsumerNotFound
from interpulse.model.ids import MessageId, Position
from interpulse.rules.failover_role import FailoverRole
from interpulse.rules.limits import consumer_blocked
from interpulse.wire.hashing import murmur3_hash

TURN_ENTRIES_MAX = 20
"""Entries that a receiver gets before the next one's turn (dispatcherMaxRoundRobinBatchSize)."""

_position, _entry, _message_count = itemgetter(0), itemgetter(1), itemgetter(4)


class ConsumerOwner(Protocol):
    """The interface of the subscription for its consumers."""

    name: str
    now_ms: Callable[[], int]

    def flow_granted(self) -> None: ...
    def acknowledge(self, consumer: Consumer, positions: Sequence[Position], ack_set: Sequence[int]) -> None: ...
    def acknowledge_upto(self, position: Position, ack_set: Sequence[int]) -> None: ...
    def redeliver(self, consumer: Consumer, positions: Sequence[Position]) -> None: ...
    def remove(self, consumer: Consumer) -> None: ...
    async def seek(self, position: MessageId, ack_set: Sequence[int] = ()) -> None: ...
    async def seek_to_time(self, publish_time_ms: int) -> None: ...
    async def unsubscribe(self, consumer: Consumer, *, force: bool) -> None: ...


class Consumer:
    """An open consumer. All calls after :meth:`close` are ignored."""

    def __init__(self, owner: ConsumerOwner, request: SubscribeRequest, sink: ConsumerSink) -> None:
        self.request = request
        self.sink = sink
        self.consumer_id = request.consumer_id
        self.name = request.consumer_name
        self.subscription_name = owner.name
        self.priority_level = request.priority_level
        self.epoch = request.epoch
        """The epoch in MESSAGE commands, by which the client drops messages sent before a full redelivery.

        None until the client sends one.
        """
        self.permits = 0
        """The number of messages that it may get now."""
        self.blocked = False
        """True from the limit of held messages until half of them are released."""
        self.pending: dict[Position, int] = {}
        """Entries that this consumer alone holds, with their unacknowledged messages; Shared types only."""
        self.unacknowledged = 0
        """Messages in `pending`."""
        self.out = TrafficMetrics()
        self.redelivered = TrafficMetrics()
        self.acknowledged = TrafficMetrics()
        self.closed = False
        self.end_reported = False
        """True after the client was notified that the topic is terminated and drained."""
        self._owner = owner
        self._granted = 0
        self._unacknowledged_max = 0
        self._now_ms = owner.now_ms
        self._connected_ms = owner.now_ms()
        self._first_sent_ms = self.last_sent_ms = self._last_acknowledged_ms = 0
        self._first_flow_ms = self._last_flow_ms = 0

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
        """Continue deliveries: the sink is writable again."""
        if not self.closed:
            self._owner.flow_granted()

    def acknowledge(self, *positions: Position, ack_set: Sequence[int] = ()) -> None:
        """Acknowledge entries, or those messages of a single batch whose bit is 0 in ``ack_set``."""
        if not self.closed:
            self._last_acknowledged_ms = self._now_ms()
            self.acknowledged.messages += len(positions)
            self._owner.acknowledge(self, positions, ack_set)

    def acknowledge_cumulative(self, position: Position, ack_set: Sequence[int] = ()) -> None:
        """Acknowledge everything up to this entry; raises NotAllowed on Shared and Key_Shared."""
        if not self.closed:
            self._last_acknowledged_ms = self._now_ms()
            self.acknowledged.messages += 1
            self._owner.acknowledge_upto(position, ack_set)

    def redeliver(self, positions: Sequence[Position] = (), epoch: int | None = None) -> None:
        """Send these entries again. Without entries, or for an unshared type, send everything unacknowledged."""
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
        """Delete the subscription; raises MetadataError if others are connected and it is not forced."""
        self._check_open()
        await self._owner.unsubscribe(self, force=force)

    def close(self) -> None:
        """Close the consumer after its client left. Others get the entries that it has not acknowledged."""
        if not self.closed:
            self.closed = True
            self._owner.remove(self)

    # --- calls of the dispatcher

    def deliver(self, batch: Sequence[Delivery]) -> None:
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
        """Close the consumer, and have the client subscribe again."""
        if not self.closed:
            self.close()
            self.sink.consumer_closed(self.consumer_id)

    def redirect(self, moved: FailoverRole) -> None:
        """Close the consumer, and have the client subscribe at another cluster."""
        if not self.closed:
            self.close()
            self.sink.consumer_moved(self.consumer_id, moved)

    def _check_open(self) -> None:
        if self.closed:
            raise ConsumerNotFound("Consumer not found")

    # --- statistics

    def stats(self) -> dict[str, Any]:
        """Return Pulsar's ConsumerStats as JSON; also the source of CONSUMER_STATS_RESPONSE."""
        request = self.request
        return {
            **self.out.sent_stats(),
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
        for meter in (self.out, self.redelivered, self.acknowledged):
            meter.tick(seconds)


def message_total(batch: Iterable[Delivery]) -> int:
    """Return the permits that these entries cost together."""
    return sum(map(_message_count, batch))


def covered_by(batch: Sequence[Delivery], permits: int) -> int:
    """Return how many entries from the beginning of ``batch`` fit the ``permits``; the last may overdraw."""
    if permits <= 0:
        return 0
    if message_total(batch) <= permits:
        return len(batch)
    for number, delivery in enumerate(batch, 1):
        permits -= delivery.message_count
        if permits <= 0:
            return number
    return len(batch)


def choose_active(receivers: Sequence[Consumer], topic: str, partition_index: int) -> Consumer | None:
    """Return the active consumer of a Failover subscription.

    Among the lowest priority level, the partitions of a topic are assigned in the order of consumer names. For a topic
    without partitions the choice depends on the topic's name, so that many topics spread over the consumers, and it
    changes only when the active one leaves or a new one outranks it.
    """
    if not receivers:
        return None
    level = min(map(attrgetter("priority_level"), receivers))
    candidates = sorted(
        (receiver for receiver in receivers if receiver.priority_level == level), key=attrgetter("name")
    )
    if partition_index >= 0:
        return candidates[partition_index % len(candidates)]
    return max(candidates, key=lambda receiver: murmur3_hash(f"{receiver.name}@{topic}".encode()))


def share_out(
    batch: Sequence[Delivery], receivers: Sequence[Consumer], budgets: list[int], turn: int
) -> tuple[list[tuple[Consumer, list[Delivery]]], int]:
    """Distribute entries among receivers, lowest priority level first, some entries each in turn.

    ``budgets`` are the permits of each receiver; they are charged. Returns the shares, and the turn that begins the
    next round. Entries without permits are in no share; they are always the end of the batch.
    """
    if len(receivers) == 1:
        part = list(batch[: covered_by(batch, budgets[0])])
        budgets[0] -= message_total(part)
        return ([(receivers[0], part)], 1) if part else ([], turn)
    parts: list[list[Delivery]] = [[] for _ in receivers]
    done = 0
    while done < len(batch):
        index = _next_in_turn(receivers, budgets, turn)
        if index < 0:
            break
        turn = index + 1
        piece = batch[done : done + TURN_ENTRIES_MAX]
        number = covered_by(piece, budgets[index])
        taken = piece[:number]
        parts[index] += taken
        budgets[index] -= message_total(taken)
        done += number
    return [(receiver, part) for receiver, part in zip(receivers, parts, strict=True) if part], turn


def _next_in_turn(receivers: Sequence[Consumer], budgets: Sequence[int], turn: int) -> int:
    """Return the index of the next receiver with permits, of the lowest level that has any; -1 = none."""
    best = -1
    count = len(receivers)
    for step in range(count):
        index = (turn + step) % count
        if budgets[index] <= 0:
            continue
        if best < 0 or receivers[index].priority_level < receivers[best].priority_level:
            best = index
    return best
