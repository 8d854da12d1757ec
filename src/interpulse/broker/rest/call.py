"""One REST call and its answer, without the HTTP library."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from interpulse.broker.rest.rooms import RestRooms
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import NamespaceName, TopicName, decode_local_name

__all__ = ["DONE", "Answer", "Call", "Handler", "Route", "answer_json", "answer_text", "whole_number"]

T = TypeVar("T")

_JSON: Final = "application/json"
_LONG_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: a status and a body that is ready to be sent."""

    status: int = 200
    body: bytes = b""
    content_type: str = _JSON
    headers: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """A tuple is a header that comes several times, or not at all."""


DONE: Final = Answer(204)
"""It is done, and there is nothing to say."""


def answer_json(value: Any, *, status: int = 200) -> Answer:
    """A JSON document. None, a policy that is not set, is an empty answer; Pulsar's clients take it for null."""
    return DONE if value is None else Answer(status, json.dumps(value).encode())


def answer_text(text: str, *, content_type: str = "text/plain") -> Answer:
    """A plain text."""
    return Answer(200, text.encode(), content_type)


@dataclass(slots=True)
class Call:
    """What was asked: the parts of the path that vary (still encoded), the query, the body."""

    rooms: RestRooms
    params: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""
    content_type: str = ""
    request_headers: Mapping[str, str] = field(default_factory=dict)
    """Names in any case find their header."""

    def param(self, name: str) -> str:
        """A decoded part of the path."""
        return unquote(self.params[name])

    @property
    def namespace(self) -> NamespaceName:
        """The namespace in the path; raises InvalidTopicName."""
        return NamespaceName.of(self.param("tenant"), self.param("namespace"))

    @property
    def topic(self) -> TopicName:
        """The topic in the path, whose last part is form-encoded; raises InvalidTopicName."""
        local_name = decode_local_name(self.params["topic"])
        return TopicName.of(self.params["domain"], self.param("tenant"), self.param("namespace"), local_name)

    @property
    def subscription(self) -> str:
        """The subscription in the path."""
        return decode_local_name(self.params["subscription"])

    def number(self, name: str) -> int:
        """A whole number in the path, 0 or more; raises InvalidRequest."""
        return whole_number(name, self.param(name))

    def flag(self, name: str, default: bool = False) -> bool:
        """A query parameter that is true or false."""
        value = self.query.get(name)
        return default if value is None else value.lower() == "true"

    def json(self) -> Any:
        """The body; raises InvalidRequest if there is none, or if it is not JSON."""
        if not self.body:
            raise InvalidRequest("The request needs a body")
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(f"The body is not JSON: {error}") from None

    def json_or_none(self) -> Any:
        """The body, None if there is none."""
        return self.json() if self.body.strip() else None

    def object(self) -> dict[str, Any]:
        """The body, which has to be a JSON object."""
        return _typed(self.json(), dict, "an object")

    def object_or_empty(self) -> dict[str, Any]:
        """The body, which is a JSON object or missing."""
        body = self.json_or_none()
        return {} if body is None else _typed(body, dict, "an object")

    def strings(self) -> list[str]:
        """The body, which has to be an array of texts; null counts as an empty one."""
        body = _typed(self.json() or [], list, "an array")
        return [_typed(item, str, "an array of texts") for item in body]

    def properties(self) -> dict[str, str]:
        """The body, an object of texts or missing."""
        return {key: _typed(value, str, "an object of texts") for key, value in self.object_or_empty().items()}

    def integer(self) -> int:
        """The body, which has to be a whole number."""
        body = self.json()
        if isinstance(body, bool):
            raise InvalidRequest("The body must be a whole number")
        return _typed(body, int, "a whole number")

    def boolean(self) -> bool:
        """The body, which has to be true or false."""
        return _typed(self.json(), bool, "true or false")


def whole_number(name: str, text: str) -> int:
    """A number from 0 to the largest that Pulsar's clients know; raises InvalidRequest."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_LONG_MAX)) and int(text) <= _LONG_MAX):
        raise InvalidRequest(f"{name} must be a whole number from 0 to {_LONG_MAX}, not {text[:100]!r}")
    return int(text)


def _typed(value: Any, kind: type[T], words: str) -> T:
    if not isinstance(value, kind):
        raise InvalidRequest(f"The body must be {words}, not {json.dumps(value)[:100]}")
    return value


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path; ``{name}`` stands for one part, ``{domain}`` for one of the two topic domains."""

    method: str
    path: str
    handler: Handler
