"""Commands that need care, and frames that are written by hand: the bytes that protobuf would have written."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.errors import NotAllowed, TopicNotFound
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.commands import varint
from interpulse.wire.frames import encode_command
from tests.support import commands
from tests.support.commands import encode_with_entry

Read = Callable[[bytes], pb.BaseCommand]


def test_error_when_it_answers_no_request_then_its_id_is_minus_one(read: Read) -> None:
    assert read(commands.error(-1, 3, "no")).error.request_id == 2**64 - 1


def test_error_of_a_failure_carries_its_code_and_sentence(read: Read) -> None:
    error = read(commands.error_of(5, TopicNotFound("gone"))).error
    assert (error.request_id, error.error, error.message) == (5, pb.TopicNotFound, "gone")


def test_connect_when_there_are_no_credentials_then_leaves_them_out(read: Read) -> None:
    connect = read(commands.connect(client_version="v", protocol_version=21, feature_flags=pb.FeatureFlags())).connect
    assert not connect.HasField("auth_data")
    assert not connect.HasField("proxy_to_broker_url")
    assert connect.auth_method_name == "none"


def test_answers_always_carry_response(read: Read) -> None:
    metadata = read(commands.partitioned_metadata_response(1, 0)).partitionMetadataResponse
    assert metadata.HasField("response")
    assert metadata.HasField("partitions")
    redirect = read(commands.lookup_response(1, broker_url="pulsar://a:1", redirect=True)).lookupTopicResponse
    assert redirect.HasField("response")
    assert redirect.response == pb.CommandLookupTopicResponse.Redirect
    failed = read(commands.lookup_error(1, 6, "later")).lookupTopicResponse
    assert (failed.response, failed.error) == (pb.CommandLookupTopicResponse.Failed, pb.ServiceNotReady)
    failure = read(commands.partitioned_metadata_error(1, 11, "")).partitionMetadataResponse
    assert failure.response == pb.CommandPartitionedTopicMetadataResponse.Failed
    assert failure.HasField("message")


@pytest.mark.parametrize("request_id", [0, 127, 128, 2**14, 2**64 - 1])
@pytest.mark.parametrize("tls", ["", "pulsar+ssl://a:2"])
@pytest.mark.parametrize("flags", list(product([False, True], repeat=3)))
def test_answer_of_a_lookup_is_what_protobuf_writes(request_id: int, tls: str, flags: tuple[bool, bool, bool]) -> None:
    redirect, authoritative, proxied = flags
    kind = pb.CommandLookupTopicResponse.Redirect if redirect else pb.CommandLookupTopicResponse.Connect
    message = pb.CommandLookupTopicResponse(
        brokerServiceUrl="pulsar://a:1",
        brokerServiceUrlTls=tls or None,
        response=kind,
        request_id=request_id,
        authoritative=authoritative,
        proxy_through_service_url=proxied,
    )
    assert commands.encode(message) == commands.lookup_response(
        request_id,
        broker_url="pulsar://a:1",
        broker_url_tls=tls,
        redirect=redirect,
        authoritative=authoritative,
        proxy_through_service_url=proxied,
    )


def test_metadata_request_when_it_may_create_then_looks_like_an_old_client(read: Read) -> None:
    assert not read(commands.partitioned_metadata(1, "t")).partitionMetadata.HasField("metadata_auto_creation_enabled")
    request = read(commands.partitioned_metadata(1, "t", create=False)).partitionMetadata
    assert request.metadata_auto_creation_enabled is False


def test_batch_lookup_and_its_answers_survive_the_wire(read: Read) -> None:
    request = read(commands.batch_lookup(3, ["a", "b"], expand_partitions=True)).batchLookupTopic
    assert (list(request.topics), request.expand_partitions, request.create_if_missing) == (["a", "b"], True, True)
    group = pb.BatchLookupGroup(brokerServiceUrl="pulsar://a:1", topicname=["a"])
    answer = read(commands.batch_lookup_response(3, groups=[group], partitions={"b": 2})).batchLookupTopicResponse
    assert answer.groups[0].topicname == ["a"]
    assert (answer.partitions[0].topic, answer.partitions[0].partitions) == ("b", 2)
    assert read(commands.batch_lookup_error(3, 14, "full")).batchLookupTopicResponse.error == pb.TooManyRequests


@pytest.mark.parametrize("request_id", [0, 1, 127, 128, 16_383, 16_384, 2**31, 2**56 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("partitions", [0, 1, 200, 2**32 - 1])
def test_answer_to_a_metadata_question_is_what_protobuf_writes(request_id: int, partitions: int) -> None:
    message = pb.CommandPartitionedTopicMetadataResponse(
        partitions=partitions, request_id=request_id, response=pb.CommandPartitionedTopicMetadataResponse.Success
    )
    assert commands.partitioned_metadata_response(request_id, partitions) == commands.encode(message)


def test_producer_success_when_no_sequence_id_exists_then_minus_one(read: Read) -> None:
    answer = read(commands.producer_success(1, name="p")).producer_success
    assert answer.HasField("last_sequence_id")
    assert (answer.last_sequence_id, answer.producer_ready) == (-1, True)
    assert not answer.HasField("topic_epoch")


def test_close_producer_when_the_broker_sends_it_then_its_request_id_is_minus_one(read: Read) -> None:
    close = read(commands.close_producer(7)).close_producer
    assert (close.producer_id, close.request_id) == (7, 2**64 - 1)
    assert not close.HasField("assignedBrokerServiceUrl")


def test_receipt_of_a_duplicate_carries_minus_one_twice(read: Read) -> None:
    receipt = read(commands.send_receipt(1, 2, 0, -1, -1)).send_receipt
    assert (receipt.message_id.ledgerId, receipt.message_id.entryId) == (2**64 - 1, 2**64 - 1)


def test_ack_response_when_all_went_well_then_has_neither_error_nor_message(read: Read) -> None:
    answer = read(commands.ack_response(1, 2)).ackResponse
    assert not answer.HasField("error")
    assert not answer.HasField("message")
    failed = read(commands.ack_response(1, 2, NotAllowed("no"))).ackResponse
    assert (failed.error, failed.message) == (pb.NotAllowedError, "no")


def test_last_message_id_of_an_empty_topic_is_minus_one_and_has_both_positions(read: Read) -> None:
    answer = read(commands.get_last_message_id_response(1, MessageId(-1, -1), EARLIEST)).getLastMessageIdResponse
    assert answer.last_message_id.ledgerId == 2**64 - 1
    assert answer.HasField("consumer_mark_delete_position")


def test_seek_has_exactly_one_target(read: Read) -> None:
    by_time = read(commands.seek(1, 2, 1234)).seek
    assert (by_time.message_publish_time, by_time.HasField("message_id")) == (1234, False)
    by_position = read(commands.seek(1, 2, Position(3, 4))).seek
    assert (by_position.message_id.ledgerId, by_position.HasField("message_publish_time")) == (3, False)


def test_subscribe_of_a_reader_carries_its_start(read: Read) -> None:
    subscribe = read(commands.subscribe(1, 2, "t", "reader-1", durable=False, start=LATEST)).subscribe
    assert subscribe.durable is False
    assert subscribe.start_message_id.entryId == 2**63 - 1
    assert not subscribe.start_message_id.HasField("batch_index")


def test_ack_when_cumulative_then_says_so(read: Read) -> None:
    ack = read(commands.ack(1, [pb.MessageIdData(ledgerId=1, entryId=2)], cumulative=True, request_id=9)).ack
    assert (ack.ack_type, ack.request_id) == (pb.CommandAck.Cumulative, 9)


@pytest.mark.parametrize("partition", [-1, 0, 3])
def test_message_head_encoder_when_numbers_vary_then_bytes_of_message_head(partition: int) -> None:
    encoder = commands.MessageHeadEncoder(5, partition)
    for number in (0, 1, 127, 128, 16383, 16384, 2**21, 2**32, 2**62):
        for size in (0, 100, 5_000_000):
            expected = commands.message_head(5, number, number, size, partition=partition)
            assert encoder.encode(number, number, size) == expected


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
