"""The control topic of a pair on one site: created there, kept at home, and read.

Every site has a topic of its own under the same name: an exclusive producer would shut a replicator out. It is exempt
from roles. A subscription without consumers keeps its messages, which are few.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from interpulse.failover.site import SiteAccess
from interpulse.model.errors import AlreadyExists, TopicNotFound
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.names import TopicName

OPERATION: Final = "operation"
"""Key of the last event of the last operation."""

_KEEPER: Final = "interpulse-failover"


async def prepare_control_topic(site: SiteAccess, topic: TopicName) -> None:
    """Create the topic unless it exists. It is not replicated, whatever the namespace is."""
    with suppress(AlreadyExists):
        await site.admin.topics.create(topic)
    if await site.admin.topics.replication_clusters(topic) != [site.cluster]:
        await site.admin.topics.set_replication_clusters(topic, [site.cluster])
    with suppress(AlreadyExists):
        await site.admin.topics.create_subscription(topic, _KEEPER, MessageId(*EARLIEST))


async def read_control_topic(site: SiteAccess, topic: TopicName) -> dict[str, Mapping[str, Any]]:
    """Return the newest record of each key; none if the topic does not exist. Raise ValueError for one that is none."""
    records: dict[str, Mapping[str, Any]] = {}
    try:
        reader = await site.client.create_reader(str(topic), force_topic_creation=False)
    except TopicNotFound:
        return records
    async with reader:
        while await reader.has_message_available():
            message = await reader.read_next()
            if message.key is not None and message.content is not None:
                records[str(message.key)] = json.loads(message.content)
    return records
