"""Tokens of forms: one holds for one browser, one address and one run of the broker."""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from interpulse.model.errors import Forbidden

__all__ = ["FormTokens"]

_KEY_BYTES: Final = 32


class FormTokens:
    """Makes tokens, and knows its own again."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(_KEY_BYTES)

    def token(self, browser: str, address: str) -> str:
        """For the form that ``browser``, the value of its cookie, sends to this path and query."""
        return hmac.digest(self._key, f"{browser}\n{address}".encode("utf-8", "backslashreplace"), "sha256").hex()

    def check(self, browser: str, address: str, token: str) -> None:
        """Raise Forbidden unless the token was made for them."""
        expected = self.token(browser, address)
        if not browser or not hmac.compare_digest(expected.encode(), token.encode("utf-8", "backslashreplace")):
            raise Forbidden(
                "This form is not one that the console gave to this browser, or the broker has restarted since; "
                "nothing was done. Go back, load the page again and confirm it there"
            )
