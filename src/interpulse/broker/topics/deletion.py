"""The deletion of topics, namespaces and tenants with everything that belongs to them.

A topic, partitioned or not, is deleted in one commit, with its partitions, their cursors, metadata, schemas and
policies. A broker that dies leaves either all of it or nothing. Clients that open the topic meanwhile wait. Partitions
at other brokers are deleted first; if the deletion is forced, a mark prevents their return, and the broker that later
finds the mark finishes the deletion.

A namespace is too large for one commit. It is marked first, so that nothing can be created in it, and removed last.
Once a part is deleted there is no way back, and the next start finishes the deletion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.registry.topic_registry import DeleteCheck, TopicRegistry
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_policies import stored_policies, stored_record
from interpulse.model.changes import Change as MetadataChange
from interpulse.model.changes import DeleteNamespace
from interpulse.model.errors import (
    Conflict,
    InvalidTopicName,
    MetadataError,
    NamespaceNotFound,
    NotEmpty,
    NotFound,
    OperationNotAllowed,
    PulsarError,
)
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import TopicPolicyRecord
from interpulse.rules.namespaces import check_empty, decide_delete_namespace
from interpulse.rules.replication import check_topic_left_by_others, effective_replication_clusters, remote_clusters
from interpulse.storage.api import Change, CommitConflict, MetadataStore, scan_pages
from interpulse.storage.cas import retry_on_conflict
from interpulse.storage.metadata.session_bounded import with_waiting_reads

if TYPE_CHECKING:
    from interpulse.broker.ownership.other_brokers import OtherBrokers
    from interpulse.broker.topics.change_events.change_events import ChangeEvents

log = logging.getLogger(__name__)

_DOMAINS: Final[tuple[Domain, ...]] = (PERSISTENT, NON_PERSISTENT)
_KEYS_AT_ONCE: Final = 500  # per commit and turn of the event loop


class Deletion:
    """Deletes topics, namespaces and tenants on request, and unused topics."""

    def __init__(
        self,
        store: MetadataStore,
        lifecycle: TopicLifecycle,
        registry: TopicRegistry,
        namespaces: Namespaces,
        tenants: Tenants,
        config: Callable[[], BrokerConfig],
        others: OtherBrokers | None = None,
        events: ChangeEvents | None = None,
    ) -> None:
        """Create the deletions on these stores.

        ``config`` allows or forbids forced deletion of namespaces and tenants. ``others`` is None for a broker alone.
        ``events`` report removed topic policies to other brokers.
        """
        self._store = store
        self._lifecycle = lifecycle
        self._registry = registry
        self._namespaces = namespaces
        self._tenants = tenants
        self._config = config
        self._others = others
        self._events = events
        self._emptying: WeakValueDictionary[NamespaceName, asyncio.Lock] = WeakValueDictionary()
        self._deleting: WeakValueDictionary[TopicName, asyncio.Lock] = WeakValueDictionary()

    def _collect(self, namespace: NamespaceName) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._others is None else self._others.collected(namespace)

    async def topic(self, name: TopicName, *, force: bool) -> None:
        """Delete one topic or partition. Raise PreconditionFailed if it is in use and not forced.

        Raises Unprocessable if it is replicated and not forced.

        The schemas are deleted with a topic, but not with one of its partitions, nor while the other domain has a topic
        of that name, which shares the schemas.

        Requests for one topic wait for one another: the first deletes it, and the others do not find it.
        """

        async def attempt() -> None:
            await self._lifecycle.check_delete_plain(name, force=force)
            if not force:
                await self._check_left_by_others(name)
            await self._delete_plain(name, force=force)

        async with self._deleting.setdefault(name, asyncio.Lock()):
            await retry_on_conflict(attempt)

    async def inactive_topic(self, name: TopicName, check: DeleteCheck) -> None:
        """Delete one inactive topic or partition; ``check`` decides last (see `TopicRegistry.delete`)."""
        await retry_on_conflict(lambda: self._delete_plain(name, check=check))

    async def orphaned_metadata(self, name: TopicName) -> bool:
        """Delete a partitioned topic that has no partition left, in one commit; return True if it was one."""
        async with self._policies_go(name):
            return await self._lifecycle.delete_orphaned_metadata(name)

    async def partitioned_topic(self, name: TopicName, *, force: bool) -> None:
        """Delete a partitioned topic with its partitions.

        Nothing is deleted if one is in use and ``force`` is False.

        Raises Unprocessable if it is replicated and not forced.
        """

        async def attempt() -> None:
            plan = await self._lifecycle.plan_delete_partitioned(name)
            if not force:
                await self._check_left_by_others(name)
            async with self._policies_go(name):
                await self._registry.delete(*plan.partitions, force=force, also=plan.changes, expect=plan.expect)

        await retry_on_conflict(attempt)

    async def spread_topic(
        self, name: TopicName, delete_partitions: Callable[[], Awaitable[object]], *, force: bool
    ) -> None:
        """Delete a partitioned topic of several brokers: ``delete_partitions`` makes each delete its own partitions.

        A forced deletion marks the topic first, so that disconnected clients cannot create partitions again. Raises
        PreconditionFailed if a partition was created again nevertheless; some partitions may be deleted then.
        """
        await self._lifecycle.plan_delete_partitioned(name)  # raises if it may not be deleted
        if not force:
            await self._check_left_by_others(name)
        marked = force and await self._lifecycle.mark_deleted(name)
        await with_waiting_reads(self._delete_spread(name, delete_partitions, marked=marked))

    async def _delete_spread(
        self, name: TopicName, delete_partitions: Callable[[], Awaitable[object]], *, marked: bool
    ) -> None:
        try:
            await delete_partitions()
            async with self._policies_go(name):
                await self._lifecycle.delete_partitioned_metadata(name)
        except BaseException:
            if marked:
                with suppress(MetadataError):  # the next start continues the deletion
                    await self._lifecycle.mark_deleted(name, deleted=False)
            raise

    async def namespace(
        self, namespace: NamespaceName, *, force: bool, previewed: bool = False
    ) -> Sequence[MetadataChange]:
        """Delete a namespace, or preview it, and return the changes. Raise NotEmpty if it is not forced."""
        if force and not self._config().force_delete_namespace_allowed:
            raise OperationNotAllowed("Broker doesn't allow forced deletion of namespaces")
        if not previewed:
            await self._delete_namespace(namespace, force=force)
            return [DeleteNamespace(namespace)]
        await self._namespaces.check_delete(namespace)
        force = force or await self._store.get(keys.forced_deletion(namespace)) is not None
        rule = partial(decide_delete_namespace, holds_topics=not force and await self._holds_topics(namespace))
        return (await self._namespaces.decide(namespace, rule, previewed=True)).changes

    async def tenant(self, name: str, *, force: bool, previewed: bool = False) -> Sequence[MetadataChange]:
        """Delete a tenant, or only preview that, and return the changes.

        Raises NotEmpty if it has namespaces and ``force`` is False, and PreconditionFailed if a namespace cannot be
        deleted even by force; then nothing is deleted.
        """
        if force and not self._config().force_delete_tenant_allowed:
            raise OperationNotAllowed("Broker doesn't allow forced deletion of tenants")
        await self._tenants.get(name)
        if force:
            namespaces = [NamespaceName.parse(namespace) for namespace in await self._namespaces.list(name)]
            for namespace in namespaces:  # before the first is deleted
                await self._namespaces.check_delete(namespace)
            for namespace in namespaces:
                if not previewed:
                    await self._delete_namespace(namespace, force=True)
        return await self._tenants.delete(name, with_namespaces=force and previewed, previewed=previewed)

    async def resume(self) -> None:
        """Finish the deletions that an earlier process began. Log those that cannot be finished.

        The mark of an unforced deletion is removed if the namespace holds topics of its users.
        """
        for namespace in await self._namespaces.unfinished_deletions():
            try:
                await self._delete_namespace(namespace, resumed=True)
                log.info("unfinished deletion finished namespace=%s", namespace)
            except NotEmpty:
                log.info("unfinished deletion cancelled, it holds topics namespace=%s", namespace)
            except (NotFound, Conflict):
                continue  # another call has deleted or restored it meanwhile
            except PulsarError as error:
                log.error("unfinished deletion failed namespace=%s error=%s", namespace, error)
        for name in await self._lifecycle.unfinished_deletions():
            try:
                async with self._collect(name.namespace_name):
                    await self.partitioned_topic(name, force=True)
                log.info("unfinished deletion finished topic=%s", name)
            except NotFound:
                continue  # another call has deleted it meanwhile
            except PulsarError as error:
                log.error("unfinished deletion failed topic=%s error=%s", name, error)

    # --- one topic

    async def _check_left_by_others(self, name: TopicName) -> None:
        """Refuse a replicated topic. Topics that are not stored, and partitions that cannot be opened, hold nothing."""
        metadata = await self._lifecycle.metadata(name.base) if name.is_partition else None
        is_orphan = name.is_partition and (metadata is None or name.partition_index >= metadata.partitions)
        if not name.is_persistent or is_orphan:
            return
        namespace = await self._namespaces.find_policies(name.namespace_name)
        clusters = effective_replication_clusters(await stored_policies(self._store, name), namespace)
        check_topic_left_by_others(name, remote_clusters(self._namespaces.local_cluster, clusters))

    async def _delete_plain(self, name: TopicName, *, force: bool = False, check: DeleteCheck | None = None) -> None:
        also: Sequence[Change] = ()
        expect: dict[str, int | None] = {}
        if not name.is_partition and await self._lifecycle.metadata(name) is None:
            also, versions = await self._lifecycle.associated_metadata(name)
            expect = {keys.partitioned_topic(name): None, **versions}
        async with self._policies_go(name):
            await self._registry.delete(name, force=force, check=check, also=also, expect=expect)

    @asynccontextmanager
    async def _policies_go(self, name: TopicName) -> AsyncIterator[None]:
        """Report to other brokers if the policies of a topic are deleted within this context."""
        record = TopicPolicyRecord() if self._events is None else await stored_record(self._store, name)
        yield
        if self._events is not None and record != await stored_record(self._store, name):
            await self._events.forget(name.base, record)

    # --- a namespace

    async def _delete_namespace(self, namespace: NamespaceName, *, force: bool = False, resumed: bool = False) -> None:
        """Delete a namespace. A deletion that is resumed needs the mark of an earlier request, and sets none."""
        async with self._emptying.setdefault(namespace, asyncio.Lock()):
            was_forced = await self._store.get(keys.forced_deletion(namespace)) is not None
            owns_mark = not resumed and await self._namespaces.begin_delete(namespace, forced=force)
            deletion = self._delete_marked(namespace, force=force, was_forced=was_forced, owns_mark=owns_mark)
            await with_waiting_reads(deletion)

    async def _delete_marked(self, namespace: NamespaceName, *, force: bool, was_forced: bool, owns_mark: bool) -> None:
        """Delete a namespace as long as it has its mark: another broker may delete it, and a user create it again.

        ``was_forced``: an earlier request forced the deletion, and may have deleted a part. If the namespace holds
        topics the mark is removed. Other failures leave the mark to the request that owns it.
        """
        mark: Mapping[str, int | None] | None = None
        is_partly_deleted = was_forced
        try:
            mark = await self._namespaces.deletion_mark(namespace)
            check_empty(namespace, holds_topics=not (force or was_forced) and await self._holds_topics(namespace))
            async with self._collect(namespace):
                async for _ in self._emptied(namespace, mark):
                    is_partly_deleted = True
                await self._namespaces.end_delete(namespace, mark)
        except BaseException as error:
            if isinstance(error, NamespaceNotFound | CommitConflict):
                policies, versions = await self._namespaces.versioned_policies(namespace)
                if policies is None and owns_mark:
                    return  # a broker that started meanwhile has finished the deletion
                if policies is None:
                    raise NamespaceNotFound("Namespace does not exist") from error
                if versions != mark:
                    raise Conflict(f"Namespace {namespace} was restored or created again meanwhile") from error
            if is_partly_deleted:
                log.error("deletion unfinished, the next start continues namespace=%s error=%s", namespace, error)
            elif mark is not None and (owns_mark or isinstance(error, NotEmpty)):
                with suppress(CommitConflict, NamespaceNotFound):  # another broker has ended the deletion
                    await self._namespaces.give_up_delete(namespace, mark)
            raise

    async def _holds_topics(self, namespace: NamespaceName) -> bool:
        """Return True if there are stored topics, or non-persistent topics with a connected client.

        Non-persistent topics of other brokers count while they are loaded, as in Pulsar.
        """
        for domain in _DOMAINS:
            if await self._lifecycle.list_partitioned(namespace, domain, include_system=False):
                return True
            topics = await self._lifecycle.list_topics(namespace, domain, include_system=False)
            if any(name.is_persistent or self._in_use(name) for name in topics):
                return True
        return self._others is not None and bool(await self._others.loaded_topics(namespace))

    def _in_use(self, name: TopicName) -> bool:
        loaded = self._registry.get(name)
        return loaded is not None and loaded.clients.connected

    async def _emptied(self, namespace: NamespaceName, mark: Mapping[str, int | None]) -> AsyncIterator[None]:
        """Remove everything but the policies, in portions: loaded topics, stored ones, then the rest.

        Raise CommitConflict if the namespace has another ``mark``.
        """
        loaded = self._registry.names_in(namespace)
        for first in range(0, len(loaded), _KEYS_AT_ONCE):
            await self._registry.delete(*loaded[first : first + _KEYS_AT_ONCE], force=True, expect=mark)
            yield
        async for page in self._pages(f"{keys.namespace_records(namespace)}/"):
            topics = _topics_of(page)
            if topics:
                await self._registry.delete(*topics, force=True, expect=mark)
                yield
        for prefix in keys.namespace_contents(namespace):
            async for deletable in _from_below(self._pages(prefix)):
                await self._registry.delete_left_over(deletable, expect=mark)
                yield

    async def _pages(self, prefix: str) -> AsyncIterator[Sequence[str]]:
        async for page in scan_pages(self._store, prefix, limit=_KEYS_AT_ONCE):
            yield [key for key, _ in page]


async def _from_below(pages: AsyncIterator[Sequence[str]]) -> AsyncIterator[list[str]]:
    """Yield keys after all keys below them, even when these are on a later page."""
    held: list[str] = []
    async for page in pages:
        seen = [*held, *page]
        is_last = len(page) < _KEYS_AT_ONCE
        held = [] if is_last else [key for key in seen if page[-1] < f"{key}0"]  # "0" follows "/"
        yield [key for key in seen if key not in held]
    if held:
        yield held


def _topics_of(record_keys: Sequence[str]) -> list[TopicName]:
    """Return the topics of these records and cursors. Keys of no topic are left for later."""
    found: dict[TopicName, None] = {}
    for key in record_keys:
        with suppress(InvalidTopicName, ValueError):
            if (topic := keys.topic_of_record(key)) is not None:
                found[topic] = None
    return list(found)
