"""Bugs of subscriptions and of their consumers, which S2 must find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interpulse.broker.live.api import Delivery
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.dispatch.delayed_entries import DelayedEntries
from interpulse.broker.live.dispatch.key_selector import KeySelector
from interpulse.broker.live.dispatch.shared import SharedDispatch
from interpulse.broker.live.topic.subscription import Subscription
from interpulse.client.consuming.dead_letters import DeadLetterCandidates
from interpulse.client.consuming.partition_consumer import PartitionConsumer
from interpulse.model.ids import MessageId, Position


def key_handed_to_a_second_consumer() -> None:
    """26: a consumer that returns one message of a key loses the key, although it holds more of it."""
    give_back = KeySelector.give_back

    def freeing(self: KeySelector, positions: Sequence[Position]) -> None:
        for slot in self._slots.of_all(positions):
            if slot in self._draining:
                self._draining[slot].out = 1
        give_back(self, positions)

    KeySelector.give_back = freeing  # type: ignore[method-assign]


def returned_entries_forgotten() -> None:
    """101: entries of a consumer that leaves are given to no other one."""

    def remove(self: SharedDispatch, consumer: Consumer) -> None:
        consumer.give_up(list(consumer.pending))
        leave(self, consumer)

    leave = SharedDispatch.remove
    SharedDispatch.remove = remove  # type: ignore[method-assign]


def cumulative_acknowledgement_too_far() -> None:
    """102: a cumulative acknowledgement covers the entry behind it."""
    upto = Cursor.acknowledge_upto

    def too_far(self: Cursor, position: Position) -> bool:
        following = self._log.next_position(position)
        return upto(self, position if following is None else Position(*following))

    Cursor.acknowledge_upto = too_far  # type: ignore[method-assign]


def delays_end_early() -> None:
    """103: delayed entries are due half a second before their time."""
    add = DelayedEntries.add
    DelayedEntries.add = lambda self, position, deliver_at_ms: add(self, position, deliver_at_ms - 500)  # type: ignore[method-assign]


def redelivery_count_lost() -> None:
    """104: a consumer that leaves takes the redelivery counts of all entries with it."""
    remove = SharedDispatch.remove

    def forgetful(self: SharedDispatch, consumer: Consumer) -> None:
        self._redeliveries.clear()
        remove(self, consumer)

    SharedDispatch.remove = forgetful  # type: ignore[method-assign]


def dead_letter_one_delivery_early() -> None:
    """105: a message is a dead letter one delivery too early."""
    begin = DeadLetterCandidates.__init__
    DeadLetterCandidates.__init__ = lambda self, most: begin(self, most - 1)  # type: ignore[assignment, method-assign]


def seek_behind_its_target() -> None:
    """106: a seek continues behind the message that it names."""
    seek = Subscription.seek

    async def behind(self: Subscription, position: MessageId, ack_set: Sequence[int] = ()) -> None:
        await seek(self, position._replace(entry=position.entry + 1), ack_set)

    Subscription.seek = behind  # type: ignore[method-assign]


def batch_indexes_forgotten_at_redelivery() -> None:
    """107: a batch that is sent again is sent with the messages that were acknowledged."""

    def whole(self: SharedDispatch, position: Position, entry: bytes, redelivery_count: int) -> Delivery:
        messages = self._source.entry_metadata.get(position, entry).message_count
        return Delivery(position, entry, redelivery_count, (), messages)

    SharedDispatch._delivery = whole  # type: ignore[method-assign]


def batch_indexes_not_stored() -> None:
    """108: a restart forgets the acknowledged messages of incomplete batches."""
    record = Cursor.record

    def without_batches(self: Cursor, **settings: Any) -> Any:
        before, self._batches = self._batches, {}
        try:
            return record(self, **settings)
        finally:
            self._batches = before

    Cursor.record = without_batches  # type: ignore[method-assign]


def messages_overtake_a_full_redelivery() -> None:
    """109: a client that asked for everything again still takes what was on its way."""
    PartitionConsumer._is_stale = lambda self, position, epoch: False  # type: ignore[method-assign]


def key_moved_before_it_is_free() -> None:
    """110: a key moves to its new owner while the consumer before holds messages of it."""
    KeySelector._held = lambda self: {}  # type: ignore[method-assign]
