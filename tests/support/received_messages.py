"""Messages as a client has received them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from interpulse.client.messages import Message
from interpulse.model.ids import MessageId

_PLAIN = Message(
    id=MessageId(1, 0),
    topic="t",
    content=b"",
    key=None,
    key_is_binary=False,
    ordering_key=None,
    properties={},
    publish_time_ms=1,
    event_time_ms=0,
    producer_name="p",
    sequence_id=0,
    schema_version=None,
    replicated_from=None,
    deliver_at_ms=None,
    redelivery_count=0,
    index=None,
    broker_publish_time_ms=None,
    is_encrypted=False,
    batch_size=0,
)


def received(message_id: MessageId, **fields: Any) -> Message:
    """A message with this id; what ``fields`` do not say is as plain as it can be."""
    return replace(_PLAIN, id=message_id, **fields)
