"""Lookups of many topics over HTTP: with one request (PIP-35), or one by one if a broker has no batch lookup."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from interpulse.client.json_readers import made_by
from interpulse.client.lookup.batch_lookup import lookup_singly
from interpulse.model.errors import (
    NotAllowed,
    NotFound,
    NotImplementedYet,
    NotSupported,
    PulsarError,
    RequestTooLarge,
    error_for_wire_code,
)
from interpulse.model.names import TopicName

if TYPE_CHECKING:  # imports an HTTP library
    from interpulse.client.transport.http_session import HttpSession

Addresses = dict[str, Any]
"""``brokerUrl``, ``httpUrl`` and the other addresses of one broker."""

Answers = dict[TopicName, Addresses | PulsarError]

_PATH: Final = "/lookup/v2/topics"
_TOPICS_AT_ONCE: Final = 500
_CONCURRENT_MAX: Final = 50


async def lookup_over_http(
    http: HttpSession,
    topics: Sequence[TopicName],
    single: Callable[[TopicName], Awaitable[Addresses]],
    *,
    listener_name: str | None = None,
    topics_max: int = _TOPICS_AT_ONCE,
) -> Answers:
    """Return the addresses of each topic, or its own failure.

    One request contains at most ``topics_max`` topics; ``single`` looks up one topic. Raise the failure of the whole
    request: NotConnected, OperationTimeout, ServiceNotReady and others.
    """
    topics = list(dict.fromkeys(topics))
    answers: Answers = {}
    try:
        for start in range(0, len(topics), topics_max):
            answers |= await _ask(http, topics[start : start + topics_max], listener_name)
    except (NotFound, NotSupported, NotAllowed, NotImplementedYet):  # any of them may come from an older broker
        pass
    left = [topic for topic in topics if topic not in answers]
    answers |= await lookup_singly(left, single, _CONCURRENT_MAX)
    return {topic: answers[topic] for topic in topics}


async def _ask(http: HttpSession, topics: Sequence[TopicName], listener_name: str | None) -> Answers:
    """Send one request, or its two halves. Topics that belong to another broker are omitted."""
    names = {str(topic): topic for topic in topics}
    body = {"topics": list(names), "listenerName": listener_name}
    read = made_by(lambda answer: _answers(answer, names))
    try:
        return await http.request("POST", _PATH, kind="topic", read=read, body=body)
    except RequestTooLarge:
        if len(topics) < 2:
            raise
        half = len(topics) // 2
        return await _ask(http, topics[:half], listener_name) | await _ask(http, topics[half:], listener_name)


def _answers(answer: Mapping[str, Any], names: Mapping[str, TopicName]) -> Answers:
    """Return the answers by topic."""
    answers: Answers = {}
    for group in answer["groups"]:
        if group["response"] == "Connect":
            answers |= {names[name]: dict(group) for name in group["topics"] if name in names}
    for failure in answer["failures"]:
        error = error_for_wire_code(failure["code"], failure["reason"])
        answers |= {names[name]: error for name in failure["topics"] if name in names}
    return answers
