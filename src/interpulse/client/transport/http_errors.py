"""Errors for HTTP answers of 400 and above.

Depending on the stage that refuses a request, brokers give the reason as JSON with a ``reason`` (or a ``message``, from
the web server), as plain text, as an HTML page or in the status line. All these forms are read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape
from typing import NamedTuple

from interpulse.model import errors
from interpulse.model.errors import PulsarError, error_for_http_status
from interpulse.model.operations import Subject

_NOT_FOUND: dict[str, type[PulsarError]] = {
    "topic": errors.TopicNotFound,
    "partitioned": errors.TopicNotFound,
    "subscription": errors.SubscriptionNotFound,
    "schema": errors.SchemaNotFound,
    "namespace": errors.NamespaceNotFound,
    "tenant": errors.TenantNotFound,
    "cluster": errors.ClusterNotFound,
    "policy": errors.PolicyNotFound,
}
_SPECIFIC: tuple[tuple[int, re.Pattern[str], type[PulsarError]], ...] = (
    (403, re.compile("cluster", re.IGNORECASE), errors.Forbidden),
    (409, re.compile("already exist", re.IGNORECASE), errors.AlreadyExists),
    (409, re.compile("incompatible", re.IGNORECASE), errors.IncompatibleSchema),
    (409, re.compile("not empty|still has|active topics", re.IGNORECASE), errors.NotEmpty),
    (409, re.compile("partition(ed)? metadata|illegal topic partition", re.IGNORECASE), errors.TopicInconsistent),
    (412, re.compile("^invalid (topic|namespace) name", re.IGNORECASE), errors.InvalidTopicName),
    (412, re.compile("^exceed maximum number of topics", re.IGNORECASE), errors.TopicLimitReached),
)
_OTHER_STATUS: dict[int, type[PulsarError]] = {
    405: errors.NotAllowed,
    408: errors.OperationTimeout,
    429: errors.TooManyRequests,
    502: errors.ServiceNotReady,
    504: errors.ServiceNotReady,
}
_HTML_MESSAGE = re.compile(r"<th>MESSAGE:</th><td>(.*?)</td>", re.DOTALL)
_STACK_TRACE_MESSAGE = re.compile(r"^Message: (.+)$", re.MULTILINE)
_PLAIN_TEXT_MAX = 2_000
_NO_HEADERS: Mapping[str, str] = {}


class HttpAnswer(NamedTuple):
    """Answer to one HTTP request."""

    status: int
    phrase: str
    content_type: str
    location: str | None
    text: str
    content: bytes = b""
    headers: Mapping[str, str] = _NO_HEADERS


def error_for_response(answer: HttpAnswer, request: str, kind: Subject) -> PulsarError:
    """Return the error for an answer of 400 and above to ``request``, which is method and path.

    ``kind`` is the subject of the request. It decides the error for a 404 whose reason does not name the missing thing.
    The error carries the status line as a note.
    """
    reason = _reason(answer.content_type, answer.text) or answer.phrase or f"HTTP status {answer.status}"
    if answer.status in (404, 405) and reason == answer.phrase:
        error: PulsarError = errors.NotSupported(f"The broker does not offer {request}")
    elif cause := _specific_class(answer.status, reason, kind):
        error = cause(reason)
    else:
        error = error_for_http_status(answer.status, reason)
    error.add_note(f"HTTP {answer.status} {answer.phrase}".rstrip())
    return error


def _specific_class(status: int, reason: str, kind: Subject) -> type[PulsarError] | None:
    """Return a class more specific than that of the status; None if there is none."""
    if status == 404:
        first_word = reason.split(maxsplit=1)[0].lower().rstrip("s:,")
        return _NOT_FOUND.get(first_word) or _NOT_FOUND.get(kind, errors.NotFound)
    for number, pattern, cause in _SPECIFIC:
        if status == number and pattern.search(reason):
            return cause
    if status == 409 and kind == "schema":
        return errors.IncompatibleSchema
    return _OTHER_STATUS.get(status)


def _reason(content_type: str, text: str) -> str:
    """Return the human-readable reason, or an empty string."""
    if "html" in content_type:
        message = _HTML_MESSAGE.search(text)
        return unescape(message.group(1)).strip() if message else ""
    try:
        body = json.loads(text)
    except ValueError:
        return text.strip()[:_PLAIN_TEXT_MAX]
    if not isinstance(body, dict):
        return ""
    reason = str(body.get("reason") or body.get("message") or "")
    if "Stacktrace:" not in reason:
        return reason.strip()
    message = _STACK_TRACE_MESSAGE.search(reason)
    return message.group(1).strip() if message else reason.partition("Stacktrace:")[0].strip()
