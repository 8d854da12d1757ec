"""The outage that the demonstration of three brokers tells, and the messages that it holds back until the kill."""

from __future__ import annotations

import threading

import pytest

from dataset import Row
from failover import Outage, Run

ROWS = [Row(b"%d" % number, None, None) for number in range(9)]


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([(5, 100.1), (5, 106.0), (6, 106.5)], 6.5),
        ([(7, 100.1), (7, 106.0), (8, 106.5)], 6.5),
        ([(7, 100.1), (8, 100.5), (9, 101.4)], None),
        ([(5, 100.1), (5, 160.0)], None),
    ],
    ids=["silence at once", "receipts on the way come first", "no silence", "no receipt at all"],
)
def test_outage_when_looked_at_then_ends_with_the_first_receipt_after_a_silence(
    looks: list[tuple[int, float]], expected: float | None
) -> None:
    outage = Outage(5, 100.0)
    *before, last = [outage.seconds(receipts, now) for receipts, now in looks]
    assert not any(before)
    assert last == (None if expected is None else pytest.approx(expected))


def test_messages_when_no_broker_is_killed_yet_then_the_last_third_is_held_back() -> None:
    run, sent, reached = Run(ROWS), [], threading.Event()

    def send() -> None:
        for row, properties in run.messages():
            sent.append((row, properties["row"]))
            if len(sent) == 6:
                reached.set()

    sender = threading.Thread(target=send)
    sender.start()
    assert reached.wait(60)
    sender.join(0.1)
    assert len(sent) == 6
    run.killed.set()
    sender.join(60)
    assert sent == [(row, str(number)) for number, row in enumerate(ROWS)]


def test_run_when_abandoned_then_the_sender_is_not_held_back() -> None:
    run = Run(ROWS)
    run.abandon()
    assert len(list(run.messages())) == 9
    assert run.abandoned.is_set()
