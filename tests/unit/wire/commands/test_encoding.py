"""The hand-written frames must be the bytes that protobuf would have written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands.encoding import varint
from interpulse.wire.frames import encode_command, encode_with_entry

U64 = st.integers(0, 2**64 - 1)
U63 = st.integers(0, 2**63 - 1)
SIGNED = st.integers(-1, 2**63 - 1)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16383, 16384, 2**21, 2**28 - 1, 2**28, 2**63, 2**64 - 1])
def test_varint_at_the_edges_is_what_protobuf_writes(number: int) -> None:
    assert b"\x08" + varint(number) == pb.MessageIdData(ledgerId=number).SerializePartialToString()


def test_encode_when_given_any_content_then_is_the_frame_of_its_command() -> None:
    for field in pb.BaseCommand.DESCRIPTOR.fields:
        if field.message_type is None:
            continue
        content = getattr(pb, field.message_type.name)()
        if not content.IsInitialized():
            continue
        command = pb.BaseCommand(type=pb.BaseCommand.Type.Name(pb.BaseCommand.Type.ValueType(field.number)))  # type: ignore[arg-type]
        getattr(command, field.name).SetInParent()
        assert commands.encode(content) == encode_command(command)


@given(U64, U64, st.just(0) | U64, SIGNED, SIGNED, st.integers(-1, 5000))
def test_send_receipt_is_what_protobuf_writes(
    producer_id: int, sequence_id: int, highest: int, ledger: int, entry: int, partition: int
) -> None:
    content = pb.CommandSendReceipt(producer_id=producer_id, sequence_id=sequence_id)
    content.message_id.ledgerId = ledger % 2**64
    content.message_id.entryId = entry % 2**64
    if partition >= 0:
        content.message_id.partition = partition
    if highest:
        content.highest_sequence_id = highest
    expected = encode_command(pb.BaseCommand(type=pb.BaseCommand.SEND_RECEIPT, send_receipt=content))
    assert commands.send_receipt(producer_id, sequence_id, highest, ledger, entry, partition) == expected


@given(U64, U64, st.integers(1, 70000), st.just(0) | U64, st.booleans(), st.binary(max_size=300))
def test_send_is_what_protobuf_writes(
    producer_id: int, sequence_id: int, count: int, highest: int, chunk: bool, entry: bytes
) -> None:
    content = pb.CommandSend(producer_id=producer_id, sequence_id=sequence_id)
    if count != 1:
        content.num_messages = count
    if highest:
        content.highest_sequence_id = highest
    if chunk:
        content.is_chunk = True
    expected = encode_with_entry(pb.BaseCommand(type=pb.BaseCommand.SEND, send=content), entry)
    sent = commands.send(
        producer_id, sequence_id, entry, num_messages=count, highest_sequence_id=highest, is_chunk=chunk
    )
    assert sent == expected


@given(
    U64,
    U63,
    U63,
    st.integers(-1, 100),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
    st.none() | U64,
)
def test_message_is_what_protobuf_writes(
    consumer_id: int,
    ledger: int,
    entry: int,
    partition: int,
    redelivery_count: int,
    ack_set: list[int],
    epoch: int | None,
) -> None:
    content = pb.CommandMessage(consumer_id=consumer_id, ack_set=ack_set, consumer_epoch=epoch)
    content.message_id.ledgerId = ledger
    content.message_id.entryId = entry
    if partition >= 0:
        content.message_id.partition = partition
    if redelivery_count:
        content.redelivery_count = redelivery_count
    expected = encode_with_entry(pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=content), b"entry")
    head = commands.message_head(
        consumer_id,
        ledger,
        entry,
        5,
        partition=partition,
        redelivery_count=redelivery_count,
        ack_set=ack_set,
        consumer_epoch=epoch,
    )
    assert head + b"entry" == expected


@given(U64, SIGNED, SIGNED)
def test_ack_of_one_is_what_protobuf_writes(consumer_id: int, ledger: int, entry: int) -> None:
    message_id = pb.MessageIdData(ledgerId=ledger % 2**64, entryId=entry % 2**64)
    assert commands.ack_one(consumer_id, ledger, entry) == commands.ack(consumer_id, [message_id])


@given(U64, st.integers(0, 2**32 - 1))
def test_flow_is_what_protobuf_writes(consumer_id: int, permits: int) -> None:
    content = pb.CommandFlow(consumer_id=consumer_id, messagePermits=permits)
    assert commands.flow(consumer_id, permits) == commands.encode(content)
