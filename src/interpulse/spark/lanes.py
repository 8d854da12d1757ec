"""Lanes: the entries that one producer name writes to one target topic-partition, in order and exactly once. Pure.

A lane of entries serves one source topic-partition, and derives every sequence id from a source position. A lane of
rows serves one task of a micro-batch, with ids derived from the batch, or ids set by the user. The broker drops ids it
has seen under that name.

That alone is not enough. When one of several pipelined sends fails while later ones are stored, the broker takes a
plain resend of the failed one for a repeat and drops it. The broker also forgets names after a while. So
the rule of this module is: whenever the broker's last sequence id is not the one of the last committed batch, the
target is read back and decides. Model: docs/models/lane_settlement.tla.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from interpulse.model.errors import NotAllowed
from interpulse.model.ids import EARLIEST, Position
from interpulse.replication.position_runs import Run

NO_SEQUENCE = -1
_LEDGER_MAX = 2**31
_ENTRY_MAX = 2**32


class PositionTooLarge(NotAllowed):
    """A source position that cannot become a unique sequence id."""


def pack_sequence(ledger: int, entry: int) -> int:
    """Return the sequence id of a source position. Raises PositionTooLarge if it would be the id of another position.

    Ids rise strictly along a topic, because its ledger ids only grow.
    """
    if not (0 <= ledger < _LEDGER_MAX and 0 <= entry < _ENTRY_MAX):
        raise PositionTooLarge(
            f"source position {ledger}:{entry} does not fit a sequence id, which takes ledgers below {_LEDGER_MAX} and "
            f"entries below {_ENTRY_MAX}: it cannot be written exactly once"
        )
    return ledger << 32 | entry


def unpack_sequence(sequence_id: int) -> Position:
    """Return the source position of a sequence id, the inverse of :func:`pack_sequence`. NO_SEQUENCE gives EARLIEST."""
    if sequence_id == NO_SEQUENCE:
        return EARLIEST
    return Position(sequence_id >> 32, sequence_id & (_ENTRY_MAX - 1))


BATCH_ROWS_MAX = 2**31
"""Bound of the rows that a task may send to a topic-partition in one micro-batch."""
_BATCH_MAX = 2**32


def batch_sequence(batch: int, row: int) -> int:
    """Return the sequence id of a row of a micro-batch. Raises PositionTooLarge if it would be the id of another row.

    Ids rise with the batch, and within it with the row.
    """
    if not (0 <= batch < _BATCH_MAX and 0 <= row < BATCH_ROWS_MAX):
        raise PositionTooLarge(
            f"row {row} of micro-batch {batch} does not fit a sequence id, which takes {BATCH_ROWS_MAX} rows of a task "
            f"in {_BATCH_MAX} micro-batches: make micro-batches smaller, for example with maxBytesPerTrigger"
        )
    return batch * BATCH_ROWS_MAX + row


class StreamTask(NamedTuple):
    """The part of a query's micro-batch that one task writes. The checkpoint stores the query's id."""

    query_id: str
    batch: int = 0
    partition: int = 0


def sink_lane_name(producer_name: str | None, query_id: str, epoch: int) -> str:
    """Return the producer name of a sink's lanes: the configured one, or else one of the query's own."""
    name = producer_name or f"interpulse.{query_id}"
    return f"{name}.e{epoch}" if epoch else name


def lane_key(topic: str, part: str = "") -> str:
    """Return the key of a lane's state: its topic-partition, and its number among several lanes into it."""
    return f"{topic}\n{part}" if part else topic


def topic_of_key(key: str) -> str:
    """Return the topic-partition that a lane writes to."""
    return key.partition("\n")[0]


def lane_name(pipeline: str, source: str, target: str, epoch: int = 0) -> str:
    """Return the producer name of a pipeline's lanes."""
    return f"interpulse.{pipeline}.{source}-->{target}.e{epoch}"


def replicator_lane_name(source: str, target: str, epoch: int = 0) -> str:
    """Return the producer name of Pulsar's own replicator.

    Brokers treat its schemas as a replicator's, and the two exclude each other on a topic.
    """
    name = f"pulsar.repl.{source}-->{target}"
    return name if epoch == 0 else f"{name}.e{epoch}"


def merged_lane_name(lane: str, topic: str) -> str:
    """Return the producer name of one of several topics that are written to one. Each counts its own positions."""
    return f"{lane}.{topic}"


class LaneState(NamedTuple):
    """The state of a lane at its last commit: its highest sequence id, and the position reached on the target.

    ``claimed``: ids up to here may have been written under this name, before a checkpoint was lost or in a batch that
    the target refused in part. They belong to the lane although no commit records them.

    ``reached``: source position up to which a task that ran ahead of its range has read. Behind the last id are entries
    that were left out, so that no id records them.
    """

    sequence_id: int
    target: Position
    claimed: int = NO_SEQUENCE
    reached: Position = EARLIEST

    @property
    def copied_upto(self) -> Position:
        """Source position up to which a lane of entries has copied its topic-partition."""
        return max(self.reached, unpack_sequence(self.sequence_id))

    def joined(self, other: LaneState) -> LaneState:
        """Return what two reports of the same lane show together. All of it only rises."""
        return LaneState(
            max(self.sequence_id, other.sequence_id),
            max(self.target, other.target),
            max(self.claimed, other.claimed),
            max(self.reached, other.reached),
        )


UNTOUCHED = LaneState(NO_SEQUENCE, EARLIEST)
"""State of an unknown lane. Reading back begins at the earliest entry of the target."""


def starting_lane(broker_sequence: int, target_end: Position) -> LaneState:
    """Return the state to record for a lane before its first range, from the broker's last sequence id.

    A new lane reads back from the current end of the target. A lane with a past (its checkpoint was lost) claims what
    was written. If the range begins before that, the whole target is read back.
    """
    if broker_sequence == NO_SEQUENCE:
        return LaneState(NO_SEQUENCE, target_end)
    return LaneState(NO_SEQUENCE, EARLIEST, claimed=broker_sequence)


class Opening(Enum):
    """Action on opening a lane for a range."""

    SEND_ALL = "send all"
    READ_BACK = "read the target back first"
    IN_USE = "numbers that are not ours"


def decide_opening(state: LaneState, broker: int, first: int, *, is_anchored: bool = False) -> Opening:
    """Decide from the lane's last commit, the broker's last id, and the first id to write.

    ``is_anchored`` means that the state has the position of the target at which the lane began.

    ===========================  ================================================================
    broker == committed < first  normal: send all
    broker <= claimed < first    everything older is behind us: send all
    broker < committed           the broker lost its state: read back
    broker == committed == none  a new lane, or its broker lost its state before the first commit: read back if anchored
    first <= broker or claimed   a retry, a range that begins before the last commit, or another writer: read back
    committed < broker < first   another writer uses this name
    ===========================  ================================================================
    """
    may_be_forgotten = is_anchored and broker == state.sequence_id == NO_SEQUENCE
    if may_be_forgotten or broker < state.sequence_id or first <= max(broker, state.claimed):
        return Opening.READ_BACK
    return Opening.SEND_ALL if broker == state.sequence_id or broker <= state.claimed else Opening.IN_USE


def is_overrun(state: LaneState, broker: int, last: int) -> bool:
    """Return True if the broker has an id under this name beyond the range, which another writer must have sent."""
    return broker > max(last, state.claimed, state.sequence_id)


def _line_of(key: str, state: LaneState) -> str:
    name, _, part = key.partition("\n")
    body: dict[str, object] = {"topic": name, "sequenceId": state.sequence_id, "target": str(state.target)}
    if part:
        body["lane"] = part
    if state.claimed != NO_SEQUENCE:
        body["claimed"] = state.claimed
    if state.reached != EARLIEST:
        body["reached"] = str(state.reached)
    return json.dumps(body) + "\n"


def _state_of(line: str) -> tuple[str, LaneState]:
    body = json.loads(line)
    state = LaneState(
        int(body["sequenceId"]),
        Position.parse(body["target"]),
        int(body.get("claimed", NO_SEQUENCE)),
        Position.parse(body["reached"]) if "reached" in body else EARLIEST,
    )
    return lane_key(body["topic"], body.get("lane", "")), state


def dump_lanes(lanes: Mapping[str, LaneState]) -> str:
    """Return the text of a lane file: one JSON line per lane."""
    return "".join(_line_of(key, lanes[key]) for key in sorted(lanes))


def load_lanes(text: str) -> dict[str, LaneState]:
    """Read a lane file. Raises ValueError for anything else."""
    try:
        return dict(_state_of(line) for line in text.split("\n") if line)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a lane file: {error!r}") from error


@dataclass
class LaneReport:
    """The entries that one task wrote to one topic-partition, at least once or exactly once. It is sent pickled."""

    topic: str
    state: LaneState = UNTOUCHED
    """State of the lane, initially its state before the task. Without lanes it has no sequence id."""
    after: Position = EARLIEST
    """Start of the range that its rows show."""
    held: str | None = None
    """Reason why the whole range counts as unwritten, or None."""
    entries: int = 0
    messages: int = 0
    bytes: int = 0
    replays: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    key: str = ""
    """Key of the lane's state."""
    runs: Sequence[Run] = ()
    """Positions of the copies, if they are collected, without those that the task has written to files itself."""

    @property
    def is_recorded(self) -> bool:
        """True if the state includes ids that were, or may have been, written, or a position that was reached."""
        return max(self.state.sequence_id, self.state.claimed) != NO_SEQUENCE or self.state.reached != EARLIEST
