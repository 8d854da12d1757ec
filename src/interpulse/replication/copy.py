"""Conversion of a source entry to the entry on the target: skip rules and marks.

Entries are opaque: a batch remains one batch, compressed and encrypted as it was. Only the metadata grows. In protobuf
the last occurrence of a scalar field wins and repeated fields add up, so the marks are appended to the raw metadata
without encoding it again. It is parsed and encoded only if fields are removed: transactions, and schema versions that
the target does not have.

The marks matter for de-duplication: a broker rebuilds its state from the *stored* producer name and highest sequence
id, while it checks those of the SEND command. Both must agree, otherwise duplicates pass after a topic is loaded again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import codec
from interpulse.wire.commands import varint
from interpulse.wire.stamps import (
    SOURCE_POSITION,
    StampEncoder,
    property_field,
    schema_version_field,
    source_positions,
    text_field,
)

ORIGINAL_PRODUCER = "__interpulse_producer"
ORIGINAL_SEQUENCE = "__interpulse_seq"
MARK_PREFIXES = ("__MSG_PROP_REPL_", "__interpulse_")
"""Prefixes of properties that a copy has and its original lacks."""

_CARRIED: Final = (pb.REPLICATED_SUBSCRIPTION_SNAPSHOT_RESPONSE, pb.REPLICATED_SUBSCRIPTION_UPDATE)

SKIP_REPLICATED = "replicated"
SKIP_NOT_ADDRESSED = "not-addressed"
SKIP_MARKER = "marker"
SKIP_PASSED = "passed"
"""Reason: the cursor on the source has passed the entry, by TTL or by an operator."""


def skip_reason(
    metadata: pb.MessageMetadata, target_cluster: str | None, *, forwarded_by: str | None = None
) -> str | None:
    """Return the reason why an entry is not copied to ``target_cluster``; None if it is copied.

    In a full mesh an entry that came from another cluster is not sent on (Pulsar's rule against loops); a message may
    name its target clusters; markers belong to the cluster that wrote them. A copy that is not replication has no
    target cluster: it skips only markers. ``forwarded_by`` is a cluster in the middle of a chain, which forwards
    entries of other clusters: never to the cluster where they were published, nor back to the one they came from.
    """
    if metadata.HasField("marker_type"):
        return SKIP_MARKER
    if target_cluster is None:
        return None
    if metadata.replicated_from and (forwarded_by is None or _comes_from(target_cluster, metadata, forwarded_by)):
        return SKIP_REPLICATED
    addressed = metadata.replicate_to
    return SKIP_NOT_ADDRESSED if addressed and target_cluster not in addressed else None


def is_carried_marker(metadata: pb.MessageMetadata, target_cluster: str | None) -> bool:
    """Return True for a response, or the update of a subscription, that the source wrote for ``target_cluster``.

    The other markers are for the cluster that wrote them.
    """
    if metadata.marker_type not in _CARRIED or target_cluster is None or metadata.replicated_from:
        return False
    return not metadata.replicate_to or target_cluster in metadata.replicate_to


def _comes_from(cluster: str, metadata: pb.MessageMetadata, here: str) -> bool:
    return is_copy_from(cluster, here, origin=metadata.replicated_from, producer=metadata.producer_name)


def is_copy_from(cluster: str, here: str, *, origin: str, producer: str) -> bool:
    """Return True for an entry that a replicator or a lane of ``cluster`` wrote to the cluster ``here``.

    ``origin`` is the ``replicated_from`` of the entry.
    """
    return origin == cluster or is_lane_between(producer, cluster, here)


def is_copied_by_lane(metadata: pb.MessageMetadata, source_cluster: str, target_cluster: str) -> bool:
    """Return True if a lane from ``source_cluster`` wrote this entry of ``target_cluster``, wherever it is from."""
    return is_lane_between(metadata.producer_name, source_cluster, target_cluster)


def is_lane_between(producer: str, source_cluster: str, target_cluster: str) -> bool:
    """Return True for the producer name of a lane from one cluster to the other."""
    return f".{source_cluster}-->{target_cluster}." in f"{producer}."


def replicator_position(metadata: pb.MessageMetadata) -> Position | None:
    """Return the source position of an entry that one of Pulsar's replicators wrote (4.0.4 and later), otherwise None.

    Entries of a lane name one too, but have their own producer name and sequence ids.
    """
    if not metadata.replicated_from or any(item.key == ORIGINAL_PRODUCER for item in metadata.properties):
        return None
    positions = source_positions(metadata)
    return positions[-1] if positions else None


class EntryMarker:
    """Marks of one lane: origin cluster, lane name, sequence id, source position."""

    def __init__(self, lane_name: str, source_cluster: str | None) -> None:
        """Create the marks of a lane. A copy that is not replication has no origin."""
        self._origin = b"" if source_cluster is None else text_field(5, source_cluster)
        self._lane_name = lane_name
        constant = text_field(1, lane_name) + self._origin
        self._fields = StampEncoder(constant, _KEYS).fields
        self._copies = codec().entry_stamper(constant, _KEYS)

    def mark(
        self,
        raw: bytes,
        metadata: pb.MessageMetadata,
        position: tuple[int, int],
        sequence_id: int,
        schema_version: bytes | None = None,
    ) -> bytes:
        """Return the metadata to write.

        ``metadata`` is ``raw`` parsed, ``schema_version`` the one on the target, if any.
        """
        if metadata.replicated_from:
            return self._mark_forwarded(_for_target(raw, metadata, schema_version), position, sequence_id)
        return _for_target(raw, metadata, schema_version) + self._fields(metadata, position, sequence_id)

    def mark_carried(self, raw: bytes, position: tuple[int, int]) -> bytes:
        """Return the metadata of a copied marker, as Pulsar's replicators write it: without the name of the lane."""
        return raw + property_field(SOURCE_POSITION.encode(), b"%d:%d" % position) + self._origin

    def copies(
        self,
        entries: Sequence[bytes],
        positions: Sequence[tuple[int, int]],
        sequence_ids: Sequence[int],
        start: int,
        schemas: Sequence[tuple[bytes, bytes]],
    ) -> tuple[Sequence[bytes], Sequence[int]]:
        """Return the entries to write from ``start`` on, marked as by :meth:`mark`, and the message count of each.

        ``schemas`` maps versions of the source to those of the target. The run ends before an entry that needs its own
        check: a possible reason to skip it, another schema, or unusual metadata.
        """
        return self._copies(entries, positions, sequence_ids, start, schemas)

    def _mark_forwarded(self, raw: bytes, position: tuple[int, int], sequence_id: int) -> bytes:
        """Mark a copy of a copy. Its origin and first producer remain, its position is the one on this cluster."""
        metadata: Any = pb.MessageMetadata.FromString(raw)
        original = {item.key: item.value for item in metadata.properties if item.key in _FIRST_MARKS}
        own = [item for item in metadata.properties if not item.key.startswith(MARK_PREFIXES)]
        first = {ORIGINAL_PRODUCER: metadata.producer_name, ORIGINAL_SEQUENCE: str(metadata.sequence_id)}
        marks = {SOURCE_POSITION: f"{position[0]}:{position[1]}", **first, **original}
        del metadata.properties[:]
        metadata.properties.extend([*own, *(pb.KeyValue(key=key, value=value) for key, value in marks.items())])
        metadata.producer_name = self._lane_name
        metadata.sequence_id = metadata.highest_sequence_id = sequence_id
        return bytes(metadata.SerializePartialToString())


def renumber(
    raw: bytes, metadata: pb.MessageMetadata, producer_name: str, sequence_id: int, schema_version: bytes | None = None
) -> bytes:
    """Return the metadata of an entry that is published again.

    It gets another producer name, and sequence ids counted from ``sequence_id``. ``metadata`` is ``raw`` parsed,
    ``schema_version`` the one on the new topic, if any. The source position of a replicated entry is removed, because
    it would identify the entry as a replicator's.
    """
    highest = sequence_id + metadata.num_messages_in_batch - 1
    fields = _for_target(raw, metadata, schema_version)
    if replicator_position(metadata) is not None:
        fields = _without_position(fields)
    return b"".join((fields, text_field(1, producer_name), b"\x10", varint(sequence_id), b"\xc0\x01", varint(highest)))


def _for_target(raw: bytes, metadata: pb.MessageMetadata, schema_version: bytes | None) -> bytes:
    """Remove fields that are valid only on the source: the transaction, and the schema version."""
    if metadata.HasField("schema_version") and schema_version is None:
        raw = _without(raw, "schema_version", *_TRANSACTION)
    elif metadata.HasField("txnid_least_bits") or metadata.HasField("txnid_most_bits"):
        raw = _without(raw, *_TRANSACTION)
    return raw if schema_version is None else raw + schema_version_field(schema_version)


def _without(raw: bytes, *fields: str) -> bytes:
    metadata: Any = pb.MessageMetadata.FromString(raw)
    for name in fields:
        metadata.ClearField(name)
    return bytes(metadata.SerializePartialToString())


def _without_position(raw: bytes) -> bytes:
    metadata: Any = pb.MessageMetadata.FromString(raw)
    own = [item for item in metadata.properties if item.key != SOURCE_POSITION]
    del metadata.properties[:]
    metadata.properties.extend(own)
    return bytes(metadata.SerializePartialToString())


_FIRST_MARKS = (ORIGINAL_PRODUCER, ORIGINAL_SEQUENCE)
_TRANSACTION = ("txnid_least_bits", "txnid_most_bits")
_KEYS = (SOURCE_POSITION.encode(), ORIGINAL_PRODUCER.encode(), ORIGINAL_SEQUENCE.encode())
