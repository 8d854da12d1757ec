"""Clusters that replicate to each other: their addresses, policies and topics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.config import ClientConfig
from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.session import Session
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.errors import AlreadyExists
from interpulse.model.ids import EARLIEST
from interpulse.model.names import TopicName
from interpulse.spark.writing.broker_target import last_position
from interpulse.wire.stamps import source_positions
from tests.simulation.lanes.judge import StoredEntry
from tests.simulation.programs import BINARY_PORT, WEB_PORT
from tests.simulation.workload import CLIENT_OPTIONS, until_done

NAMESPACE: Final = "geo/lanes"


def broker_of(cluster: str) -> str:
    """Return the name of the node with the broker of a cluster."""
    return f"broker-{cluster}"


def service_url(cluster: str) -> str:
    return f"pulsar://{broker_of(cluster)}:{BINARY_PORT}"


def web_url(cluster: str) -> str:
    return f"http://{broker_of(cluster)}:{WEB_PORT}"


async def install(clusters: Sequence[str], topics: Mapping[str, Sequence[str]]) -> None:
    """Let the clusters know each other, and create ``topics``, each with the clusters that replicate it."""
    for cluster in clusters:
        async with AdminClient(web_url(cluster)) as admin:
            for other in clusters:
                addresses = ClusterData(web_url(other), broker_service_url=service_url(other))
                await _created(partial(admin.clusters.create, other, addresses))
            tenant = TenantInfo(allowed_clusters=tuple(clusters))
            await _created(partial(admin.tenants.create, NAMESPACE.partition("/")[0], tenant))
            await _created(partial(admin.namespaces.create, NAMESPACE, clusters=tuple(clusters)))
            for topic, replicating in topics.items():
                await _created(partial(admin.topics.create, topic))
                if set(replicating) != set(clusters):
                    own = replicating if cluster in replicating else (cluster,)
                    await until_done(partial(admin.topics.set_replication_clusters, topic, own))


async def _created(attempt: Callable[[], Awaitable[object]]) -> None:
    async def once() -> None:
        with suppress(AlreadyExists):
            await attempt()

    await until_done(once)


async def stored_entries(cluster: str, topic: str) -> list[StoredEntry]:
    """Return the entries of a topic, from its first to its last one."""
    session = Session(ClientConfig(service_url(cluster), **CLIENT_OPTIONS))
    try:
        name = TopicName.parse(topic)
        upto = await last_position(session, name)
        async with EntryReader(session, name, after=EARLIEST, upto=upto) as reader:
            await reader.open()
            return [
                StoredEntry(
                    entry.position,
                    bytes(entry.parsed.payload),
                    entry.parsed.metadata.replicated_from,
                    next(reversed(source_positions(entry.parsed.metadata)), None),
                    entry.parsed.metadata.producer_name,
                    tuple(entry.parsed.metadata.replicate_to),
                )
                async for entry in reader
            ]
    finally:
        await session.close()
