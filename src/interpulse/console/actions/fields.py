"""Fields that several actions have, and how their values are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from interpulse.console.actions.action import Field
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.numbers import INT_MAX

TOPIC: Final = Field("topic", "Topic", hint="persistent://tenant/namespace/name")
SUBSCRIPTION: Final = Field("subscription", "Subscription")
AGES: Final = {"5m": 300, "1h": 3_600, "6h": 21_600, "1d": 86_400, "7d": 604_800}
"""Ages as pulsar-admin writes them, in seconds."""


def topic_of(values: Mapping[str, str]) -> TopicName:
    """Return the topic of a form. Raise InvalidTopicName."""
    return TopicName.parse(values["topic"])


def namespace_of(values: Mapping[str, str]) -> NamespaceName:
    """Return the namespace of a form. Raise InvalidTopicName."""
    return NamespaceName.parse(values["namespace"])


def seconds_of(values: Mapping[str, str]) -> int:
    """Return the seconds of the field ``time``, whose choices are `AGES`."""
    return AGES[values["time"]]


def partitions_of(values: Mapping[str, str]) -> int:
    """Return the count of the field ``partitions``. Raise InvalidRequest."""
    return whole(values, "partitions", most=INT_MAX)


def whole(values: Mapping[str, str], name: str, *, most: int) -> int:
    """Return an integer of 1 or more. Raise InvalidRequest."""
    text = values[name]
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 1 <= int(text) <= most):
        raise InvalidRequest(f"{name} must be an integer from 1 to {most}, not {text[:100]!r}")
    return int(text)
