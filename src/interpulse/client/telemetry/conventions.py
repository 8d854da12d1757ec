"""Names of attributes and metrics: OpenTelemetry's semantic conventions for messaging, and PIP-446.

They are repeated here because their package marks them as incubating and moves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from opentelemetry.context import Context
from opentelemetry.trace import Link, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from interpulse.model.names import TopicName

AcknowledgmentType = Literal["acknowledge", "cumulative_acknowledge", "negative_acknowledge", "ack_timeout"]

ACKNOWLEDGMENT_TYPE: Final = "messaging.pulsar.acknowledgment.type"
ERROR_TYPE: Final = "error.type"
MESSAGE_COUNT: Final = "messaging.batch.message_count"
MESSAGE_ID: Final = "messaging.message.id"
_TRACEPARENT: Final = "traceparent"
_PROPAGATOR: Final = TraceContextTextMapPropagator()


def attributes_of(operation: str, topic: str, *, subscription: str | None = None) -> dict[str, str]:
    """Return the attributes common to spans and metrics of an operation on a topic or partition."""
    attributes = {
        "messaging.system": "pulsar",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": topic,
    }
    partition = TopicName.parse(topic).partition_index
    if partition >= 0:
        attributes["messaging.destination.partition.id"] = str(partition)
    if subscription is not None:
        attributes["messaging.destination.subscription.name"] = subscription
    return attributes


def traceparent_of(context: Context) -> dict[str, str]:
    """Return a context as message properties in W3C's form: ``traceparent``, and ``tracestate`` if present."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, context)
    return carrier


def context_of(properties: Mapping[str, str], otherwise: Context | None = None) -> Context:
    """Return the context in which a message was created, from its properties. An invalid one counts as none."""
    return _PROPAGATOR.extract(properties, otherwise)


def link_to_creation(properties: Mapping[str, str]) -> list[Link]:
    """Return a link to the span in which a message was created; empty if its properties name none."""
    if _TRACEPARENT not in properties:
        return []
    made_in = get_current_span(context_of(properties, Context())).get_span_context()
    return [Link(made_in)] if made_in.is_valid else []


def is_traced(properties: Mapping[str, str]) -> bool:
    """Return True if a message names the span in which it was created."""
    return _TRACEPARENT in properties
