"""A standalone broker: it owns every bundle and does all upkeep itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Set
from contextlib import AsyncExitStack
from typing import Final

from interpulse.broker.assembly import CannotServe, Foundation, Replication, Topics
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.ownership.ownership import SoleOwner
from interpulse.broker.tenancy.namespaces import bootstrap
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import PreconditionFailed
from interpulse.model.names import TopicName
from interpulse.rules.placement import sent_to

_logger = logging.getLogger(__name__)

_STOP_SECONDS_MAX: Final = 4.5
"""Limit for the stop, so that SIGTERM ends within 5 s. The end of the process closes the rest."""


class BrokerAlone:
    """The membership of a standalone broker; see `Membership`."""

    shared = None
    others = None

    def __init__(self, base: Foundation) -> None:
        addresses = base.this_addresses
        self.owners = SoleOwner(base.this_broker, {name: sent_to(addresses, name) for name in addresses.listeners})

    @classmethod
    async def begin(cls, base: Foundation) -> BrokerAlone:
        """Write the records that every cluster has. Raise CannotServe for a data directory of another cluster."""
        addresses, config = base.addresses, base.config
        cluster = ClusterData(
            service_url=addresses.web_url or None,
            service_url_tls=addresses.web_url_tls or None,
            broker_service_url=addresses.service_url or None,
            broker_service_url_tls=addresses.service_url_tls or None,
        )
        try:
            await bootstrap(base.stores.metadata, local_cluster=config.cluster_name, cluster=cluster)
        except PreconditionFailed as error:
            raise CannotServe(f"data directory {config.data_dir} cannot be served: {error}") from error
        return cls(base)

    def change_events(self, loaded: Set[TopicName]) -> None:
        return None

    def follow(self, topics: Topics, resume_sending: Callable[[], None], opened: AsyncExitStack) -> None:
        return

    async def start_upkeep(self, topics: Topics, replication: Replication, opened: AsyncExitStack) -> None:
        await replication.supervisor.start()
        opened.push_async_callback(replication.supervisor.stop)
        topics.registry.spawn(topics.deletion.resume())

    def namespaces_changed(self, registry: TopicRegistry) -> None:
        return

    def leave_with(self, opened: AsyncExitStack) -> None:
        return

    async def announce(self, registry: TopicRegistry) -> None:
        return

    async def close(self, opened: AsyncExitStack) -> None:
        try:
            async with asyncio.timeout(_STOP_SECONDS_MAX):
                await opened.aclose()
        except TimeoutError:
            _logger.error("stop timed out seconds=%s", _STOP_SECONDS_MAX)
