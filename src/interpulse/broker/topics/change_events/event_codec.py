"""Policies of a topic as a message of ``__change_events``. Pure.

Each message has all policies of a topic on one level: those for this cluster alone, or those for all clusters of the
topic, whose key has a prefix. A message without content says that nothing is set.
Source: docs/reference/cluster-protocol.md#topic-policies.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from interpulse.broker.topics.change_events.event_schema import EVENT_SCHEMA, POLICY_FIELDS
from interpulse.model.errors import MetadataError, NotAllowed
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import TopicPolicies

_EVERYWHERE: Final = "__G__"
_NEVER_NULL: Final[Mapping[str, Any]] = {
    "backLogQuotaMap": {},
    "subscriptionPolicies": {},
    "subscriptionTypesEnabled": [],
}
"""Fields that brokers of Apache Pulsar read without a null check."""

_CREATION, _CREATION_EVENT = "autoSubscriptionCreation", "autoSubscriptionCreationOverride"
_DELAYS, _DELAY_EVENTS = (
    "delayedDelivery",
    {
        "active": "delayedDeliveryEnabled",
        "tickTime": "delayedDeliveryTickTimeMillis",
        "maxDeliveryDelayInMillis": "delayedDeliveryMaxDelayInMillis",
    },
)
_STRATEGY: Final = "schemaCompatibilityStrategy"


def event_key(topic: TopicName, *, everywhere: bool) -> str:
    """Return the key of the messages about one topic."""
    return f"{_EVERYWHERE if everywhere else ''}{topic.base}"


def parse_event_key(key: str) -> tuple[TopicName, bool]:
    """Parse a key of `event_key`. Raise InvalidTopicName."""
    return TopicName.parse(key.removeprefix(_EVERYWHERE)).base, key.startswith(_EVERYWHERE)


def encode_policies(topic: TopicName, policies: TopicPolicies, *, everywhere: bool, cluster: str) -> bytes:
    """Encode policies as a message. Raise NotAllowed for a policy that the form has no field for."""
    body = policies.to_json()
    if (creation := body.pop(_CREATION, None)) is not None:
        body[_CREATION_EVENT] = {"allowAutoSubscriptionCreation": creation}
    for name, value in (body.pop(_DELAYS, None) or {}).items():
        body[_DELAY_EVENTS[name]] = value
    unknown = sorted(body.keys() - POLICY_FIELDS)
    if unknown:
        raise NotAllowed(
            f"The policies {', '.join(unknown)} of topic {topic} were set by a newer broker and would be lost: change "
            "policies of this topic there"
        )
    event = {
        "actionType": "UPDATE",
        "eventType": "TOPIC_POLICY",
        "replicateTo": None if everywhere else [cluster],
        "topicPoliciesEvent": {
            "domain": topic.domain,
            "tenant": topic.tenant,
            "namespace": topic.namespace,
            "topic": topic.base.local_name,
            "policies": {**_NEVER_NULL, **body, "isGlobal": everywhere},
        },
    }
    written = io.BytesIO()
    fastavro, parsed = _avro(), _parsed(EVENT_SCHEMA.definition)
    fastavro.schemaless_writer(written, parsed, event)
    return written.getvalue()


def decode_policies(content: bytes, definition: bytes) -> tuple[TopicPolicies, bool] | None:
    """Decode policies, with True if they are for all clusters; None if the message is about something else.

    ``definition`` is the schema that the message was written with. Raises MetadataError.
    """
    try:
        event = _avro().schemaless_reader(io.BytesIO(content), _parsed(definition))
        if event["eventType"] != "TOPIC_POLICY":
            return None
        fields = (event["topicPoliciesEvent"] or {}).get("policies")
        if fields is None or event["actionType"] == "DELETE":
            return TopicPolicies(), False
        return TopicPolicies.from_json(_body(fields)), bool(fields.get("isGlobal"))
    except (ValueError, EOFError, KeyError, IndexError, TypeError) as error:
        raise MetadataError(f"not the policies of a topic: {error!r}") from error


def _body(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policies that are set, as the topic's record has them. Empty lists and maps mean null."""
    body = {name: _without_nulls(value) for name, value in fields.items() if value not in (None, [], {})}
    body.pop("isGlobal", None)
    if body.get(_STRATEGY) == "UNDEFINED":
        del body[_STRATEGY]
    if (creation := body.pop(_CREATION_EVENT, None)) is not None:
        body[_CREATION] = creation["allowAutoSubscriptionCreation"]
    delays = {ours: body.pop(theirs) for ours, theirs in _DELAY_EVENTS.items() if theirs in body}
    return {**body, _DELAYS: delays} if delays else body


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


@lru_cache(maxsize=8)
def _parsed(definition: bytes) -> Any:
    return _avro().parse_schema(json.loads(definition))


def _avro() -> Any:
    """Import the Avro library on first use: a broker alone never needs it."""
    import fastavro

    return fastavro
