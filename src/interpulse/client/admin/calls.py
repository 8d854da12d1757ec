"""Calls of operations of the admin API, previews of changes, and readers for policies.

A preview returns the changes that a request would make, and makes none. Apache Pulsar and earlier releases of
Interpulse ignore its query parameter and make the changes. Therefore a preview checks the broker's version first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from interpulse import __version__
from interpulse.client.json_readers import Read, UnexpectedJson, each, ignored, made_by, optional, records, string
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.errors import InvalidRequest, NotSupported
from interpulse.model.operations import Brokers, Operation
from interpulse.model.policies.catalogue import TOPIC_CLUSTERS, PolicyAtLevel
from interpulse.model.policies.policy_records import BacklogQuota

T = TypeVar("T")
Query = Mapping[str, object]
Changes = list[dict[str, Any]]

QUOTAS: Final = each(made_by(BacklogQuota.from_json))
"""Reader for backlog quotas by type."""


async def ask(
    http: HttpSession,
    operation: Operation,
    *names: object,
    read: Read[T],
    query: Query | None = None,
    body: object = None,
) -> T:
    """Call an operation on these names and return what ``read`` makes of the answer."""
    path = operation.path_of(*names)
    return await http.request(operation.method, path, kind=operation.subject, read=read, query=query, body=body)


async def send(
    http: HttpSession, operation: Operation, *names: object, query: Query | None = None, body: object = None
) -> None:
    """Call an operation on these names, whose status is the answer."""
    await ask(http, operation, *names, read=ignored, query=query, body=body)


def wait_text(seconds: float, timeout_ms: int) -> str | None:
    """Return the query parameter of a call that waits for a change; None if it does not wait.

    Raise InvalidRequest unless ``seconds`` is less than the time-out of the admin client.
    """
    if seconds * 1000 >= timeout_ms:
        raise InvalidRequest(
            f"wait_s={seconds:g} must be less than the admin client's time-out, timeout_ms={timeout_ms}"
        )
    return f"{seconds:f}s" if seconds else None


async def make_change(
    http: HttpSession,
    operation: Operation,
    *names: object,
    query: Query | None = None,
    body: object = None,
    previewed: bool,
) -> Changes | None:
    """Make a change and return None, or return the changes of a preview.

    Raise NotSupported if the broker has no previews.
    """
    if not previewed:
        await send(http, operation, *names, query=query, body=body)
        return None
    version = await ask(http, Brokers.GET_VERSION, read=string)
    if _release(version.partition("+interpulse-")[2]) < _release(__version__):
        raise NotSupported(f"The broker, version {version}, offers no previews; use Interpulse {__version__} or later")
    return await ask(http, operation, *names, read=records, query={**(query or {}), "preview": True}, body=body)


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, empty unless the broker is Interpulse."""
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def read_policy(entry: PolicyAtLevel) -> Read[Any]:
    """Return a reader for the policy. It returns None for an empty body and raises UnexpectedJson."""
    kind = entry.policy.kind

    def read(body: Any) -> Any:
        try:
            value = kind.read("the policy", body)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UnexpectedJson(f"{entry.level.path} ({error})") from error
        return list(value or ()) if kind is TOPIC_CLUSTERS else value

    return optional(read)
