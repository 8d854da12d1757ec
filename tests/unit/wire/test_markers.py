"""Markers of replicated subscriptions, compared with entries that brokers of Apache Pulsar 5.0.0-M1 wrote.

The entries are from two clusters, ``ra`` and ``rb``.
"""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.ids import EARLIEST, Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, parse_entry, verify_checksum, with_broker_metadata
from interpulse.wire.markers import (
    MARKER_PRODUCER,
    Marker,
    build_marker,
    cluster_position,
    parse_marker,
    position_on,
)

REQUEST = bytes.fromhex(
    "0e015e42de780000001b"
    "0a0d70756c7361722e6d61726b6572100018b48afc92a234a0010a"
    "0a2431643332363730372d623930322d346238372d616639332d61323734323932393731386612027261"
)
COPY_OF_REQUEST = bytes.fromhex(
    "0e01901436ea00000048"
    "0a0d70756c7361722e6d61726b6572100018b48afc92a23422270a1f5f5f4d53475f50524f505f5245504c5f534f555243455f504f534954"
    "494f4e1204333a31302a027261a0010a"
    "0a2431643332363730372d623930322d346238372d616639332d61323734323932393731386612027261"
)
COPY_OF_RESPONSE = bytes.fromhex(
    "0e011b88ca780000004c"
    "0a0d70756c7361722e6d61726b6572100018998dfc92a23422270a1f5f5f4d53475f50524f505f5245504c5f534f555243455f504f534954"
    "494f4e1204333a31312a0272623a027261a0010b"
    "0a2431643332363730372d623930322d346238372d616639332d613237343239323937313866120a0a02726212040803100a"
)
SNAPSHOT = bytes.fromhex(
    "0e01d0f983550000001f"
    "0a0d70756c7361722e6d61726b6572100018ea8dfc92a2343a027261a0010c"
    "0a2431643332363730372d623930322d346238372d616639332d61323734323932393731386612040803100b1a0a0a02726212040803100a"
)
UPDATE = bytes.fromhex(
    "0e01b0e3960f0000001b0a0d70756c7361722e6d61726b657210001899befc92a234a0010d0a0173120a0a027262120408031010"
)
METADATA_OF_COPIED_UPDATE = bytes.fromhex(
    "0a0d70756c7361722e6d61726b657210001899befc92a23422270a1f5f5f4d53475f50524f505f5245504c5f534f555243455f504f534954"
    "494f4e1204333a32312a027261a0010d"
)
POSITION_ON_RB = cluster_position("rb", Position(3, 10))


def marker_in(entry: bytes) -> Marker:
    marker = parse_marker(entry)
    assert marker is not None
    return marker


def copied(entry: bytes, source: str, position: str) -> bytes:
    """What a replicator makes of an entry."""
    parsed = parse_entry(entry)
    parsed.metadata.properties.add(key="__MSG_PROP_REPL_SOURCE_POSITION", value=position)
    parsed.metadata.replicated_from = source
    return build_entry(parsed.metadata.SerializeToString(), parsed.payload)


@pytest.mark.parametrize("entry", [REQUEST, COPY_OF_REQUEST, COPY_OF_RESPONSE, SNAPSHOT, UPDATE])
def test_golden_entry_when_parsed_and_built_again_then_has_the_same_bytes(entry: bytes) -> None:
    assert verify_checksum(entry)
    metadata, payload = marker_in(entry)
    assert metadata.producer_name == MARKER_PRODUCER
    built = build_marker(payload, metadata.publish_time, replicate_to=list(metadata.replicate_to))
    if metadata.replicated_from:
        built = copied(built, metadata.replicated_from, metadata.properties[0].value)
    assert built == entry
    assert marker_in(with_broker_metadata(pb.BrokerEntryMetadata(index=7), entry)) == (metadata, payload)


def test_golden_fields() -> None:
    asked = marker_in(COPY_OF_REQUEST)
    assert asked.payload == marker_in(REQUEST).payload
    assert asked.metadata.replicated_from == "ra"
    request, response, snapshot = (marker_in(each).payload for each in (REQUEST, COPY_OF_RESPONSE, SNAPSHOT))
    assert isinstance(request, pb.ReplicatedSubscriptionsSnapshotRequest)
    assert isinstance(response, pb.ReplicatedSubscriptionsSnapshotResponse)
    assert isinstance(snapshot, pb.ReplicatedSubscriptionsSnapshot)
    assert request.source_cluster == "ra"
    assert request.snapshot_id == response.snapshot_id == snapshot.snapshot_id
    assert response.cluster == POSITION_ON_RB
    assert list(snapshot.clusters) == [POSITION_ON_RB]
    assert (snapshot.local_message_id.ledger_id, snapshot.local_message_id.entry_id) == (3, 11)
    update = marker_in(UPDATE).payload
    assert isinstance(update, pb.ReplicatedSubscriptionsUpdate)
    assert (update.subscription_name, position_on("rb", update.clusters)) == ("s", Position(3, 16))
    assert position_on("ra", update.clusters) is None
    assert parse_entry(copied(UPDATE, "ra", "3:21")).metadata_bytes == METADATA_OF_COPIED_UPDATE


def test_position_before_the_first_entry_when_named_then_is_read_again() -> None:
    assert position_on("rb", [cluster_position("ra", Position(1, 1)), cluster_position("rb", EARLIEST)]) == EARLIEST


def metadata(**fields: Any) -> bytes:
    return pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, **fields).SerializeToString()


@pytest.mark.parametrize(
    "entry",
    [
        build_entry(metadata(), b"payload"),
        build_entry(metadata(marker_type=pb.TXN_COMMIT), b""),
        build_entry(metadata(marker_type=pb.REPLICATED_SUBSCRIPTION_UPDATE), b"\xff"),
        build_entry(metadata(marker_type=pb.REPLICATED_SUBSCRIPTION_UPDATE), b""),
        b"\x0e\x01",
    ],
    ids=["message", "transaction", "no-protobuf", "field-missing", "cut-off"],
)
def test_entry_without_a_readable_marker_then_none(entry: bytes) -> None:
    assert parse_marker(entry) is None
