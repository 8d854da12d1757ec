"""Consumer commands that need care."""

from collections.abc import Callable

import pytest

from interpulse.model.errors import NotAllowed
from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

Read = Callable[[bytes], pb.BaseCommand]


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
