"""Markers of replicated subscriptions: entries that brokers of several clusters write for each other.

A marker's ``marker_type`` names the message in its payload: a request for a snapshot, a response to it, the snapshot,
or the update of a subscription. Markers are neither compressed nor batched and have no schema. A cluster that copies a
marker adds what it adds to every entry. Source: docs/reference/subscriptions.md#replicated-subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, parse_entry
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.ids import signed, unsigned

MARKER_PRODUCER: Final = "pulsar.marker"
"""The name in every marker that a broker writes. There is no such producer."""

MarkerPayload = (
    pb.ReplicatedSubscriptionsSnapshotRequest
    | pb.ReplicatedSubscriptionsSnapshotResponse
    | pb.ReplicatedSubscriptionsSnapshot
    | pb.ReplicatedSubscriptionsUpdate
)

_PAYLOADS: Final[dict[int, Any]] = {
    pb.REPLICATED_SUBSCRIPTION_SNAPSHOT_REQUEST: pb.ReplicatedSubscriptionsSnapshotRequest,
    pb.REPLICATED_SUBSCRIPTION_SNAPSHOT_RESPONSE: pb.ReplicatedSubscriptionsSnapshotResponse,
    pb.REPLICATED_SUBSCRIPTION_SNAPSHOT: pb.ReplicatedSubscriptionsSnapshot,
    pb.REPLICATED_SUBSCRIPTION_UPDATE: pb.ReplicatedSubscriptionsUpdate,
}
_TYPES: Final = {payload: marker_type for marker_type, payload in _PAYLOADS.items()}


class Marker(NamedTuple):
    """A stored marker: its metadata, and the message in its payload."""

    metadata: pb.MessageMetadata
    payload: MarkerPayload


def parse_marker(entry: bytes | memoryview) -> Marker | None:
    """Return the marker in a stored entry; None if it is another entry, or cannot be read."""
    try:
        parsed = parse_entry(entry)
        payload_type = _PAYLOADS.get(parsed.metadata.marker_type)
        if payload_type is None:
            return None
        payload = payload_type.FromString(bytes(parsed.payload))
    except (RemoteProtocolError, DecodeError):
        return None
    return Marker(parsed.metadata, payload) if payload.IsInitialized() else None


def build_marker(
    payload: MarkerPayload,
    publish_time_ms: int,
    *,
    replicate_to: Sequence[str] = (),
    replicated_from: str | None = None,
) -> bytes:
    """Return the entry of a marker for the clusters ``replicate_to``; () = for all.

    ``replicated_from`` is the cluster that has written it, if that is another one than where it is stored.
    """
    metadata = pb.MessageMetadata(
        producer_name=MARKER_PRODUCER,
        sequence_id=0,
        publish_time=publish_time_ms,
        replicate_to=replicate_to,
        replicated_from=replicated_from,
        marker_type=_TYPES[type(payload)],
    )
    return build_entry(metadata.SerializeToString(), payload.SerializeToString())


def cluster_position(cluster: str, position: Position) -> pb.ClusterMessageId:
    """Return a position in the log of a cluster, as markers name it."""
    message_id = pb.MarkersMessageIdData(ledger_id=unsigned(position.ledger), entry_id=unsigned(position.entry))
    return pb.ClusterMessageId(cluster=cluster, message_id=message_id)


def position_on(cluster: str, positions: Iterable[pb.ClusterMessageId]) -> Position | None:
    """Return the position of a cluster among those that a marker names; None if it names none."""
    for named in positions:
        if named.cluster == cluster:
            return Position(signed(named.message_id.ledger_id), signed(named.message_id.entry_id))
    return None
