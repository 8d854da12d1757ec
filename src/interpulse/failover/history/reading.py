"""Logs and cursors of both sites, read at the end of a history."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.client.consuming.entry_reader import Entry, EntryReader, ask_last_position
from interpulse.client.messages import messages_of
from interpulse.failover.history.events import MessageName
from interpulse.failover.history.record import CursorState, History, Log, LoggedMessage, Rest
from interpulse.failover.history.recorder import HistoryRecorder, named_message
from interpulse.failover.history.stakes import REST_SECONDS
from interpulse.model.errors import NotSupported, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.acknowledgements import Acknowledgements
from interpulse.replication.copy import ORIGINAL_PRODUCER, ORIGINAL_SEQUENCE
from interpulse.replication.shown_acknowledgements import acknowledgements_in_stats, reported_acknowledgements
from interpulse.wire.stamps import source_positions

_READER: Final = "interpulse-history"


class SiteClients(NamedTuple):
    """Clients of one site. The caller closes them."""

    client: Client
    admin: AdminClient


async def read_history(
    recorder: HistoryRecorder,
    first: tuple[str, SiteClients],
    second: tuple[str, SiteClients],
    topics: Sequence[str],
    **fields: Any,
) -> History:
    """Return the history of a run that has ended, with the logs and cursors of topic-partitions at both sites.

    ``fields`` are further ones of `History`. Raise the failures of the clusters.
    """
    logs: list[Log] = []
    cursors: list[CursorState] = []
    for site, (client, admin) in (first, second):
        for topic in topics:
            logs.append(await read_log(client, site, topic))
            cursors += await read_cursors(admin, site, topic)
    return History((first[0], second[0]), recorder.events, logs, cursors, **fields)


async def read_log(client: Client, site: str, topic: str) -> Log:
    """Return the messages of a topic-partition at a site, without markers."""
    name = TopicName.parse(topic)
    end = await ask_last_position(client.session, name)
    messages: list[LoggedMessage] = []
    if end.entry >= 0:
        reader = EntryReader(client.session, name, after=EARLIEST, upto=end, subscription_prefix=_READER)
        async with reader:
            await reader.open()
            while batch := await reader.read_batch():
                messages.extend(message for entry in batch for message in _messages(topic, entry))
    return Log(site, topic, messages)


def _messages(topic: str, entry: Entry) -> Iterator[LoggedMessage]:
    metadata = entry.parsed.metadata
    if metadata.HasField("marker_type") or metadata.chunk_id < metadata.num_chunks_from_msg - 1:
        return
    positions = source_positions(metadata) if metadata.replicated_from else []
    source = positions[-1] if positions else None
    ledger, entry_id = entry.position
    for message in messages_of(
        entry.parsed, topic=topic, ledger=ledger, entry_id=entry_id, partition=-1, redelivery_count=0
    ):
        stored = {item.key: item.value for item in metadata.properties}
        name = named_message(topic, message.properties) or _unrecorded(topic, stored, message.producer_name)
        yield LoggedMessage(entry.position, max(message.id.batch_index, 0), name, source)


def _unrecorded(topic: str, properties: dict[str, str], producer: str) -> MessageName:
    """Return a name for a message that no recorded producer has sent."""
    original = properties.get(ORIGINAL_PRODUCER, producer)
    return MessageName(topic, original, int(properties.get(ORIGINAL_SEQUENCE, "0")))


async def read_cursors(admin: AdminClient, site: str, topic: str) -> list[CursorState]:
    """Return the durable subscriptions of a topic-partition. Parts of batches are read where the broker is ours."""
    try:
        shown = (await namespace_cursors(admin, TopicName.parse(topic).namespace_name)).get(topic, {})
    except NotSupported:
        shown = await shown_cursors(admin, topic)
    return [CursorState(site, topic, name, held) for name, held in shown.items() if not name.startswith("pulsar.")]


async def shown_cursors(admin: AdminClient, topic: str) -> dict[str, Acknowledgements]:
    """Return the durable subscriptions of a topic-partition as every broker shows them, without parts of batches."""
    stats = (await admin.topics.internal_stats(topic)).get("cursors", {})
    return {name: acknowledgements_in_stats(cursor) for name, cursor in stats.items()}


async def namespace_cursors(admin: AdminClient, namespace: NamespaceName) -> dict[str, dict[str, Acknowledgements]]:
    """Return the subscriptions of each topic-partition of a namespace. Raise NotSupported if the broker is not ours."""
    shown: defaultdict[str, dict[str, Acknowledgements]] = defaultdict(dict)
    token, more = None, True
    while more:
        page = await admin.namespaces.acknowledgements(namespace, since=token, every=True)
        token, more = page["token"], page["more"]
        for item in page["subscriptions"]:
            if not item.get("deleted"):
                shown[item["topic"]][item["subscription"]] = reported_acknowledgements(item)
    return shown


async def read_cursor(admin: AdminClient, site: str, topic: str, subscription: str) -> CursorState:
    """Return the cursor of a subscription. Raise SubscriptionNotFound."""
    for cursor in await read_cursors(admin, site, topic):
        if cursor.subscription == subscription:
            return cursor
    raise SubscriptionNotFound(f"Subscription {subscription} not found for topic {topic} of {site}")


async def watch_rest(clients: dict[str, SiteClients], topics: Sequence[str]) -> list[Rest]:
    """Look at the ends of all logs twice, six seconds apart, while all clients are idle."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    first = await _ends(clients, topics)
    await asyncio.sleep(REST_SECONDS + 1)
    last = await _ends(clients, topics)
    seconds = loop.time() - start
    return [Rest(site, topic, first[site, topic], last[site, topic], seconds) for site, topic in first]


async def _ends(clients: dict[str, SiteClients], topics: Sequence[str]) -> dict[tuple[str, str], Position]:
    return {
        (site, topic): await ask_last_position(each.client.session, TopicName.parse(topic))
        for site, each in clients.items()
        for topic in topics
    }
