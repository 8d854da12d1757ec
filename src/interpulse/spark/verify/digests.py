"""Rows for the comparison of entries or messages: the matching key, a digest of the content, the position.

Spark's workers call this with Arrow batches of our own source, each topic-partition in its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from interpulse.model.names import TopicName
from interpulse.replication.copy import MARK_PREFIXES, is_copied_by_lane, skip_reason
from interpulse.spark.arrow_frames import arrow_schema
from interpulse.spark.lanes import pack_sequence
from interpulse.spark.verify.judging import Problem
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.stamps import source_positions

if TYPE_CHECKING:
    import pyarrow as pa

DIGEST_COLUMNS: Final = (
    "topic STRING, key BINARY, identity BINARY, content BINARY, position BIGINT, place STRING, "
    "partition INT, ledger BIGINT, entry BIGINT, batch INT, overtaken BOOLEAN, skipped STRING"
)
"""The fields of `Digest` as Spark declares them."""

_ROWS_MAX: Final = 8192
_PLACED, _UNMARKED, _KEYED, _KEYLESS = b"p", b"u", b"k", b"n"
"""The first byte of a group's key: an entry by its position, a copy without one, a message with and without key."""


class Digest(NamedTuple):
    """One entry or message of one side. ``topic`` and ``key`` are its group for the rule.

    ``position`` is the packed source position; None if there is none. ``skipped`` is the reason why an entry of the
    source is not copied.
    """

    topic: str
    key: bytes
    identity: bytes
    content: bytes
    position: int | None
    place: str
    partition: int
    ledger: int
    entry: int
    batch: int
    overtaken: bool = False
    skipped: str | None = None


def is_unmarked(key: bytes) -> bool:
    """Return True if a group is a copy that does not name its original."""
    return key.startswith(_UNMARKED)


def position_of(key: bytes) -> int | None:
    """Return the packed source position of a group, or None if it is not a position."""
    return int.from_bytes(key[1:], "big") if key.startswith(_PLACED) else None


def key_for_people(key: bytes) -> str | None:
    """Return the key of the messages of a group; None if they have none, or are matched by something else."""
    return key[1:].decode(errors="replace") if key.startswith(_KEYED) else None


def _digest(*parts: bytes) -> bytes:
    hashed = blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return hashed.digest()


def _as_batches(digests: Iterator[Digest]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema = arrow_schema(DIGEST_COLUMNS)
    while rows := list(islice(digests, _ROWS_MAX)):
        columns = zip(zip(*rows, strict=True), schema, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(values, item.type) for values, item in columns], schema=schema)


@dataclass(frozen=True)
class PositionDigests:
    """Digests of entries, which are matched by the position of the original.

    ``names`` has the source partition of each partition. On the target (``is_target``) only entries of the source
    cluster count. With ``forwards`` the source sends on entries of other clusters.
    """

    names: Mapping[str, str]
    source_cluster: str
    target_cluster: str
    is_target: bool
    forwards: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _as_batches(self.digests(row for batch in batches for row in batch.to_pylist()))

    def digests(self, rows: Iterator[Mapping[str, Any]]) -> Iterator[Digest]:
        highest: dict[str, int] = {}
        for row in rows:
            metadata = pb.MessageMetadata.FromString(row["__metadata"])
            digest = self._copy(row, metadata) if self.is_target else self._original(row, metadata)
            if digest is None:
                continue
            if self.is_target and digest.position is not None:
                before = highest.get(digest.topic, -1)
                highest[digest.topic] = max(before, digest.position)
                digest = digest._replace(overtaken=digest.position < before)
            yield digest

    def _original(self, row: Mapping[str, Any], metadata: pb.MessageMetadata) -> Digest:
        position = pack_sequence(row["__ledgerId"], row["__entryId"])
        forwarded_by = self.source_cluster if self.forwards else None
        reason = skip_reason(metadata, self.target_cluster, forwarded_by=forwarded_by)
        return self._of(row, metadata, position)._replace(skipped=reason)

    def _copy(self, row: Mapping[str, Any], metadata: pb.MessageMetadata) -> Digest | None:
        if not self._is_copy(metadata) or metadata.HasField("marker_type"):
            return None
        positions = source_positions(metadata)
        return self._of(row, metadata, pack_sequence(*positions[-1]) if positions else None)

    def _is_copy(self, metadata: pb.MessageMetadata) -> bool:
        if metadata.replicated_from == self.source_cluster:
            return True
        return self.forwards and is_copied_by_lane(metadata, self.source_cluster, self.target_cluster)

    def _of(self, row: Mapping[str, Any], metadata: pb.MessageMetadata, position: int | None) -> Digest:
        name, ledger, entry = row["__topic"], row["__ledgerId"], row["__entryId"]
        place = f"{ledger}:{entry}"
        key = _UNMARKED + place.encode() if position is None else _PLACED + position.to_bytes(8, "big")
        content = _digest(row["__payload"], _attributes(metadata))
        partition = TopicName.parse(name).partition_index
        return Digest(self.names[name], key, key, content, position, place, partition, ledger, entry, -1)


def _attributes(metadata: pb.MessageMetadata) -> bytes:
    """Return the properties that a copy shares with its original, besides the payload."""
    shared = pb.MessageMetadata(producer_name="", sequence_id=0, publish_time=0)
    for name in _SHARED_FIELDS:
        setattr(shared, name, getattr(metadata, name))
    if metadata.properties:
        shared.properties.extend(item for item in metadata.properties if not item.key.startswith(MARK_PREFIXES))
    return shared.SerializeToString(deterministic=True)


_SHARED_FIELDS: Final = (
    *("event_time", "num_messages_in_batch", "compression", "partition_key", "partition_key_b64_encoded"),
    *("ordering_key", "null_value", "null_partition_key", "deliver_at_time"),
)


@dataclass(frozen=True)
class ContentDigests:
    """Digests of messages, which are matched by key and payload, whatever their batches and partitions.

    ``names`` has the source topic of each partition.
    """

    names: Mapping[str, str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _as_batches(self.digests(row for batch in batches for row in batch.to_pylist()))

    def digests(self, rows: Iterator[Mapping[str, Any]]) -> Iterator[Digest]:
        for row in rows:
            name, ledger, entry = row["__topic"], row["__ledgerId"], row["__entryId"]
            batch = -1 if row["__batchIndex"] is None else row["__batchIndex"]
            partition = TopicName.parse(name).partition_index
            place = f"{ledger}:{entry}" + (f":{batch}" if batch >= 0 else "")
            if partition >= 0:
                place = f"partition {partition}, {place}"
            payload = _digest(b"tombstone") if row["value"] is None else _digest(b"payload", row["value"])
            key = _KEYLESS + payload if row["__key"] is None else _KEYED + row["__key"]
            yield Digest(self.names[name], key, payload, b"", None, place, partition, ledger, entry, batch)


FINDING_COLUMNS: Final = (
    "problem STRING, topic STRING, key STRING, source_place STRING, target_place STRING, detail STRING"
)
"""A finding is one problem. ``key`` is that of the message, where messages are matched by it."""


@dataclass(frozen=True)
class Findings:
    """The findings of the problems from `judge`, batch by batch.

    ``copied`` has the first and last source position of which a topic has a copy.
    """

    copied: Mapping[str, tuple[int, int]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(FINDING_COLUMNS)
        for batch in batches:
            yield pa.RecordBatch.from_pylist([self._finding(**problem) for problem in batch.to_pylist()], schema)

    def _finding(
        self, problem: str, topic: str, key: bytes, source_place: str | None, target_place: str | None
    ) -> dict[str, str | None]:
        detail, position = None, position_of(key)
        if problem == Problem.MISSING and position is not None:
            detail = self._where_missing(topic, position)
        elif is_unmarked(key):
            detail = "the copy does not say which entry it is a copy of; --match content does without"
        return {
            "problem": problem,
            "topic": topic,
            "key": key_for_people(key),
            "source_place": source_place,
            "target_place": target_place,
            "detail": detail,
        }

    def _where_missing(self, topic: str, position: int) -> str:
        if topic not in self.copied:
            return "the topic is empty"
        first, last = self.copied[topic]
        if position > last:
            return "behind the last copy: perhaps still on its way"
        return "before the first copy" if position < first else "between copies"
