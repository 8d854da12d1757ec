"""What a copying task may rely on, and how long that holds back an operator."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.settings import TopicSettings
from interpulse.broker.live.topic.cursor_promises import CursorPromises
from interpulse.wire.cursor_promise import HELD_S
from tests.support.fake_clock import FakeClock

CURSOR = "pulsar.repl.west"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def promises(clock: FakeClock) -> CursorPromises:
    """Those of a topic that was loaded a while ago."""
    made = CursorPromises(clock)
    clock.now += 10
    return made


def test_cursor_when_moved_under_a_promise_then_waits_for_its_end(clock: FakeClock, promises: CursorPromises) -> None:
    promises.give()
    clock.now += 0.5
    promises.cursor_moved()
    assert promises.seconds_left == HELD_S - 0.5
    clock.now += HELD_S
    assert promises.seconds_left == 0


def test_promise_when_given_after_the_cursor_moved_then_holds_nothing_back(promises: CursorPromises) -> None:
    """The task has heard the new position."""
    promises.cursor_moved()
    promises.give()
    assert promises.seconds_left == 0


def test_cursor_when_just_loaded_then_the_promise_of_another_broker_may_still_hold(clock: FakeClock) -> None:
    promises = CursorPromises(clock)
    promises.cursor_moved()
    assert promises.seconds_left == HELD_S


async def test_position_of_a_replication_cursor_is_promised_and_that_of_no_other_subscription(bench: Any) -> None:
    bench.settings = TopicSettings(remote_clusters=("west",))
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0, 1, 2)
    assert topic.promised_position("s") is None
    assert topic.promised_position(CURSOR).entry == -1
    backlog_operations.clear(topic, CURSOR)
    assert topic.promised_position(CURSOR).entry == 2
    assert topic.subscription(CURSOR).promises.seconds_left > 0
    assert topic.subscription("s").promises is None
