"""Batches: packing, unpacking, and what is cut off."""

import pytest

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch, unpack_batch
from interpulse.wire.errors import RemoteProtocolError


def batch_of(*payloads: bytes) -> bytes:
    return pack_batch((pb.SingleMessageMetadata(sequence_id=index), item) for index, item in enumerate(payloads))


def test_batch_when_unpacked_then_gives_the_messages_in_order() -> None:
    messages = unpack_batch(batch_of(b"a", b"", b"ccc"), 3)
    assert [bytes(message.payload) for message in messages] == [b"a", b"", b"ccc"]
    assert [message.metadata.sequence_id for message in messages] == [0, 1, 2]
    assert [message.metadata.payload_size for message in messages] == [1, 0, 3]


def test_batch_when_packed_then_has_size_metadata_and_payload() -> None:
    metadata = pb.SingleMessageMetadata(partition_key="k")
    assert pack_batch([(metadata, b"x")]).hex() == "00000005" + "12016b1801" + "78"


@pytest.mark.parametrize("lost", range(1, 12))
def test_batch_when_cut_off_then_is_refused(lost: int) -> None:
    with pytest.raises(RemoteProtocolError):
        unpack_batch(batch_of(b"a", b"ccc")[:-lost], 2)


def test_batch_when_it_announces_a_negative_size_then_is_refused() -> None:
    raw = pb.SingleMessageMetadata(payload_size=-3).SerializeToString()
    with pytest.raises(RemoteProtocolError):
        unpack_batch(len(raw).to_bytes(4, "big") + raw + bytes(10), 2)


def test_batch_when_it_holds_fewer_messages_than_announced_then_is_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        unpack_batch(batch_of(b"a"), 2)
