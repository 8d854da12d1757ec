"""A member of a cluster: it owns bundles under locks and shares the upkeep."""

from __future__ import annotations

import logging
from collections.abc import Callable, Set
from contextlib import AsyncExitStack
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.access.setup import warn_without_own_access
from interpulse.broker.assembly import Foundation, Replication, Tenancy, Topics
from interpulse.broker.closing import close_in_time
from interpulse.broker.config.broker_config import SHUTDOWN
from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.ownership.other_brokers import OtherBrokers
from interpulse.broker.ownership.registered_brokers import LoadMeter, ProcessUsage, RegisteredBrokers
from interpulse.broker.ownership.shared_ownership import SharedOwnership
from interpulse.broker.ownership.sole_task import SoleTask
from interpulse.broker.rest.brokers import VERSION
from interpulse.broker.tenancy.namespaces import check_cluster
from interpulse.broker.topics.change_events.change_events import ChangeEvents
from interpulse.client.client import Client
from interpulse.model.brokers import LoadReport
from interpulse.model.isolation import IsolationPolicies
from interpulse.model.names import NamespaceName, TopicName
from interpulse.storage.metadata.guarded import GuardedMetadata
from interpulse.storage.metadata.session_bounded import leave_if_session_lost

_logger = logging.getLogger(__name__)

_STOP_SECONDS_MAX: Final = 60.0  # brokerShutdownTimeoutMs of Apache Pulsar
_LATE_SECONDS_MAX: Final = 4.5
_LOAD_MANAGER: Final = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
"""The load manager whose rules this broker follows. Brokers of Apache Pulsar in the same cluster check its name."""


class ClusterMember:
    """The membership of a broker in a cluster; see `Membership`."""

    def __init__(
        self,
        base: Foundation,
        tenancy: Tenancy,
        shared: SharedOwnership,
        on_lost: Callable[[], None],
        usage: Callable[[], ProcessUsage],
    ) -> None:
        """``on_lost`` is called when the session is lost."""
        self._base = base
        self._usage = usage
        self._on_lost = on_lost
        self._tenancy = tenancy
        self._events: ChangeEvents | None = None
        self.shared = self.owners = shared
        self.others = OtherBrokers(base.metadata, shared, base.own_access)

    @classmethod
    async def join(
        cls,
        base: Foundation,
        tenancy: Tenancy,
        guarded: GuardedMetadata,
        must_stop: Callable[[], None],
        usage: Callable[[], ProcessUsage] | None = None,
    ) -> ClusterMember:
        """Register with the other brokers. Raise PreconditionFailed if they cannot work with this one.

        ``must_stop`` is called when the broker may serve no more. ``usage`` is for its load reports; None: as the
        system reports it.
        """
        await check_cluster(base.stores.metadata, base.config.cluster_name)
        brokers = RegisteredBrokers(base.metadata, LoadReport(base.this_addresses, VERSION, _LOAD_MANAGER), base.clock)
        await brokers.check_others()
        brokers.on_extensible = must_stop
        namespaces = tenancy.namespaces

        async def boundaries(namespace: NamespaceName) -> tuple[str, ...] | None:
            policies = await namespaces.find_policies(namespace)
            return None if policies is None else (await namespaces.versioned_boundaries(namespace, policies))[0]

        async def isolation() -> IsolationPolicies:
            return await tenancy.isolation_policies.in_force(base.config.cluster_name)

        shared = SharedOwnership(base.metadata, guarded, brokers, boundaries, isolation)
        warn_without_own_access(base.config, base.own_access)
        stops = base.config.zookeeper_session_expired_policy == SHUTDOWN
        return cls(base, tenancy, shared, must_stop if stops else lambda: None, usage or ProcessUsage.now)

    def change_events(self, loaded: Set[TopicName]) -> ChangeEvents:
        self._events = ChangeEvents(
            self._base.stores.metadata,
            self._tenancy.namespaces.expected_versions,
            self._client_of_this_cluster,
            cluster=self._base.config.cluster_name,
            loaded=loaded,
        )
        return self._events

    def _client_of_this_cluster(self) -> Client:
        own = self._base.own_access
        return Client(self._base.addresses.service(tls=own.tls_preferred), credentials=own.credentials, tls=own.tls)

    def follow(self, topics: Topics, resume_sending: Callable[[], None], opened: AsyncExitStack) -> None:
        registry = topics.registry

        def apply_topic_policies(key: str) -> None:
            topic = keys.topic_of_topic_policies(key)
            if topic is not None:
                registry.begin_applying(topic.namespace_name, topic.base)
            elif key == keys.TOPIC_POLICIES:
                registry.begin_applying()

        self.shared.start(registry, on_resumed=resume_sending, on_lost=self._on_lost)
        registry.spawn(self.shared.brokers.keep_fresh())
        opened.callback(self._base.stores.metadata.watch(keys.TOPIC_POLICIES, apply_topic_policies))

    async def start_upkeep(self, topics: Topics, replication: Replication, opened: AsyncExitStack) -> None:
        async def resume_deletions() -> None:
            topics.registry.spawn(leave_if_session_lost(topics.deletion.resume()))

        async def keep_deletions() -> None:
            """Resume a deletion. If it fails, the next broker resumes it."""

        supervisor = replication.supervisor
        for name, begin, end in (
            ("replication", supervisor.start, supervisor.stop),
            ("deletions", resume_deletions, keep_deletions),
        ):
            task = SoleTask(self._base.stores.metadata, name, self._base.this_broker.broker_id, begin=begin, end=end)
            task.start()
            opened.push_async_callback(task.stop)

    def namespaces_changed(self, registry: TopicRegistry) -> None:
        registry.spawn(leave_if_session_lost(self.shared.release_missing()))

    async def announce(self, registry: TopicRegistry) -> None:
        await self.shared.brokers.register(LoadMeter(self.shared.topics, registry.get, self._usage))

    def leave_with(self, opened: AsyncExitStack) -> None:
        opened.push_async_callback(self.others.close)
        opened.push_async_callback(self.shared.leave)
        if self._events is not None:
            self._events.start()
            opened.push_async_callback(self._events.close)

    async def close(self, opened: AsyncExitStack) -> None:
        await close_in_time(opened, _STOP_SECONDS_MAX, _LATE_SECONDS_MAX)
