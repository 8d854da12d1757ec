"""``/openapi.json``: the paths of this API in OpenAPI 3, generated from the routes.

Fields of bodies and query parameters are not described, because routes do not know them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from inspect import getdoc
from typing import Any, Final

from interpulse import __version__
from interpulse.broker.rest.http.call import Answer, Call, Route
from interpulse.broker.rest.http.routing import spelled_out
from interpulse.model.operations import Access, Operation

_SELF: Final = Operation("GET", "/openapi.json", Access.ANY_ROLE)
_VERBS: Final = {"GET": "Read", "POST": "Change", "PUT": "Create", "DELETE": "Remove"}
_VARYING: Final = re.compile(r"{(\w+)}")
_WITH_BODY: Final = ("POST", "PUT")
_NOT_OFFERED: Final = "not offered"
_REASON: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
_ANSWERS: Final[Mapping[str, Any]] = {
    "2XX": {"description": "Done. The result is JSON, or has the content type of the header."},
    "307": {"description": "Ask the broker in Location."},
    "4XX": {"description": "Refused, with the reason.", "content": _REASON},
    "5XX": {"description": "Not possible, now or ever, with the reason.", "content": _REASON},
}
_COMPONENTS: Final = {
    "schemas": {
        "Refusal": {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
    },
    "securitySchemes": {
        "token": {"type": "http", "scheme": "bearer"},
        "password": {"type": "http", "scheme": "basic"},
    },
}
_CREDENTIALS: Final[list[dict[str, list[str]]]] = [{"token": []}, {"password": []}, {}]
"""Or none, as where authentication is off."""


def described(routes: Iterable[Route], *, not_offered: Iterable[Route] = ()) -> tuple[Route, ...]:
    """Return these routes and one more that describes them all. Only Pulsar offers the routes ``not_offered``."""
    offered, refused = tuple(routes), tuple(not_offered)

    @cache
    def body() -> bytes:
        return json.dumps(document((*offered, itself), not_offered=refused)).encode()

    async def get_openapi(call: Call) -> Answer:
        """Return this document."""
        return Answer(200, body())

    itself = Route(_SELF, get_openapi)
    return (*offered, itself, *refused)


def document(routes: Iterable[Route], *, not_offered: Iterable[Route] = ()) -> dict[str, Any]:
    """Return the description in OpenAPI 3.0."""
    paths: dict[str, dict[str, Any]] = {}
    spellings: dict[str, str] = {}  # paths that differ in the names of their parts only are one path
    for routes_of, tag in ((routes, None), (not_offered, _NOT_OFFERED)):
        for route in routes_of:
            for spelled, _ in spelled_out(route.operation.path):
                path = spellings.setdefault(_VARYING.sub("{}", spelled), spelled)
                paths.setdefault(path, {})[route.operation.method.lower()] = _operation(route, path, tag)
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Interpulse",
            "description": "The admin API of Apache Pulsar, as this broker offers it.",
            "version": __version__,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "paths": paths,
        "components": _COMPONENTS,
    }


def _operation(route: Route, path: str, tag: str | None) -> dict[str, Any]:
    method = route.operation.method
    operation: dict[str, Any] = {
        "operationId": "_".join([method.lower(), *re.findall(r"[A-Za-z0-9]+", path)]),
        "tags": [tag or _tag(path)],
        "summary": f"{_VERBS[method]} {_subject(path)}",
        "parameters": list(_parameters(path)),
        "responses": _ANSWERS,
        "security": [] if route.operation.permission is Access.OPEN else _CREDENTIALS,
    }
    description = getdoc(route.handler)
    if description:
        operation["description"] = description
    if method in _WITH_BODY:
        operation["requestBody"] = {"content": {"application/json": {"schema": {}}}}
    return operation


def _tag(path: str) -> str:
    parts = path.split("/")[1:]
    return parts[2] if parts[0] in ("admin", "lookup") else "broker"


def _subject(path: str) -> str:
    last = [part for part in path.split("/") if not part.startswith("{")][-1]
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[-_]", " ", last).lower()


def _parameters(path: str) -> Iterator[dict[str, Any]]:
    for name in _VARYING.findall(path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
