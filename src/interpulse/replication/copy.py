"""From an entry of the source cluster to the entry written on the target: skip rules and marks.

Entries pass through opaque: a batch stays one batch, compressed and encrypted as it was. Only the metadata grows. In
protobuf the last occurrence of a scalar field wins and repeated fields add up, so the marks are appended to the raw
metadata without re-encoding it. Only where fields have to go (transactions, schema versions that the target does not
know) is it parsed and written anew.

What is appended, and why: the broker rebuilds its de-duplication state from the *stored* producer name and highest
sequence id while live checks use those of the SEND command, so both must say the same, or repeats slip through after
a topic was reloaded.
"""

from __future__ import annotations

from typing import Any

from interpulse.wire import pulsar_api_pb2 as pb

__all__ = [
    "MARK_PREFIXES",
    "ORIGINAL_PRODUCER",
    "ORIGINAL_SEQUENCE",
    "SKIP_MARKER",
    "SKIP_NOT_ADDRESSED",
    "SKIP_REPLICATED",
    "SOURCE_POSITION",
    "EntryMarker",
    "renumber",
    "skip_reason",
]

SOURCE_POSITION = "__MSG_PROP_REPL_SOURCE_POSITION"
"""Property with ``ledger:entry`` of the source; the key Pulsar's own replicators write."""
ORIGINAL_PRODUCER = "__interpulse_producer"
ORIGINAL_SEQUENCE = "__interpulse_seq"
MARK_PREFIXES = ("__MSG_PROP_REPL_", "__interpulse_")
"""What the names of properties begin with that a copy has and its original has not."""

SKIP_REPLICATED = "replicated"
SKIP_NOT_ADDRESSED = "not-addressed"
SKIP_MARKER = "marker"


def skip_reason(metadata: pb.MessageMetadata, target_cluster: str | None) -> str | None:
    """Why this entry is not copied to ``target_cluster``; None if it is.

    In a full mesh an entry that came from another cluster is never sent on (Pulsar's rule against loops); a message
    may name the clusters it is meant for; markers belong to the cluster that wrote them. A copy that is no replication
    has no target cluster: it leaves out markers alone.
    """
    if metadata.HasField("marker_type"):
        return SKIP_MARKER
    if target_cluster is None:
        return None
    if metadata.replicated_from:
        return SKIP_REPLICATED
    addressed = metadata.replicate_to
    return SKIP_NOT_ADDRESSED if addressed and target_cluster not in addressed else None


class EntryMarker:
    """Appends the marks of one lane: origin cluster, lane name, sequence id, source position.

    Once per entry, so what does not change is encoded beforehand. A copy that is no replication has no origin.
    """

    def __init__(self, lane_name: str, source_cluster: str | None) -> None:
        origin = b"" if source_cluster is None else _text_field(5, source_cluster)
        self._constant = _text_field(1, lane_name) + origin + b"\x10"
        self._producers: dict[str, bytes] = {}

    def mark(
        self,
        raw: bytes,
        metadata: pb.MessageMetadata,
        position: tuple[int, int],
        sequence_id: int,
        schema_version: bytes | None = None,
    ) -> bytes:
        """The metadata to write; ``metadata`` is ``raw`` parsed, ``schema_version`` the one on the target if any."""
        number = _varint(sequence_id)
        position_text = b"%d:%d" % position
        original = b"%d" % metadata.sequence_id
        producer = metadata.producer_name
        return b"".join(
            (
                _for_target(raw, metadata, schema_version),
                self._constant,
                number,
                _POSITION_HEADS[len(position_text)],
                position_text,
                self._producers.get(producer) or self._producer_property(producer),
                _SEQUENCE_HEADS[len(original)],
                original,
                b"\xc0\x01",
                number,
            )
        )

    def _producer_property(self, name: str) -> bytes:
        """A topic has few producers; should it have very many, the memory of them starts anew."""
        if len(self._producers) >= _PRODUCERS_MAX:
            self._producers.clear()
        encoded = self._producers[name] = _property(ORIGINAL_PRODUCER, name)
        return encoded


def renumber(
    raw: bytes,
    metadata: pb.MessageMetadata,
    producer_name: str,
    sequence_id: int,
    schema_version: bytes | None = None,
) -> bytes:
    """The metadata of an entry that is published anew: under another name, its messages counted from ``sequence_id``.

    ``metadata`` is ``raw`` parsed, ``schema_version`` the one where it is published, if any.
    """
    highest = sequence_id + metadata.num_messages_in_batch - 1
    kept = _for_target(raw, metadata, schema_version)
    return b"".join((kept, _text_field(1, producer_name), b"\x10", _varint(sequence_id), b"\xc0\x01", _varint(highest)))


def _for_target(raw: bytes, metadata: pb.MessageMetadata, schema_version: bytes | None) -> bytes:
    """What only counts where the entry comes from goes: its transaction, and the number of its schema."""
    if metadata.HasField("schema_version") and schema_version is None:
        raw = _without(raw, "schema_version", *_TRANSACTION)
    elif metadata.HasField("txnid_least_bits") or metadata.HasField("txnid_most_bits"):
        raw = _without(raw, *_TRANSACTION)
    return raw if schema_version is None else b"%b\x82\x01%b%b" % (raw, _varint(len(schema_version)), schema_version)


def _without(raw: bytes, *fields: str) -> bytes:
    metadata: Any = pb.MessageMetadata.FromString(raw)
    for name in fields:
        metadata.ClearField(name)
    return bytes(metadata.SerializePartialToString())


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _text_field(number: int, text: str) -> bytes:
    encoded = text.encode()
    return _varint(number << 3 | 2) + _varint(len(encoded)) + encoded


def _property(key: str, value: str) -> bytes:
    pair = _text_field(1, key) + _text_field(2, value)
    return b"\x22" + _varint(len(pair)) + pair


def _property_heads(key: str) -> list[bytes]:
    """What stands before the value of a property, by the length of the value: short ones only."""
    name = _text_field(1, key)
    return [b"\x22%c%b\x12%c" % (len(name) + 2 + length, name, length) for length in range(_SHORT)]


_SHORT = 64
_TRANSACTION = ("txnid_least_bits", "txnid_most_bits")
_PRODUCERS_MAX = 1000
_POSITION_HEADS = _property_heads(SOURCE_POSITION)
_SEQUENCE_HEADS = _property_heads(ORIGINAL_SEQUENCE)
