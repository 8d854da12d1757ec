"""The cluster that a console shows, and the calls of its admin API in the name of a visitor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from interpulse.authentication.authentication import Authentication, PeerCertificate
from interpulse.client.transport.http_errors import HttpAnswer
from interpulse.model.errors import PulsarError
from interpulse.model.extras import pip_install
from interpulse.model.permissions import Principal
from interpulse.serving.address_events import FailedAuthentications
from interpulse.serving.web_pages import KnownHosts

if TYPE_CHECKING:
    from interpulse.console.broker_facts import BrokerFacts

ROOT: Final = "/console"
MISSING_EXTRA: Final = f"the console needs its extra: {pip_install('console')}"
TURNED_OFF: Final = "the console is disabled (consoleEnabled=false)"


class Availability(NamedTuple):
    """The availability of the console; ``reason`` is empty if it is available."""

    on: bool
    reason: str = ""


def extra_installed() -> bool:
    """Return True if jinja2 is installed, without loading it."""
    return find_spec("jinja2") is not None


class MethodNotAllowed(PulsarError):
    """The path exists, but not with this method."""

    http_status = 405


@dataclass(frozen=True, slots=True)
class Request:
    """One request below ``/console``, without the HTTP library."""

    sent_method: str
    target: str
    """The encoded path with its query."""

    headers: Mapping[str, str]
    body: bytes = b""
    cookies: Mapping[str, str] = field(default_factory=dict)
    certificate: PeerCertificate | None = None
    tls: bool = False
    address: str = ""

    @property
    def method(self) -> str:
        return "GET" if self.sent_method == "HEAD" else self.sent_method

    @property
    def place(self) -> str:
        """The path below the root."""
        return self.target.partition("?")[0].removeprefix(ROOT).strip("/")

    @property
    def raw_query(self) -> str:
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Visitor:
    """The caller of a page."""

    headers: Mapping[str, str]
    """The credentials, for calls of the admin API."""

    certificate: PeerCertificate | None = None
    tls: bool = False
    role: str = ""
    """Behind a proxy both roles, since both count; empty while authentication is off."""

    session: str = ""
    """The cookie of a visitor who signed in."""

    browser: str = ""
    """The cookie of the browser; empty before it has one."""

    address: str = ""


@dataclass(frozen=True, slots=True)
class VisitorCall:
    """One call of the admin API."""

    visitor: Visitor
    method: str
    target: str
    """The encoded path with its query."""

    body: bytes | None = None
    content_type: str = "application/json"

    @property
    def path(self) -> str:
        """The path without the query."""
        return self.target.partition("?")[0]


class AdminApi(Protocol):
    """The admin API of the cluster."""

    async def answer(self, call: VisitorCall) -> HttpAnswer:
        """Return the answer, a redirect included. Raise PulsarError for a refusal."""

    async def check(self, call: VisitorCall) -> None:
        """Raise the refusal of a call if it is known without making the call."""


class Access(Protocol):
    """Authentication of visitors."""

    @property
    def authentication(self) -> Authentication: ...

    def principal(self, role: str, original: str | None, *, same_allowed: bool = False) -> Principal:
        """Return the principal of a call. Raise AuthorizationError for a role that may not speak for another."""


@dataclass(frozen=True, slots=True)
class Host:
    """The cluster behind a console, with the settings of the console."""

    api: AdminApi
    cluster: str
    hosts: KnownHosts | None
    """The host names that requests may use; None: every caller has to bring credentials."""

    read_only: Callable[[], bool]
    messages_shown: Callable[[], bool]
    access: Access | None = None
    """Access control; None if visitors have no credentials of their own."""

    broker: Callable[[], BrokerFacts] | None = None
    """Returns the broker and loads what it needs. None if there is only the admin API."""

    failed_authentications: FailedAuthentications = field(default_factory=FailedAuthentications)
