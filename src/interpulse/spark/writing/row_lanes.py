"""Lanes of rows, which write messages exactly once. They differ in how they recognize a repeat.

``dedup=batch`` compares contents. A lane belongs to one task of every micro-batch and one topic-partition. When a batch
is repeated, the rows that an earlier attempt stored are read back, and as many of the new rows are left out. They may
come in another order, as after a shuffle, but all must come: a missing row ends the query, because nothing could be
exact any more.

``dedup=column`` compares ids set by the user.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from interpulse.model.errors import InvalidRequest, NotAllowed, PulsarError
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.schemas import SchemaInfo
from interpulse.spark.lanes import (
    BATCH_ROWS_MAX,
    NO_SEQUENCE,
    LaneReport,
    LaneState,
    StreamTask,
    batch_sequence,
    lane_key,
    sink_lane_name,
    topic_of_key,
)
from interpulse.spark.writing.broker_target import BrokerTarget, StoredEntry
from interpulse.spark.writing.lane import Lane
from interpulse.spark.writing.sink_rows import OutgoingMessage, stored_messages
from interpulse.spark.writing.write_options import WriteOptions


class RowsDiffer(NotAllowed):
    """A repeated micro-batch that lacks rows which its first attempt has stored."""


def _digest(message: OutgoingMessage) -> bytes:
    """Return a digest of the message's content, however it was packed."""
    value = b"" if message.value is None else message.value
    parts: list[bytes] = [b"%d" % (message.value is None), value]
    parts += [b"" if message.key is None else message.key, b"%d %d" % (message.key is None, message.key_is_text)]
    parts += [b"%d %d" % (message.event_time_ms, message.deliver_at_ms), message.ordering_key or b""]
    parts += [text.encode() for pair in sorted(message.properties.items()) for text in pair]
    parts += [cluster.encode() for cluster in message.replicate_to]
    made = hashlib.blake2b(digest_size=16)
    for part in parts:
        made.update(b"%d:" % len(part))
        made.update(part)
    return made.digest()


class BatchLane:
    """A publisher of messages that numbers rows by their micro-batch, and recognizes repeats by their content."""

    def __init__(self, lane: Lane, batch: int) -> None:
        self.sender = lane.sender
        self._lane = lane
        self._first = batch_sequence(batch, 0)
        self._batch = batch
        self._rows = 0
        self._repeats: Counter[bytes] = Counter()
        self._found: list[StoredEntry] = []

    async def settle(self) -> None:
        """Read back what earlier attempts have stored. Raises HolesFound or LaneInUse."""
        lane = self._lane
        await lane.settle_past(self._first, self._note)
        if lane.settled_upto > batch_sequence(self._batch, BATCH_ROWS_MAX - 1):
            raise lane.in_use()
        self._rows = max(lane.settled_upto - self._first + 1, 0)
        expected = self._first
        for entry in sorted(self._found):
            lane.holes.extend(range(expected, entry.sequence_id))
            expected = max(expected, entry.highest_id + 1)
        if lane.holes:
            raise lane.has_holes()

    def _note(self, entry: StoredEntry) -> None:
        if entry.sequence_id >= self._first:
            self._found.append(entry._replace(parsed=None))
            self._repeats.update(_digest(message) for message in stored_messages(entry))

    def unsent(self, messages: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        if not self._repeats:
            return messages
        return [message for message in messages if not self._is_repeat(message)]

    def _is_repeat(self, message: OutgoingMessage) -> bool:
        digest = _digest(message)
        count = self._repeats.pop(digest, 0)
        if count > 1:
            self._repeats[digest] = count - 1
        self._lane.report.replays += count > 0
        return count > 0

    def ids(self, messages: Sequence[Any]) -> Sequence[int]:
        first, self._rows = self._rows, self._rows + len(messages)
        return range(batch_sequence(self._batch, first), batch_sequence(self._batch, self._rows - 1) + 1)

    async def send(self, entry: bytes, ids: Sequence[int]) -> None:
        self._lane.last = ids[-1]
        await self._lane.send([ids[0]], [len(ids)], [entry], highest_id=ids[-1])

    async def finish(self) -> LaneReport:
        lane = self._lane
        if self._repeats:
            raise RowsDiffer(
                f"{lane.report.topic}: micro-batch {self._batch} is repeated and does not make "
                f"{self._repeats.total()} rows again that its first attempt has stored, so nothing can be exact any "
                f'more: number rows yourself with .option("dedup", "column"), or go on with '
                f'.option("deliveryGuarantee", "at-least-once")'
            )
        lane.last = max(lane.last, lane.settled_upto)
        await lane.finish()
        return lane.report

    async def close(self) -> None:
        await _close(self._lane)


class ColumnLane:
    """A publisher of messages with ids set by the user."""

    def __init__(self, lane: Lane) -> None:
        self.sender = lane.sender
        self._lane = lane
        self._came = NO_SEQUENCE

    async def settle(self, first: int) -> None:
        """Read back what earlier attempts have stored. Raises LaneInUse."""
        lane = self._lane
        if lane.sender.last_sequence_id == lane.before.sequence_id != NO_SEQUENCE:
            lane.settled_upto = lane.before.sequence_id  # all ids at the broker are committed
        else:
            await lane.settle_past(first, self._note)

    def _note(self, entry: StoredEntry) -> None:
        for message in stored_messages(entry):
            assert message.sequence_id is not None, "of a stored message"
            self._lane.stored[message.sequence_id] = entry.position

    def unsent(self, messages: Sequence[OutgoingMessage]) -> Sequence[OutgoingMessage]:
        lane, left = self._lane, []
        for message in messages:
            number = _id_of(message)
            if number <= self._came:
                raise InvalidRequest(
                    f"{lane.report.topic}: __sequenceId {number} of producer {self.sender.name} comes after "
                    f"{self._came}: the numbers of a producer have to rise, so repartition by it and "
                    f"sortWithinPartitions by the number"
                )
            self._came = lane.last = number
            if number <= lane.settled_upto:
                lane.settle(number)
            else:
                left.append(message)
        return left

    def ids(self, messages: Sequence[Any]) -> Sequence[int]:
        return [_id_of(message) for message in messages]

    async def send(self, entry: bytes, ids: Sequence[int]) -> None:
        await self._lane.send([ids[0]], [len(ids)], [entry], highest_id=ids[-1])

    async def finish(self) -> LaneReport:
        await self._lane.finish()
        return self._lane.report

    async def close(self) -> None:
        await _close(self._lane)


def _id_of(message: OutgoingMessage) -> int:
    """Return the id set by the user. Raises InvalidRequest."""
    if message.sequence_id is None or message.sequence_id < 0:
        raise InvalidRequest(
            f"__sequenceId of a row for {message.topic} is {message.sequence_id}: with dedup=column every row has a "
            f"number, 0 or more"
        )
    return message.sequence_id


async def _close(lane: Lane) -> None:
    try:
        await lane.sender.close()
    except PulsarError:
        return  # the connection is gone, and the name with it


class RowLanes:
    """Opens the lanes of one task; see `PlainPublishers`."""

    def __init__(
        self, options: WriteOptions, target: BrokerTarget, states: Mapping[str, LaneState], task: StreamTask
    ) -> None:
        self._options = options
        self._target = target
        self._states = states
        self._task = task
        self._reached: dict[str, Position] = {}
        """Positions before which nothing of this micro-batch is stored: it began after the last commit."""
        for key, state in states.items():
            topic = topic_of_key(key)
            self._reached[topic] = max(state.target, self._reached.get(topic, EARLIEST))

    def producer_of(self, message: OutgoingMessage) -> str:
        return (message.producer_name or "") if self._options.dedup == "column" else ""

    def keyless_partition(self, count: int) -> int:
        """Return one partition per task and micro-batch, or per task, so that every attempt chooses the same."""
        turn = 0 if self._options.routing_mode == "single" else self._task.batch
        return (turn + self._task.partition) % count

    async def open(self, topic: str, first: OutgoingMessage, schema: SchemaInfo | None) -> BatchLane | ColumnLane:
        options, task = self._options, self._task
        producer = self.producer_of(first) or options.producer_name
        name = sink_lane_name(producer, task.query_id, options.lane_epoch)
        if options.dedup == "batch":
            name = f"{name}.{task.partition}"
        key = lane_key(topic, name)
        sender = await self._target.open_lane(topic, name, is_new=topic not in self._reached, schema=schema)
        try:
            reached = self._reached.get(topic, EARLIEST)
            state = self._states.get(key) or LaneState(NO_SEQUENCE, reached)
            if options.dedup == "column" and key not in self._states:
                # What the user's name wrote before is not read back.
                state = LaneState(sender.last_sequence_id, reached)
            lane = Lane(self._target, sender, LaneReport(topic, state, key=key), shown="sequence id {}".format)
            if options.dedup == "column":
                numbered = ColumnLane(lane)
                await numbered.settle(_id_of(first))
                return numbered
            counted = BatchLane(lane, task.batch)
            await counted.settle()
            return counted
        except BaseException:
            await sender.close()  # it holds the producer's name
            raise
