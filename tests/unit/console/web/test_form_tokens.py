"""Tokens of forms."""

from __future__ import annotations

import pytest

from interpulse.console.web.form_tokens import FormTokens
from interpulse.model.errors import Forbidden


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
