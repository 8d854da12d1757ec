"""Messages read from entries of other clients."""

import struct

import pytest

from interpulse.client.messages import Message, OutgoingMessage, messages_of
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch
from interpulse.wire.entries import build_entry, parse_entry, with_broker_metadata
from interpulse.wire.errors import RemoteProtocolError


def read(metadata: pb.MessageMetadata, payload: bytes, front: bytes = b"") -> list[Message]:
    metadata.producer_name, metadata.sequence_id, metadata.publish_time = "p", 5, 1
    entry = parse_entry(front + build_entry(metadata.SerializeToString(), payload))
    return list(messages_of(entry, topic="t", ledger=1, entry_id=2, partition=3, redelivery_count=4))


def test_compacted_messages_of_a_batch_are_left_out_and_keep_their_indexes() -> None:
    payload = pack_batch((pb.SingleMessageMetadata(compacted_out=index == 1), b"x") for index in range(3))
    messages = read(pb.MessageMetadata(num_messages_in_batch=3), payload)
    assert [message.id.batch_index for message in messages] == [0, 2]
    assert messages[0].sequence_id == 5
    assert messages[1].sequence_id == 7


def test_encrypted_batch_comes_as_one_message_with_its_bytes() -> None:
    metadata = pb.MessageMetadata(num_messages_in_batch=3, compression=pb.LZ4, uncompressed_size=10)
    metadata.encryption_keys.add(key="k", value=b"v")
    (message,) = read(metadata, b"secret")
    assert (message.is_encrypted, message.content, message.id.batch_index) == (True, b"secret", -1)


def test_index_of_the_broker_counts_back_from_the_end_of_the_batch() -> None:
    broker = pb.BrokerEntryMetadata(broker_timestamp=77, index=12).SerializeToString()
    front = b"\x0e\x02" + struct.pack(">I", len(broker)) + broker
    payload = pack_batch((pb.SingleMessageMetadata(), b"x") for _ in range(3))
    messages = read(pb.MessageMetadata(num_messages_in_batch=3), payload, front)
    assert [message.index for message in messages] == [10, 11, 12]
    assert messages[0].broker_publish_time_ms == 77


@pytest.mark.parametrize("metadata", [pb.MessageMetadata(), pb.MessageMetadata(num_messages_in_batch=1)])
def test_broker_when_it_noted_only_one_of_index_and_time_then_the_other_is_absent(metadata: pb.MessageMetadata) -> None:
    payload = pack_batch([(pb.SingleMessageMetadata(), b"x")]) if metadata.num_messages_in_batch else b"x"
    noted = [pb.BrokerEntryMetadata(broker_timestamp=77), pb.BrokerEntryMetadata(index=12)]
    (timed,), (counted,) = (read(metadata, payload, with_broker_metadata(each, b"")) for each in noted)
    assert (timed.broker_publish_time_ms, timed.index) == (77, None)
    assert (counted.broker_publish_time_ms, counted.index) == (None, 12)


def test_entry_when_of_an_enormous_uncompressed_size_then_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(RemoteProtocolError, match="uncompressed payload of"):
        read(pb.MessageMetadata(compression=pb.ZLIB, uncompressed_size=2**31), b"x")


def test_message_with_a_delay_gets_its_time_when_it_is_sent() -> None:
    message = OutgoingMessage(b"x", deliver_after_ms=5)
    assert message.due_from(100) == OutgoingMessage(b"x", deliver_at_ms=105)
    plain = OutgoingMessage(b"x", deliver_at_ms=7)
    assert plain.due_from(100) is plain
    with pytest.raises(ValueError, match="are both set"):
        OutgoingMessage(b"x", deliver_at_ms=7, deliver_after_ms=5).due_from(100)
