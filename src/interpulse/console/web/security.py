"""The protection of visitors: headers of every response, checks of the source, sessions, and tokens of forms."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from interpulse.model.errors import Forbidden
from interpulse.serving.web_pages import KnownHosts, check_origin

_POLICY: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response. Cacheable responses override one. Old browsers ignore ``frame-ancestors``."""

COOKIE: Final = "interpulse-console"
SESSION_SECONDS: Final = 12 * 3600
"""A working day; a token that ends before ends the session with it."""

_SESSIONS_MAX: Final = 1000
_NAME_BYTES: Final = 24
_KEY_BYTES: Final = 32


def check_source(method: str, headers: Mapping[str, str], hosts: KnownHosts | None) -> None:
    """Raise Forbidden for requests from a page of another origin or for another host.

    Links from other pages are allowed: a person follows them, and a GET changes nothing.
    """
    navigates = headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
    if not (method == "GET" and navigates):
        check_origin(headers)
    if hosts is not None:
        hosts.check(headers)


@dataclass(slots=True)
class _Session:
    authorization: str
    ends: float


class Sessions:
    """Sessions of signed-in visitors, whose browsers hold a random name.

    Bounded: beyond the limit the oldest visitor has to sign in again.
    """

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


class FormTokens:
    """Maker and checker of the tokens of forms."""

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
