"""Deleting topics, namespaces and tenants with everything that belongs to them.

Each deletion is marked first, so that nothing comes back while it lasts, and can be repeated if it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from interpulse.broker import keys
from interpulse.broker.config import BrokerConfig
from interpulse.broker.lifecycle import TopicLifecycle
from interpulse.broker.live.registry import TopicRegistry
from interpulse.broker.namespaces import Namespaces
from interpulse.broker.schemas import Schemas
from interpulse.broker.tenants import Tenants
from interpulse.model.errors import NotEmpty, OperationNotAllowed
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.model.topics import TopicKind
from interpulse.storage.api import Delete, MetadataStore

__all__ = ["Deletion"]

_DOMAINS: Final[tuple[Domain, ...]] = (PERSISTENT, NON_PERSISTENT)


class Deletion:
    """Deletes on request of an operator."""

    def __init__(
        self,
        store: MetadataStore,
        lifecycle: TopicLifecycle,
        registry: TopicRegistry,
        schemas: Schemas,
        namespaces: Namespaces,
        tenants: Tenants,
        config: Callable[[], BrokerConfig],
    ) -> None:
        """``config`` is asked whether namespaces and tenants may be deleted by force."""
        self._store = store
        self._lifecycle = lifecycle
        self._registry = registry
        self._schemas = schemas
        self._namespaces = namespaces
        self._tenants = tenants
        self._config = config

    async def topic(self, name: TopicName, *, force: bool) -> None:
        """Delete one topic or partition; raises PreconditionFailed if it is in use and not forced.

        The schemas go with a topic, but stay when one partition of it is deleted.
        """
        await self._lifecycle.check_delete_plain(name, force=force)
        await self._registry.delete(name, force=force)
        if not name.is_partition and await self._lifecycle.metadata(name) is None:
            await self._forget(name)

    async def partitioned_topic(self, name: TopicName, *, force: bool) -> None:
        """Delete a partitioned topic with its partitions; if one is in use and it is not forced, nothing is deleted."""
        partitions = [name.partition(index) for index in range(await self._lifecycle.begin_delete_partitioned(name))]
        try:
            if not force:
                self._check_unused(partitions)
            for partition in partitions:
                await self._delete_if_present(partition, force=force)
        except BaseException:
            await self._lifecycle.give_up_delete_partitioned(name)
            raise
        await self._forget(name)
        await self._lifecycle.end_delete_partitioned(name)

    async def namespace(self, namespace: NamespaceName, *, force: bool) -> None:
        """Delete a namespace; raises NotEmpty if it holds topics of its users and it is not forced."""
        if force and not self._config().force_delete_namespace_allowed:
            raise OperationNotAllowed("Broker doesn't allow forced deletion of namespaces")
        await self._delete_namespace(namespace, force=force)

    async def tenant(self, name: str, *, force: bool) -> None:
        """Delete a tenant; raises NotEmpty if it has namespaces and it is not forced."""
        if force and not self._config().force_delete_tenant_allowed:
            raise OperationNotAllowed("Broker doesn't allow forced deletion of tenants")
        await self._tenants.get(name)
        if force:
            for namespace in await self._namespaces.list(name):
                await self._delete_namespace(NamespaceName.parse(namespace), force=True)
        await self._tenants.delete(name)

    async def _delete_namespace(self, namespace: NamespaceName, *, force: bool) -> None:
        await self._namespaces.begin_delete(namespace)
        try:
            if not force and await self._holds_topics(namespace):
                raise NotEmpty(f"Cannot delete non empty namespace {namespace}")
            await self._delete_topics(namespace)
        except BaseException:
            await self._namespaces.give_up_delete(namespace)
            raise
        await self._forget_everything_below(namespace)
        await self._namespaces.end_delete(namespace)

    def _check_unused(self, partitions: Iterable[TopicName]) -> None:
        for partition in partitions:
            loaded = self._registry.get(partition)
            if loaded is not None:
                loaded.check_deletable()

    async def _delete_if_present(self, name: TopicName, *, force: bool) -> None:
        found = await self._lifecycle.existence(name)
        if found.kind is TopicKind.NON_PARTITIONED or self._registry.get(name) is not None:
            await self._registry.delete(name, force=force)

    async def _holds_topics(self, namespace: NamespaceName) -> bool:
        """Stored topics count, and topics that are not stored while somebody is connected to them."""
        for domain in _DOMAINS:
            if await self._lifecycle.list_partitioned(namespace, domain, include_system=False):
                return True
            topics = await self._lifecycle.list_topics(namespace, domain, include_system=False)
            if any(name.is_persistent or self._in_use(name) for name in topics):
                return True
        return False

    def _in_use(self, name: TopicName) -> bool:
        loaded = self._registry.get(name)
        return loaded is not None and loaded.in_use

    async def _delete_topics(self, namespace: NamespaceName) -> None:
        for domain in _DOMAINS:
            for name in await self._lifecycle.list_topics(namespace, domain, include_system=True):
                await self._registry.delete(name, force=True)
            for name in await self._lifecycle.list_partitioned(namespace, domain, include_system=True):
                await self._lifecycle.begin_delete_partitioned(name)
                await self._lifecycle.end_delete_partitioned(name)

    async def _forget(self, name: TopicName) -> None:
        await self._schemas.delete(name, force=True)
        await self._store.commit([Delete(keys.topic_policies(name))])

    async def _forget_everything_below(self, namespace: NamespaceName) -> None:
        schemas = f"{keys.SCHEMAS}/{namespace}"
        orphans = [f"{schemas}/{name}" for name in await self._store.children(schemas)]
        for domain in _DOMAINS:
            policies = keys.all_topic_policies(namespace, domain)
            orphans += [f"{policies}/{name}" for name in await self._store.children(policies)]
        await self._store.commit([Delete(key) for key in [*orphans, keys.replication_status(namespace)]])
