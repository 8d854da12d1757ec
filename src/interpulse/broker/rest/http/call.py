"""One REST call and its answer, without the HTTP library."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, isfinite
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from interpulse.authentication.authentication import PeerCertificate
from interpulse.broker.rest.http.context import RestContext
from interpulse.broker.rest.http.fields import (
    FLAG,
    LONG,
    LONGS,
    OBJECT,
    STRING_MAP,
    STRINGS,
    Body,
    SpelledNumber,
    checked_fields,
    checked_value,
)
from interpulse.in_turns import dumped_in_turns
from interpulse.model.changes import Change, to_json
from interpulse.model.errors import InvalidRequest, PulsarError
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.model.numbers import LONG_MAX, read_integer
from interpulse.model.operations import Operation
from interpulse.model.permissions import Principal

WAIT_SECONDS_MAX: Final = 60
"""Longest wait of a call for a change: a minute, so that proxies and load balancers let it wait."""

_JSON: Final = "application/json"
_BODY: Final = "The body"
_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?s", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: a status and a body that is ready to be sent."""

    status: int = 200
    body: bytes = b""
    content_type: str = _JSON
    headers: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """A tuple is a header that comes several times, or not at all."""
    parts: AsyncIterator[bytes] | None = None
    """A body that is made while it is sent, instead of ``body``. A failure in it closes the connection."""


DONE: Final = Answer(204)
"""The operation is done and has no result."""


UNSET: Final = Answer(200)
"""The value is not set."""


def answer_changes(call: Call, changes: Iterable[Change]) -> Answer:
    """Answer a change that was made, or the list of changes that a preview did not make."""
    return answer_json([to_json(change) for change in changes]) if call.previewed else DONE


def answer_json(value: Any, *, status: int = 200) -> Answer:
    """Return a JSON document. None, a policy that is not set, is an empty answer; Pulsar's clients read it as null."""
    return UNSET if value is None else Answer(status, json.dumps(value).encode())


async def answer_many(values: Iterable[Any] | Mapping[str, Any]) -> Answer:
    """Return a JSON array, or an object of a mapping, that may be long: other tasks run while it is written."""
    return Answer(200, await dumped_in_turns(values))


async def answer_pages(pages: AsyncIterator[Sequence[Any]]) -> Answer:
    """Return one JSON array of all pages, none of which is empty, sent page by page.

    Errors of the first two pages are raised here. A single page is an answer like any other.
    """
    first: Sequence[Any] = await anext(pages, [])
    second = await anext(pages, None)
    if second is None:
        return answer_json(first)
    return Answer(200, parts=_array(first, second, pages))


async def _array(
    first: Sequence[Any], second: Sequence[Any], others: AsyncIterator[Sequence[Any]]
) -> AsyncIterator[bytes]:
    yield json.dumps(first)[:-1].encode()
    yield b", " + json.dumps(second)[1:-1].encode()
    async for page in others:
        yield b", " + json.dumps(page)[1:-1].encode()
    yield b"]"


def answer_text(text: str, *, content_type: str = "text/plain") -> Answer:
    """Return a plain text."""
    return Answer(200, text.encode(), content_type)


@dataclass(slots=True)
class Call:
    """A request: the variable parts of the path, which are still encoded, the query and the body."""

    context: RestContext
    route: Route
    params: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""
    request_headers: Mapping[str, str] = field(default_factory=dict)
    """Lookups ignore the case of names."""

    principal: Principal | None = None
    """The caller; None while authentication is off."""

    path: str = ""
    """The path as it was sent."""

    tls: bool = False
    """The connection is inside TLS."""

    certificate: PeerCertificate | None = None
    """The certificate that the caller showed in the handshake of TLS."""

    ignored_fields: list[str] = field(default_factory=list)
    """Unknown fields of the body. The answer names them."""

    def param(self, name: str, *, form_encoded: bool = False) -> str:
        """Return a decoded part of the path. Raise InvalidRequest if its encoding is wrong."""
        return _decoded(self.params[name], form_encoded=form_encoded)

    def param_or_none(self, name: str) -> str | None:
        """Return a decoded part of the path, or None if the path of this route has no such part."""
        return self.param(name) if name in self.params else None

    @property
    def namespace(self) -> NamespaceName:
        """The namespace in the path; raises InvalidTopicName."""
        return NamespaceName.of(self.param("tenant"), self.param("namespace"))

    @property
    def topic(self) -> TopicName:
        """The topic in the path, whose last part is form-encoded; raises InvalidTopicName.

        Without a domain in the path it is a persistent one: both domains share schemas and permissions.
        """
        local_name = _decoded(self.params["topic"], form_encoded=True)
        domain = self.params.get("domain", PERSISTENT)
        return TopicName.of(domain, self.param("tenant"), self.param("namespace"), local_name)

    @property
    def subscription(self) -> str:
        """The subscription in the path of a topic. Pulsar's clients encode it twice, and its brokers decode it so."""
        once = self.param("subscription")
        try:
            return _decoded(once, form_encoded=True)
        except InvalidRequest:
            return once

    @property
    def refused_lookups(self) -> Callable[[Mapping[str, TopicName]], Awaitable[Mapping[str, PulsarError]]] | None:
        """Function that returns the errors of topics that the caller may not look up; None: all are allowed."""
        authorization = self.context.access.authorization if self.context.access else None
        if authorization is None or self.principal is None:
            return None
        return partial(authorization.refused_lookups, self.principal)

    def number(self, name: str) -> int:
        """Return an integer of the path, 0 or more. Raise InvalidRequest for other text."""
        return not_negative(name, self.param(name))

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a query parameter that is true or false."""
        value = self.query.get(name)
        return default if value is None else value.lower() == "true"

    def flag_of_ours(self, name: str) -> bool:
        """Return a query parameter that Pulsar does not have. Raise InvalidRequest for words other than true, false."""
        value = self.query.get(name, "false").lower()
        if value not in ("true", "false"):
            raise InvalidRequest(f"{name} must be true or false, not {value[:100]!r}; nothing was changed")
        return value == "true"

    def seconds_of_ours(self, name: str, *, most: int) -> float:
        """Return a query parameter such as ``20s``, 0 if it is missing. Raise InvalidRequest for other text."""
        text = self.query.get(name, "0s")
        number = float(text[:-1]) if _SECONDS.fullmatch(text) else inf
        if number > most:
            raise InvalidRequest(f"{name} must be seconds such as 20s, at most {most}s, not {text[:100]!r}")
        return number

    @property
    def previewed(self) -> bool:
        """True if the changes of this call are to be answered and not made. Raises InvalidRequest."""
        return self.flag_of_ours("preview")

    def json(self) -> Any:
        """Return the body. Raise InvalidRequest if it is missing or not JSON."""
        if not self.body:
            raise InvalidRequest("The request needs a body")
        try:
            return json.loads(self.body, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(f"The body is not JSON: {error}") from None

    def json_or_none(self) -> Any:
        """Return the body, None if it is missing."""
        return self.json() if self.body.strip() else None

    def object(self, body: Body) -> dict[str, Any]:
        """Return the body, a JSON object, with the fields of ``body``; see `checked_fields`. Note unknown fields."""
        unknown: list[str] = []
        checked = checked_fields(body, checked_value(OBJECT, _BODY, self.json()), unknown)
        self.ignored_fields = unknown
        return checked

    def object_or_empty(self, body: Body) -> dict[str, Any]:
        """Return the body like `object`, empty if it is missing."""
        return {} if self.json_or_none() is None else self.object(body)

    def strings(self) -> list[str]:
        """Return the body, an array of strings. Null is an empty array."""
        body = self.json()
        return [] if body is None else list(checked_value(STRINGS, _BODY, body))

    def integers(self) -> list[int]:
        """Return the body, an array of integers of 64 bits, empty if it is missing."""
        body = self.json_or_none()
        return [] if body is None else list(checked_value(LONGS, _BODY, body))

    def properties(self) -> dict[str, str]:
        """Return the body, an object of strings, empty if it is missing."""
        body = self.json_or_none()
        return {} if body is None else dict(checked_value(STRING_MAP, _BODY, body))

    def integer(self) -> int:
        """Return the body, an integer of 64 bits or a string of one."""
        return int(checked_value(LONG, _BODY, self.json()))

    def boolean(self) -> bool:
        """Return the body, true or false or a string of one."""
        return bool(checked_value(FLAG, _BODY, self.json()))


def _decoded(text: str, *, form_encoded: bool = False) -> str:
    """Return a decoded part of the path. Bytes other than UTF-8 are refused: they would become another name."""
    if "%" not in text and text.isascii():
        return text.replace("+", " ") if form_encoded else text
    if _BAD_ESCAPE.search(text):
        raise InvalidRequest(f"A % in the path needs two hexadecimal digits behind it: {text[:100]!r}")
    try:
        return unquote_to_bytes(text.replace("+", " ") if form_encoded else text).decode()
    except UnicodeError:
        raise InvalidRequest(f"The path is not UTF-8: {text[:100]!r}") from None


def not_negative(name: str, text: str) -> int:
    """Read an integer of path or query, from 0 to the largest of Pulsar's clients. Raise InvalidRequest for others."""
    number = read_integer(text, most=LONG_MAX)
    if number is None or number < 0:
        raise InvalidRequest(f"{name} must be an integer from 0 to {LONG_MAX}, not {text[:100]!r}")
    return number


def _finite(text: str) -> float:
    """Read a number with a fraction. NaN and numbers that are too large are refused: JSON cannot express them."""
    value = SpelledNumber(text)
    if not isfinite(value):
        raise ValueError(f"{text[:100]} is not a number that JSON can hold")
    return value


Handler = Callable[[Call], Awaitable[object]]
"""Returns an `Answer`, a value that is answered as JSON, or None for `DONE`."""


def answer_of(result: object) -> Answer:
    """Return the answer that the result of a handler stands for."""
    if result is None:
        return DONE
    if isinstance(result, Answer):
        return result
    write = getattr(result, "to_json", None)
    return answer_json(result if write is None else write())


class Route(NamedTuple):
    """An operation and its handler."""

    operation: Operation
    handler: Handler
