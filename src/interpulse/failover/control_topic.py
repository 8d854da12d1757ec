"""The control topic of a pair on one site: created there, kept at home, and read.

Every site has a topic of its own under the same name: an exclusive producer would shut a replicator out. It is exempt
from roles. A subscription without consumers keeps its messages, which are few.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from interpulse.client.messages import Message
from interpulse.failover.journal import Operation
from interpulse.failover.outcome import OperationFailed, Outcome
from interpulse.failover.site import SiteAccess
from interpulse.model.errors import AlreadyExists, TopicNotFound
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.names import TopicName

OPERATION: Final = "operation"
"""Key of the last event of the last operation."""

KEEPER: Final = "interpulse-failover"
"""Subscription that keeps the messages of the tool's topics."""


async def prepare_control_topic(site: SiteAccess, topic: TopicName) -> None:
    """Create the topic unless it exists. It is not replicated, whatever the namespace is."""
    with suppress(AlreadyExists):
        await site.admin.topics.create(topic)
    if await site.admin.topics.replication_clusters(topic) != [site.cluster]:
        await site.admin.topics.set_replication_clusters(topic, [site.cluster])
    with suppress(AlreadyExists):
        await site.admin.topics.create_subscription(topic, KEEPER, MessageId(*EARLIEST))


async def read_control_topic(site: SiteAccess, topic: TopicName) -> dict[str, Mapping[str, Any]]:
    """Return the newest record of each key; none if the topic does not exist.

    Raise OperationFailed for a message that is no record of this tool.
    """
    return {key: _parsed(site, topic, message) for key, message in (await read_newest(site, topic)).items()}


async def read_newest(site: SiteAccess, topic: TopicName, *, compacted: bool = False) -> dict[str, Message]:
    """Return the newest message of each key, tombstones left out; none if the topic does not exist."""
    newest: dict[str, Message] = {}
    try:
        reader = await site.client.create_reader(str(topic), force_topic_creation=False, read_compacted=compacted)
    except TopicNotFound:
        return {}
    async with reader:
        while await reader.has_message_available():
            message = await reader.read_next()
            newest[message.key or ""] = message  # a tombstone too
    return {key: message for key, message in newest.items() if key and message.content}


def _parsed(site: SiteAccess, topic: TopicName, message: Message) -> Mapping[str, Any]:
    try:
        record = json.loads(message.content or b"")
        if not isinstance(record, Mapping):
            raise ValueError("it is no JSON object")
        if message.key == OPERATION:
            Operation.from_json(record)
            if not isinstance(record.get("at"), str):
                raise ValueError("it has no time")
    except ValueError as error:
        raise OperationFailed(
            f"{site.name}: the message {message.id} of {topic} is no record of this command ({error}): another program "
            "publishes there; stop it, and publish a tombstone with the key of that message",
            Outcome.REFUSED,
        ) from error
    return record
