"""Lanes: what one producer name writes, in order and exactly once, into one target topic-partition.

A lane of entries takes one source topic-partition, and every sequence id is made of a source position. A lane of rows
takes what one task of a micro-batch sends there, with ids made of the batch, or ids of the user's own. The broker
drops ids it has seen under that name. That alone is not enough, for two reasons: when one of several pipelined sends
fails while later ones are stored, a plain resend of the failed one is taken for a repeat and lost; and the broker
forgets names after a while. Hence the rule of this module: whenever the broker's last sequence id is not the one of
the last committed batch, the target is read back and decides.

Pure: the lane file is text in, text out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from interpulse.model.errors import NotAllowed
from interpulse.model.ids import EARLIEST, Position

__all__ = [
    "BATCH_ROWS_MAX",
    "NO_SEQUENCE",
    "UNTOUCHED",
    "LaneState",
    "Opening",
    "PositionTooLarge",
    "StreamTask",
    "batch_sequence",
    "decide_opening",
    "dump_lanes",
    "is_overrun",
    "lane_key",
    "lane_name",
    "load_lanes",
    "merged_lane_name",
    "pack_sequence",
    "replicator_lane_name",
    "sink_lane_name",
    "starting_lane",
    "topic_of_key",
    "unpack_sequence",
]

NO_SEQUENCE = -1
_LEDGER_MAX = 2**31
_ENTRY_MAX = 2**32


class PositionTooLarge(NotAllowed):
    """A source position that makes no sequence id of its own."""


def pack_sequence(ledger: int, entry: int) -> int:
    """The sequence id of a source position: rises strictly along a topic, because its ledger ids only grow.

    Raises PositionTooLarge where it would be the id of another position.
    """
    if not (0 <= ledger < _LEDGER_MAX and 0 <= entry < _ENTRY_MAX):
        raise PositionTooLarge(
            f"source position {ledger}:{entry} does not fit a sequence id, which takes ledgers below {_LEDGER_MAX} and "
            f"entries below {_ENTRY_MAX}: it cannot be written exactly once"
        )
    return ledger << 32 | entry


def unpack_sequence(sequence_id: int) -> Position:
    """The inverse of :func:`pack_sequence`; NO_SEQUENCE gives EARLIEST."""
    if sequence_id == NO_SEQUENCE:
        return EARLIEST
    return Position(sequence_id >> 32, sequence_id & (_ENTRY_MAX - 1))


BATCH_ROWS_MAX = 2**31
"""More rows than a task may send to a topic-partition in one micro-batch."""
_BATCH_MAX = 2**32


def batch_sequence(batch: int, row: int) -> int:
    """The sequence id of a row of a micro-batch: rises with the batch, and in it with the row.

    Raises PositionTooLarge where it would be the id of another row.
    """
    if not (0 <= batch < _BATCH_MAX and 0 <= row < BATCH_ROWS_MAX):
        raise PositionTooLarge(
            f"row {row} of micro-batch {batch} does not fit a sequence id, which takes {BATCH_ROWS_MAX} rows of a task "
            f"in {_BATCH_MAX} micro-batches: make micro-batches smaller, for example with maxBytesPerTrigger"
        )
    return batch * BATCH_ROWS_MAX + row


class StreamTask(NamedTuple):
    """Which part of which micro-batch of which query a task writes. The checkpoint keeps the query's id."""

    query_id: str
    batch: int = 0
    partition: int = 0


def sink_lane_name(given: str | None, query_id: str, epoch: int) -> str:
    """The producer name of a sink's lanes: the given one, or else one of the query's own."""
    name = given or f"interpulse.{query_id}"
    return f"{name}.e{epoch}" if epoch else name


def lane_key(topic: str, part: str = "") -> str:
    """By what the state of a lane is kept: its topic-partition, and which of several lanes into that it is."""
    return f"{topic}\n{part}" if part else topic


def topic_of_key(key: str) -> str:
    """The topic-partition that a lane writes to."""
    return key.partition("\n")[0]


def lane_name(pipeline: str, source: str, target: str, epoch: int = 0) -> str:
    """The producer name of a pipeline's lanes."""
    return f"interpulse.{pipeline}.{source}-->{target}.e{epoch}"


def replicator_lane_name(source: str, target: str, epoch: int = 0) -> str:
    """The producer name Pulsar's own replicator has: brokers treat its schemas as a replicator's, and the two exclude
    each other on a topic."""
    name = f"pulsar.repl.{source}-->{target}"
    return name if epoch == 0 else f"{name}.e{epoch}"


def merged_lane_name(lane: str, topic: str) -> str:
    """The producer name where several topics are written to one: each counts its own positions."""
    return f"{lane}.{topic}"


class LaneState(NamedTuple):
    """Where a lane stood at its last commit: highest sequence id, and the position on the target it had reached.

    ``claimed``: ids up to here may have been written under this name, before a checkpoint was lost or in a batch that
    the target refused in part; they are ours although no commit records them.
    """

    sequence_id: int
    target: Position
    claimed: int = NO_SEQUENCE


UNTOUCHED = LaneState(NO_SEQUENCE, EARLIEST)
"""A lane nothing is known of: reading back begins at the earliest entry of the target."""


def starting_lane(broker_sequence: int, target_end: Position) -> LaneState:
    """The state to record for a lane before its first range, from the broker's last sequence id.

    A fresh lane reads back from the present end of the target. A lane with a past (its checkpoint was lost) claims
    what was written; should the range begin before that, the whole target is the evidence.
    """
    if broker_sequence == NO_SEQUENCE:
        return LaneState(NO_SEQUENCE, target_end)
    return LaneState(NO_SEQUENCE, EARLIEST, claimed=broker_sequence)


class Opening(Enum):
    """What to do when a lane is opened for a range."""

    SEND_ALL = "send all"
    READ_BACK = "read the target back first"
    IN_USE = "numbers that are not ours"


def decide_opening(state: LaneState, broker: int, first: int) -> Opening:
    """Decide from the lane's last commit, the broker's last id, and the first id to write.

    ===========================  ================================================================
    broker == committed < first  normal: send all
    broker <= claimed < first    everything older is behind us: send all
    broker < committed           the broker lost its state: read back
    first <= broker or claimed   a retry, a range that begins before the last commit, or another writer: read back
    committed < broker < first   another writer uses this name
    ===========================  ================================================================
    """
    if broker < state.sequence_id or first <= max(broker, state.claimed):
        return Opening.READ_BACK
    return Opening.SEND_ALL if broker == state.sequence_id or broker <= state.claimed else Opening.IN_USE


def is_overrun(state: LaneState, broker: int, last: int) -> bool:
    """After the last id of a range: does the broker know ids under this name that this lane has not written?"""
    return broker > max(last, state.claimed, state.sequence_id)


def _line_of(key: str, state: LaneState) -> str:
    name, _, part = key.partition("\n")
    body: dict[str, object] = {"topic": name, "sequenceId": state.sequence_id, "target": str(state.target)}
    if part:
        body["lane"] = part
    if state.claimed != NO_SEQUENCE:
        body["claimed"] = state.claimed
    return json.dumps(body) + "\n"


def _state_of(line: str) -> tuple[str, LaneState]:
    body = json.loads(line)
    state = LaneState(int(body["sequenceId"]), Position.parse(body["target"]), int(body.get("claimed", NO_SEQUENCE)))
    return lane_key(body["topic"], body.get("lane", "")), state


def dump_lanes(lanes: Mapping[str, LaneState]) -> str:
    """The lane file: one JSON line per lane."""
    return "".join(_line_of(key, lanes[key]) for key in sorted(lanes))


def load_lanes(text: str) -> dict[str, LaneState]:
    """Read a lane file; raises ValueError for anything else."""
    try:
        return dict(_state_of(line) for line in text.split("\n") if line)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a lane file: {error!r}") from error
