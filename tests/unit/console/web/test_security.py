"""Visitors who signed in, and the tokens of their forms."""

from __future__ import annotations

import pytest

from interpulse.console.web.security import SESSION_SECONDS, FormTokens, Sessions
from interpulse.model.errors import Forbidden


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


def test_token_when_it_is_for_this_browser_and_address_then_holds() -> None:
    tokens = FormTokens()
    tokens.check("b", "/x?a=1", tokens.token("b", "/x?a=1"))


@pytest.mark.parametrize(
    ("browser", "address"), [("c", "/x?a=1"), ("b", "/x?a=2"), ("", "/x?a=1"), ("b\n/x?a", "=1"), ("b", "")]
)
def test_token_when_it_is_for_another_then_is_refused(browser: str, address: str) -> None:
    tokens = FormTokens()
    with pytest.raises(Forbidden, match="nothing was done"):
        tokens.check(browser, address, tokens.token("b", "/x?a=1"))


def test_token_when_the_broker_has_restarted_then_is_refused() -> None:
    with pytest.raises(Forbidden):
        FormTokens().check("b", "/x", FormTokens().token("b", "/x"))


def test_token_when_there_is_no_cookie_then_no_token_holds() -> None:
    tokens = FormTokens()
    with pytest.raises(Forbidden):
        tokens.check("", "/x", tokens.token("", "/x"))
