"""Visitors who signed in."""

from __future__ import annotations

from interpulse.console.web.sessions import SESSION_SECONDS, Sessions


def test_session_when_its_time_is_over_then_is_gone() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    name = sessions.begin("Bearer x")
    assert sessions.authorization(name) == "Bearer x"
    now[0] = SESSION_SECONDS
    assert sessions.authorization(name) is None


def test_session_when_ended_then_is_gone_and_others_stay() -> None:
    sessions = Sessions(lambda: 0.0)
    one, two = sessions.begin("a"), sessions.begin("b")
    sessions.end(one)
    sessions.end("unknown")
    assert (sessions.authorization(one), sessions.authorization(two)) == (None, "b")


def test_sessions_when_there_are_too_many_then_the_oldest_goes() -> None:
    sessions = Sessions(lambda: 0.0)
    names = [sessions.begin(str(number)) for number in range(1001)]
    assert sessions.authorization(names[0]) is None
    assert sessions.authorization(names[1]) == "1"
    assert len(set(names)) == 1001
