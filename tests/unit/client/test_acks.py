"""Collecting acknowledgements."""

from interpulse.client.acks import AckTracker
from interpulse.client.messages import Message
from interpulse.model.ids import MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import FrameDecoder


def message(ledger: int, entry: int, index: int = -1, size: int = 0) -> Message:
    return Message(
        id=MessageId(ledger, entry, -1, index),
        topic="t",
        content=b"",
        key=None,
        key_is_binary=False,
        ordering_key=None,
        properties={},
        publish_time_ms=1,
        event_time_ms=0,
        producer_name="p",
        sequence_id=0,
        schema_version=None,
        replicated_from=None,
        deliver_at_ms=None,
        redelivery_count=0,
        index=None,
        broker_publish_time_ms=None,
        is_encrypted=False,
        batch_size=size,
    )


def sent(tracker: AckTracker) -> list[pb.CommandAck]:
    return [frame.command.ack for data in tracker.take_frames(7) for frame in FrameDecoder().feed(data)]


def positions(ack: pb.CommandAck) -> list[tuple[int, int]]:
    return [(message_id.ledgerId, message_id.entryId) for message_id in ack.message_id]


def test_single_messages_when_acknowledged_then_go_out_together_once() -> None:
    tracker = AckTracker()
    tracker.acknowledge(message(1, 1))
    tracker.acknowledge(message(1, 2))
    assert tracker.pending_count == 2
    (ack,) = sent(tracker)
    assert (ack.consumer_id, ack.ack_type, positions(ack)) == (7, pb.CommandAck.Individual, [(1, 1), (1, 2)])
    assert sent(tracker) == []


def test_batch_when_partly_acknowledged_then_waits_and_remembers() -> None:
    tracker = AckTracker()
    tracker.acknowledge(message(1, 1, 0, 3))
    tracker.acknowledge(message(1, 1, 2, 3))
    assert sent(tracker) == []
    done = [index for index in range(3) if tracker.is_done(MessageId(1, 1, -1, index))]
    assert done == [0, 2]
    tracker.acknowledge(message(1, 1, 1, 3))
    assert [positions(ack) for ack in sent(tracker)] == [[(1, 1)]]


def test_cumulative_inside_a_batch_then_covers_only_the_entries_before() -> None:
    tracker = AckTracker()
    tracker.acknowledge_cumulative(message(1, 5, 1, 3))
    (ack,) = sent(tracker)
    assert (ack.ack_type, positions(ack)) == (pb.CommandAck.Cumulative, [(1, 4)])
    tracker.acknowledge_cumulative(message(1, 5, 2, 3))
    assert [positions(ack) for ack in sent(tracker)] == [[(1, 5)]]


def test_chunked_message_when_acknowledged_then_all_its_entries_are() -> None:
    tracker = AckTracker()
    tracker.remember_chunks(Position(1, 9), [Position(1, 7), Position(1, 9)])
    tracker.acknowledge(message(1, 9))
    assert [positions(ack) for ack in sent(tracker)] == [[(1, 7), (1, 9)]]


def test_everything_when_the_cursor_moves_then_is_forgotten() -> None:
    tracker = AckTracker()
    tracker.acknowledge(message(1, 1))
    tracker.acknowledge(message(1, 2, 0, 2))
    tracker.acknowledge_cumulative(message(1, 1))
    tracker.forget()
    assert sent(tracker) == []
    assert not tracker.is_done(MessageId(1, 2, -1, 0))
