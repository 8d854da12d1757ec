"""Collecting acknowledgements."""

import pytest

from interpulse.client.consuming.ack_tracker import AckTracker
from interpulse.client.messages import Message
from interpulse.model.ids import MessageId, Position
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import FrameDecoder
from interpulse.wire.ids import mask_of
from tests.support.received_messages import received


def message(ledger: int, entry: int, index: int = -1, size: int = 0) -> Message:
    return received(MessageId(ledger, entry, -1, index), batch_size=size)


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


def written(tracker: AckTracker) -> list[str]:
    """What leaves, as text: the kind, then each entry with what of it still waits."""
    return [
        pb.CommandAck.AckType.Name(ack.ack_type)[0]
        + "".join(
            f" {each.entryId}" + (f":{mask_of(each.ack_set):b}" if each.ack_set else "") for each in ack.message_id
        )
        for ack in sent(tracker)
    ]


@pytest.mark.parametrize(
    ("steps", "whole_entries", "batch_indexes"),
    [
        pytest.param("1", [""], ["I 5:101"], id="one"),
        pytest.param("0 2", [""], ["I 5:10"], id="two-leave-together"),
        pytest.param("1 1", [""], ["I 5:101"], id="twice"),
        pytest.param("2 1 0", ["I 5"], ["I 5"], id="all-of-it"),
        pytest.param("1 . 0 2", ["", "I 5"], ["I 5:101", "I 5"], id="the-rest-later"),
        pytest.param("u1", ["C 4"], ["C 5:100"], id="up-to"),
        pytest.param("u2", ["C 5"], ["C 5"], id="up-to-the-last"),
        pytest.param("u0 u1", ["C 4"], ["C 5:100"], id="up-to-again"),
        pytest.param("u1 u0", ["C 4"], ["C 5:100"], id="up-to-a-lower-one"),
        pytest.param("u2 u0", ["C 5"], ["C 5"], id="up-to-the-last-and-to-a-lower-one"),
        pytest.param("u9 u1", ["C 9"], ["C 9"], id="up-to-an-entry-before"),
        pytest.param("2 u0", ["C 4"], ["C 5:10"], id="one-and-up-to"),
        pytest.param("u0 . 2", ["C 4", ""], ["C 5:110", "I 5:10"], id="up-to-then-one"),
        pytest.param("u0 . 2 1", ["C 4", "I 5"], ["C 5:110", "I 5"], id="up-to-then-the-rest"),
        pytest.param("1 u9", ["C 9"], ["C 9"], id="up-to-an-entry-behind"),
    ],
)
def test_batch_of_three_when_acknowledged_then_the_broker_hears(
    steps: str, whole_entries: list[str], batch_indexes: list[str]
) -> None:
    for tracker, expected in ((AckTracker(), whole_entries), (AckTracker(batch_indexes=True), batch_indexes)):
        heard = []
        for step in steps.split(" "):
            if step == ".":
                heard.append(" ".join(written(tracker)))
            elif step == "u9":
                tracker.acknowledge_cumulative(message(1, 9))
            elif step.startswith("u"):
                tracker.acknowledge_cumulative(message(1, 5, int(step[1]), 3))
            else:
                tracker.acknowledge(message(1, 5, int(step), 3))
        heard.append(" ".join(written(tracker)))
        assert heard == expected
        assert tracker.pending_count == 0


def test_batch_of_seventy_when_acknowledged_in_part_then_two_words_say_what_waits() -> None:
    tracker = AckTracker(batch_indexes=True)
    tracker.acknowledge(message(1, 5, 1, 70))
    (ack,) = sent(tracker)
    assert list(ack.message_id[0].ack_set) == [-3, 63]  # what the official Python client sends


@pytest.mark.parametrize(
    ("known", "batch_indexes"),
    [pytest.param(0b110, "", id="by-the-broker"), pytest.param(0b111, "I 5:110", id="here-alone")],
)
def test_batch_when_only_some_of_it_waits_then_those_complete_it(known: int, batch_indexes: str) -> None:
    for tracker, expected in ((AckTracker(), ""), (AckTracker(batch_indexes=True), batch_indexes)):
        tracker.narrow(Position(1, 5), 0b110, known)
        assert " ".join(written(tracker)) == expected
        assert tracker.is_done(MessageId(1, 5, -1, 0))
        tracker.acknowledge(message(1, 5, 2, 3))
        tracker.acknowledge(message(1, 5, 1, 3))
        assert written(tracker) == ["I 5"]


def test_cumulative_inside_a_batch_then_what_lies_before_is_not_given_out_again() -> None:
    tracker = AckTracker()
    tracker.acknowledge_cumulative(message(1, 5, 1, 3))
    assert [tracker.is_done(MessageId(1, 5, -1, index)) for index in range(3)] == [True, True, False]


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
