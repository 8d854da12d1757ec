"""Sessions of signed-in visitors, whose browsers hold a random name for the credentials, and tokens of forms."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from interpulse.model.errors import Forbidden

COOKIE: Final = "interpulse-console"
SESSION_SECONDS: Final = 12 * 3600
"""A working day; a token that ends before ends the session with it."""

_SESSIONS_MAX: Final = 1000
_NAME_BYTES: Final = 24


@dataclass(slots=True)
class _Session:
    authorization: str
    ends: float


class Sessions:
    """Sessions by name. Bounded: beyond the limit the oldest visitor has to sign in again."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Create the sessions; ``now`` returns seconds of a monotonic clock."""
        self._now = now
        self._sessions: dict[str, _Session] = {}

    def new_browser(self) -> str:
        """Return a cookie for a browser that has none. Nothing is stored."""
        return secrets.token_urlsafe(_NAME_BYTES)

    def begin(self, authorization: str) -> str:
        """Store the Authorization header and return a new cookie, whatever cookie the browser had."""
        now = self._now()
        for name in [name for name, session in self._sessions.items() if session.ends <= now]:
            del self._sessions[name]
        while len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        name = self.new_browser()
        self._sessions[name] = _Session(authorization, now + SESSION_SECONDS)
        return name

    def authorization(self, name: str) -> str | None:
        """Return the Authorization header of a session, None after its end."""
        session = self._sessions.get(name)
        return session.authorization if session is not None and session.ends > self._now() else None

    def end(self, name: str) -> None:
        self._sessions.pop(name, None)


_KEY_BYTES: Final = 32


class FormTokens:
    """Makes and checks tokens."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(_KEY_BYTES)

    def token(self, browser: str, address: str) -> str:
        """Return the token of a form that ``browser``, the value of its cookie, sends to this path and query."""
        return hmac.digest(self._key, f"{browser}\n{address}".encode("utf-8", "backslashreplace"), "sha256").hex()

    def check(self, browser: str, address: str, token: str) -> None:
        """Raise Forbidden unless the token was made for them."""
        expected = self.token(browser, address)
        if not browser or not hmac.compare_digest(expected.encode(), token.encode("utf-8", "backslashreplace")):
            raise Forbidden(
                "This form is not from this browser's session, or the broker has restarted since; "
                "nothing was done. Go back, load the page again and confirm it there"
            )
