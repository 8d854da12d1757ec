"""One visit: the visitor, the query, and calls of the admin API in the name of the visitor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.transport.http_errors import HttpAnswer
from interpulse.client.transport.http_session import HttpSession
from interpulse.console.broker_facts import BrokerFacts
from interpulse.console.host import Host, Visitor, VisitorCall
from interpulse.console.sampling import PollingRate, Samples
from interpulse.console.web.addresses import admin_path, namespace_path
from interpulse.console.web.result_cache import ResultCache
from interpulse.model.errors import InvalidRequest, PulsarError, error_for_http_status
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName

Model = dict[str, Any]
"""The values of a page: its JSON, and the names of its template, which refuses one that is missing."""

_HERE: Final = "http://localhost"
_REDIRECT: Final = 307
_REFUSED: Final = 400
_JSON: Final = "application/json"


class ServedElsewhere(PulsarError):
    """The answer that another broker serves this; ``web_url`` is its address."""

    http_status = 421

    def __init__(self, web_url: str) -> None:
        super().__init__(f"The broker at {web_url} serves this; look at it in the console there")
        self.web_url = web_url

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.web_url,)


@dataclass(frozen=True, slots=True)
class Visit:
    """The input of a page's builder."""

    visitor: Visitor
    host: Host

    query: Mapping[str, str]
    now_ms: int
    cache: ResultCache
    """Results of slow work. A key contains the role where roles see different things."""

    samples: Samples
    """Samples that visitors watch."""

    tails: PollingRate
    """The rate of visitors who follow the messages of a topic."""

    @property
    def broker(self) -> BrokerFacts:
        """Facts that no single admin call returns; see `refusal`. Pages of an API-only console do not use them."""
        assert self.host.broker is not None
        return self.host.broker()

    async def attempt(self, path: str) -> tuple[Any, str]:
        """Make a GET. Return its answer, or None and the refusal: the rest of the page is shown anyway."""
        try:
            return await self.send("GET", path), ""
        except PulsarError as error:
            return None, str(error)

    @property
    def admin(self) -> AdminClient:
        """The admin client, which makes calls in the name of the visitor. It needs no closing."""
        return _VisitorAdmin(self)

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """Make a call of the admin API. Return JSON, a text or None. Raise its refusal, and ServedElsewhere."""
        answer = await self.exchange(method, path, None if body is None else json.dumps(body).encode())
        if answer.status >= _REFUSED:  # a partial result; other errors are raised
            document = json.loads(answer.content) if answer.content else {}
            raise error_for_http_status(answer.status, str(document.get("reason") or "The broker gave no reason"))
        if not answer.content:
            return None
        if answer.content_type == _JSON:
            with suppress(ValueError):  # brokers send bare words such as ``ok`` with this type, too; they stay texts
                return json.loads(answer.content)
        return answer.text

    async def exchange(self, method: str, path: str, body: bytes | None, content_type: str = _JSON) -> HttpAnswer:
        """Return the answer to a call of the admin API. Raise ServedElsewhere for a redirect."""
        answer = await self.host.api.answer(VisitorCall(self.visitor, method, path, body, content_type))
        if answer.status == _REDIRECT:
            place = urlsplit(answer.location or "")
            raise ServedElsewhere(f"{place.scheme}://{place.netloc}")
        return answer

    async def check(self, method: str, path: str) -> None:
        """Raise the refusal of a call without making it."""
        await self.host.api.check(VisitorCall(self.visitor, method, path))

    async def refusal(self, method: str, path: str) -> str:
        """Return the refusal of a call without making it; empty if the visitor may make it."""
        try:
            await self.check(method, path)
        except PulsarError as error:
            return str(error)
        return ""

    # --- the query

    def text(self, name: str) -> str:
        return self.query.get(name, "")

    def number(self, name: str, default: int, *, most: int) -> int:
        """Return a number from 0 to ``most``. Raise InvalidRequest."""
        text = self.query.get(name)
        if not text:
            return default
        if not (text.isascii() and text.isdecimal() and len(text) < len(str(most)) + 1 and int(text) <= most):
            raise InvalidRequest(f"{name} must be an integer from 0 to {most}, not {text[:100]!r}")
        return int(text)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return one of these choices, by default the first. Raise InvalidRequest."""
        text = self.query.get(name) or choices[0]
        if text not in choices:
            raise InvalidRequest(f"{name} must be one of {', '.join(choices)}, not {text[:100]!r}")
        return text

    def topic(self) -> TopicName:
        """Return the topic of the address. Raise InvalidTopicName."""
        if not self.query.get("name"):
            raise InvalidRequest("The address needs name: a topic such as persistent://public/default/orders")
        return TopicName.parse(self.query["name"])


class _VisitorAdmin(AdminClient):
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        super().__init__(_HERE)

    def _new_session(self, web_url: str, **settings: Any) -> HttpSession:
        return _VisitorSession(self._visit)


class _VisitorSession(HttpSession):
    def __init__(self, visit: Visit) -> None:
        super().__init__(_HERE)
        self._visit = visit

    async def exchange(self, method: str, target: str, payload: bytes | None, content_type: str) -> HttpAnswer:
        return await self._visit.exchange(method, target, payload, content_type)


class VisibleNamespaces:
    """Answers True for namespaces whose ``path`` the visitor may read. Each namespace is checked once."""

    def __init__(self, visit: Visit, path: Callable[[NamespaceName], str]) -> None:
        self._visit = visit
        self._path = path
        self._visible: dict[NamespaceName, bool] = {}

    async def __call__(self, namespace: NamespaceName) -> bool:
        if namespace not in self._visible:
            self._visible[namespace] = not await self._visit.refusal("GET", self._path(namespace))
        return self._visible[namespace]


def to_see_replication(namespace: NamespaceName) -> str:
    """Return the path of the replication status."""
    return namespace_path(namespace, "/replication/status")


def to_list_topics(namespace: NamespaceName) -> str:
    """Return the path of the list of topics."""
    return admin_path(PERSISTENT, namespace.tenant, namespace.local)
