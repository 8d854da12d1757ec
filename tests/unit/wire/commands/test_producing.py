"""Producer commands that need care."""

from collections.abc import Callable

from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

Read = Callable[[bytes], pb.BaseCommand]


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
