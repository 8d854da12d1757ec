"""Floods of drops and of wrong credentials: few lines in the log, and every event counted."""

from __future__ import annotations

import logging

import pytest

from interpulse.serving.address_events import DroppedConnections, FailedAuthentications
from tests.support.fake_clock import FakeTimers


@pytest.fixture
def timers() -> FakeTimers:
    return FakeTimers()


def minute_passes(timers: FakeTimers) -> None:
    assert set(timers.run()) <= {60}


@pytest.fixture
def dropped(timers: FakeTimers, caplog: pytest.LogCaptureFixture) -> DroppedConnections:
    caplog.set_level(logging.WARNING)
    return DroppedConnections(later=timers.later)


def test_drops_when_one_address_has_many_then_two_lines_a_minute_tell_all(
    dropped: DroppedConnections, timers: FakeTimers, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        dropped.note("10.0.0.1", f"garbage {number}", let_in=False, peer=f"/10.0.0.1:{number}")
    assert caplog.messages == ["connection dropped address=/10.0.0.1:0 reason=garbage 0"]
    minute_passes(timers)
    assert caplog.messages[1:] == ["more connections dropped address=10.0.0.1 count=999 newest_reason=garbage 999"]
    minute_passes(timers)
    assert timers.waiting == []
    dropped.note("10.0.0.1", "again", let_in=False)
    assert caplog.messages[2:] == ["connection dropped address=10.0.0.1 reason=again"]
    assert dropped.count == 1001


def test_drops_when_debug_is_on_then_each_has_its_line(
    dropped: DroppedConnections, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for number in range(3):
        dropped.note("10.0.0.1", str(number), let_in=False)
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG", "DEBUG"]


def test_drops_when_addresses_and_clients_differ_then_each_has_its_line(
    dropped: DroppedConnections, caplog: pytest.LogCaptureFixture
) -> None:
    dropped.note("10.0.0.1", "garbage", let_in=False)
    dropped.note("10.0.0.1", "silent", let_in=True)
    dropped.note("10.0.0.2", "garbage", let_in=False)
    assert len(caplog.messages) == 3


def test_drops_when_there_are_too_many_addresses_then_the_others_are_told_together(
    dropped: DroppedConnections, timers: FakeTimers, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5000):
        dropped.note(f"10.0.{number // 256}.{number % 256}", "garbage", let_in=False)
    assert len(timers.waiting) == len(caplog.messages) == 1001
    minute_passes(timers)
    assert caplog.messages[1001:] == ["more connections dropped address=others count=3999 newest_reason=garbage"]


def test_drops_when_the_program_stops_then_what_was_not_told_is_told(
    dropped: DroppedConnections, timers: FakeTimers, caplog: pytest.LogCaptureFixture
) -> None:
    dropped.note("10.0.0.1", "garbage", let_in=False)
    dropped.note("10.0.0.1", "garbage", let_in=False)
    dropped.close()
    assert caplog.messages[1:] == ["more connections dropped address=10.0.0.1 count=1 newest_reason=garbage"]
    minute_passes(timers)
    assert len(caplog.messages) == 2


def test_failures_when_one_address_has_many_then_two_lines_a_minute_tell_all(caplog: pytest.LogCaptureFixture) -> None:
    timers = FakeTimers()
    failed = FailedAuthentications(later=timers.later)
    caplog.set_level(logging.DEBUG)
    for number in range(1000):
        failed.note("10.0.0.1", f"the token is wrong: {number}")
    failed.note("10.0.0.2", "no token")
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert told == [
        "authentication failed address=10.0.0.1 reason=the token is wrong: 0",
        "authentication failed address=10.0.0.2 reason=no token",
    ]
    assert len(caplog.records) == 1001
    minute_passes(timers)
    assert caplog.messages[1001:] == [
        "more authentications failed address=10.0.0.1 count=999 newest_reason=the token is wrong: 999"
    ]


def test_failures_when_the_program_stops_then_what_was_not_told_is_told(caplog: pytest.LogCaptureFixture) -> None:
    failed = FailedAuthentications(later=FakeTimers().later)
    for _ in range(3):
        failed.note(None, "no token")
    failed.close()
    assert caplog.messages == [
        "authentication failed address=None reason=no token",
        "more authentications failed address= count=2 newest_reason=no token",
    ]
