"""One visit: who comes, what they ask for, and the calls of the admin API that are made in their name."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.transport.http_errors import HttpAnswer
from interpulse.client.transport.http_session import HttpSession
from interpulse.console.broker_facts import BrokerFacts
from interpulse.console.host import Host, Visitor, VisitorCall
from interpulse.console.polling import PollingRate
from interpulse.console.sampling import Samples
from interpulse.console.web.result_cache import ResultCache
from interpulse.model.errors import InvalidRequest, PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.received_errors import error_for_http_status

__all__ = ["Part", "ServedElsewhere", "Visit"]


_HERE: Final = "http://localhost"


Send = Callable[[str, str, bytes | None, str], Awaitable[HttpAnswer]]
"""Takes method, target, body and content type."""


class _VisitorSession(HttpSession):
    """A session without connections."""

    def __init__(self, send: Send) -> None:
        super().__init__(_HERE)
        self._send_call = send

    async def exchange(self, method: str, target: str, payload: bytes | None, content_type: str) -> HttpAnswer:
        return await self._send_call(method, target, payload, content_type)


class VisitorAdmin(AdminClient):
    """An admin client that makes its calls through ``send``. It needs no closing."""

    def __init__(self, send: Send) -> None:
        self._send_call = send
        super().__init__(_HERE)

    def _new_session(self, web_url: str, **settings: Any) -> HttpSession:
        return _VisitorSession(self._send_call)


T = TypeVar("T")

_REDIRECT: Final = 307
_REFUSED: Final = 400
_JSON: Final = "application/json"


class ServedElsewhere(PulsarError):
    """Another broker of the cluster has what was asked for; ``web_url`` is its address."""

    http_status = 421

    def __init__(self, web_url: str) -> None:
        super().__init__(f"The broker at {web_url} serves this; look at it in the console there")
        self.web_url = web_url

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.web_url,)


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """A part of a page: what the admin API answered, or why it refused."""

    value: T | None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Visit:
    """What the builder of a page has."""

    visitor: Visitor
    host: Host

    query: Mapping[str, str]
    now_ms: int
    cache: ResultCache
    """For what takes long to find out; a key has the role in it where roles see different things."""

    samples: Samples
    """For what is watched as it goes on."""

    tails: PollingRate
    """Of the visitors who follow the messages of a topic."""

    read_only: bool = False

    @property
    def broker(self) -> BrokerFacts:
        """The objects below the admin API, for what no single call tells; see `refusal`.

        Pages that ask for them are not among those of a console that has only the API.
        """
        assert self.host.broker is not None
        return self.host.broker()

    async def read(self, path: str) -> Any:
        """A GET of the admin API: decoded JSON, a text, or None. Raises what it refuses, and ServedElsewhere."""
        return await self.send("GET", path)

    async def attempt(self, path: str) -> Part[Any]:
        """The same where a refusal leaves the rest of the page as it is."""
        try:
            return Part(await self.read(path))
        except PulsarError as error:
            return Part(None, str(error))

    @property
    def admin(self) -> AdminClient:
        """The admin client, whose calls are made here in the visitor's name."""
        return VisitorAdmin(self._answer)

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """Any call of the admin API; see `read`."""
        answer = await self._answer(method, path, None if body is None else json.dumps(body).encode())
        if answer.status >= _REFUSED:  # a document that says how far it came; others are raised by their handlers
            raise error_for_http_status(answer.status, _reason(answer))
        if not answer.content:
            return None
        return _decoded(answer)

    async def _answer(self, method: str, path: str, body: bytes | None, content_type: str = _JSON) -> HttpAnswer:
        answer = await self.host.api.answer(VisitorCall(self.visitor, method, path, body, content_type))
        if answer.status == _REDIRECT:
            place = urlsplit(answer.location or "")
            raise ServedElsewhere(f"{place.scheme}://{place.netloc}")
        return answer

    async def check(self, method: str, path: str) -> None:
        """Raise what keeps the visitor from making this call; the call is not made."""
        await self.host.api.check(VisitorCall(self.visitor, method, path))

    async def refusal(self, method: str, path: str) -> str:
        """Why the visitor may not make this call; empty if they may. The call is not made."""
        try:
            await self.check(method, path)
        except PulsarError as error:
            return str(error)
        return ""

    # --- what stands behind the question mark

    def text(self, name: str, default: str = "") -> str:
        return self.query.get(name, default)

    def number(self, name: str, default: int, *, most: int) -> int:
        """From 0 to ``most``; raises InvalidRequest."""
        text = self.query.get(name)
        if not text:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < len(str(most)) + 1 and int(text) <= most):
            raise InvalidRequest(f"{name} must be an integer from 0 to {most}, not {text[:100]!r}")
        return int(text)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of these, the first if none is given; raises InvalidRequest."""
        text = self.query.get(name) or choices[0]
        if text not in choices:
            raise InvalidRequest(f"{name} must be one of {', '.join(choices)}, not {text[:100]!r}")
        return text

    def topic(self, name: str = "name") -> TopicName:
        """A topic; raises InvalidTopicName."""
        return TopicName.parse(self._given(name, "a topic such as persistent://public/default/orders"))

    def namespace(self, name: str = "namespace") -> NamespaceName:
        """A namespace; raises InvalidTopicName."""
        return NamespaceName.parse(self._given(name, "a namespace such as public/default"))

    def _given(self, name: str, meaning: str) -> str:
        text = self.query.get(name, "")
        if not text:
            raise InvalidRequest(f"The address needs {name}: {meaning}")
        return text


def _reason(answer: HttpAnswer) -> str:
    told = json.loads(answer.content) if answer.content else {}
    return str(told.get("reason") or "The broker gave no reason")


def _decoded(answer: HttpAnswer) -> Any:
    """JSON where it is JSON: brokers send bare words such as ``ok`` with its content type, too."""
    if answer.content_type == _JSON:
        with suppress(ValueError):
            return json.loads(answer.content)
    return answer.text
