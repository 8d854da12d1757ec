"""Attributes, and the context in the properties of a message."""

import pytest
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, get_current_span, set_span_in_context

from interpulse.client.telemetry.conventions import attributes_of, context_of, link_to_creation, traceparent_of

EXAMPLE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
"""The example of W3C's recommendation."""


def test_attributes_when_of_a_partition_then_name_it_besides() -> None:
    assert attributes_of("process", "persistent://public/default/t-partition-2", subscription="s") == {
        "messaging.system": "pulsar",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "persistent://public/default/t-partition-2",
        "messaging.destination.partition.id": "2",
        "messaging.destination.subscription.name": "s",
    }
    assert attributes_of("send", "persistent://public/default/t") == {
        "messaging.system": "pulsar",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "persistent://public/default/t",
    }


def test_context_when_written_then_is_the_traceparent_of_w3c_and_is_read_again() -> None:
    made_in = SpanContext(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, False, TraceFlags(1))
    properties = traceparent_of(set_span_in_context(NonRecordingSpan(made_in), Context()))
    assert properties == {"traceparent": EXAMPLE}
    read = get_current_span(context_of(properties, Context())).get_span_context()
    assert (read.trace_id, read.span_id, read.trace_flags) == (made_in.trace_id, made_in.span_id, 1)
    assert [link.context.span_id for link in link_to_creation(properties)] == [made_in.span_id]


@pytest.mark.parametrize(
    "value", ["", "no", "00-" + "0" * 32 + "-b7ad6b7169203331-01", "ff" + EXAMPLE[2:], "\x00" * 55]
)
def test_context_when_it_cannot_be_read_then_counts_as_none(value: str) -> None:
    assert link_to_creation({"traceparent": value}) == []
    assert not get_current_span(context_of({"traceparent": value}, Context())).get_span_context().is_valid
