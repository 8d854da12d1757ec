"""A flood of calls with wrong credentials: few lines in the log, and every one of them counted."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from interpulse.serving.failed_authentications import FailedAuthentications


class Timers:
    """They ring when the test says so."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def later(self, seconds: float, call: Callable[[], None]) -> Timers:
        assert seconds == 60
        self._waiting.append(call)
        return self

    def cancel(self) -> None:
        self._waiting.clear()

    def ring(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()


def test_failures_when_one_address_has_many_then_two_lines_a_minute_tell_all(caplog: pytest.LogCaptureFixture) -> None:
    timers = Timers()
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
    timers.ring()
    assert caplog.messages[1001:] == [
        "more authentications failed address=10.0.0.1 count=999 newest_reason=the token is wrong: 999"
    ]


def test_failures_when_the_program_stops_then_what_was_not_told_is_told(caplog: pytest.LogCaptureFixture) -> None:
    failed = FailedAuthentications(later=Timers().later)
    for _ in range(3):
        failed.note(None, "no token")
    failed.close()
    assert caplog.messages == [
        "authentication failed address=None reason=no token",
        "more authentications failed address= count=2 newest_reason=no token",
    ]
