"""Paths, queries and bodies of admin requests about topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from interpulse.model.ids import LATEST, MessageId
from interpulse.model.names import TopicName, encode_local_name

LATEST_ID: Final = MessageId(LATEST.ledger, LATEST.entry)
"""Position after the last message."""


def topic_path(topic: TopicName | str, last: str = "") -> str:
    """Return the path of a topic, or of a resource below it."""
    root = f"/admin/v2/{TopicName.parse(str(topic)).rest_path}"
    return f"{root}/{last}" if last else root


def encoded_subscription(subscription: str) -> str:
    """Encode a subscription name twice, because brokers decode it twice.

    Otherwise a ``+`` or ``%`` in the name would not survive.
    """
    return quote(encode_local_name(subscription), safe="")


def subscription_path(topic: TopicName | str, subscription: str, last: str = "") -> str:
    """Return the path of a subscription, or of a resource below it."""
    path = topic_path(topic, f"subscription/{encoded_subscription(subscription)}")
    return f"{path}/{last}" if last else path


def stats_query(precise_backlog: bool, backlog_size: bool, earliest_time_in_backlog: bool) -> dict[str, object]:
    """Return the query of a request for backlog statistics."""
    return {
        "getPreciseBacklog": precise_backlog,
        "subscriptionBacklogSize": backlog_size,
        "getEarliestTimeInBacklog": earliest_time_in_backlog,
    }


def reset_position(position: MessageId) -> dict[str, Any]:
    """Return a message id as a request body."""
    return {
        "ledgerId": position.ledger,
        "entryId": position.entry,
        "partitionIndex": position.partition,
        "batchIndex": position.batch_index,
    }


def begin_position(position: MessageId) -> dict[str, Any]:
    """Return a message id as the body of a request to start at that message.

    A message sent in chunks starts with its first chunk.
    """
    first = position.first_chunk or position.position
    return reset_position(position) | {"ledgerId": first.ledger, "entryId": first.entry}


def message_id_of(body: Mapping[str, Any]) -> MessageId:
    """Return the message id in an answer."""
    return MessageId(
        int(body["ledgerId"]),
        int(body["entryId"]),
        int(body.get("partitionIndex", -1)),
        int(body.get("batchIndex", -1)),
    )
