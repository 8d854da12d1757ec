"""The latest policies of each topic, read from the messages of ``__change_events``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from interpulse.broker.topics.change_events.event_codec import decode_policies, parse_event_key
from interpulse.broker.topics.change_events.event_schema import EVENT_SCHEMA
from interpulse.model.errors import InvalidTopicName, MetadataError, OperationTimeout
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import TopicPolicies

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.consuming.reader import Reader
    from interpulse.client.messages import Message

log = logging.getLogger(__name__)

_MESSAGE_MS_MAX: Final = 5_000

Levels = dict[tuple[TopicName, bool], tuple[TopicPolicies | None, Position]]
"""The latest event of a topic with its position, for this cluster (False) and for all clusters (True)."""


async def read_levels(client: Client, reader: Reader, message: Message | None = None) -> tuple[Levels, Position]:
    """Return the events from ``message`` on, up to the present end of the topic, and the position of the last message.

    ``client`` is asked for the schemas of messages. Unreadable messages are logged and left out.
    """
    levels: Levels = {}
    upto = EARLIEST
    while message is not None or await reader.has_message_available():
        if message is None:
            try:
                message = await reader.read_next(_MESSAGE_MS_MAX)
            except OperationTimeout:  # the last message was removed by compaction
                break
        upto = max(upto, message.id.position)
        await _take(client, message, levels)
        message = None
    return levels, upto


async def _take(client: Client, message: Message, levels: Levels) -> None:
    try:
        topic, everywhere = parse_event_key(message.key or "")
        policies: TopicPolicies | None = None
        if message.content:
            decoded = decode_policies(message.content, await _definition(client, message))
            if decoded is None:
                return
            policies, for_all = decoded
            everywhere |= for_all
        levels[topic, everywhere] = policies, message.id.position
    except (InvalidTopicName, MetadataError) as error:
        log.error(
            "change event invalid topic=%s id=%s key=%s error=%s",
            message.topic,
            message.id,
            message.key,
            error,
        )


async def _definition(client: Client, message: Message) -> bytes:
    if message.schema_version is None:
        return EVENT_SCHEMA.definition
    schema = await client.get_schema(str(TopicName.parse(message.topic).base), message.schema_version)
    if schema is None:
        raise MetadataError(f"its schema version {message.schema_version.hex()} does not exist")
    return schema.schema.definition
