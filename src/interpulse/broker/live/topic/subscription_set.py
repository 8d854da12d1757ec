"""The subscriptions of one topic: creation, deletion, and storage of their cursors.

A durable subscription exists from the moment its cursor is stored. Cursors of replication to another cluster are
ordinary durable subscriptions with a reserved name, ``<replicatorPrefix>.<remote cluster>``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from weakref import ref

from interpulse.broker.live.api import ConsumerSink, InitialPosition, SubscribeRequest
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.topic.subscription import Subscription, SubscriptionOwner
from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.errors import AlreadyExists, NotAllowed, OperationNotAllowed, PulsarError, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.rules.limits import check_consumers_of_topic, check_subscriptions
from interpulse.storage.cursors import COMPACTION_CURSOR, DEDUPLICATION_CURSOR, CursorRecord

_NAME_LENGTH_MAX = 1_000
"""Limit for names: with a topic's name it must fit into the line of an HTTP request, encoded."""

_INTERNAL_CURSORS = frozenset({DEDUPLICATION_CURSOR, COMPACTION_CURSOR})
"""Cursors of the broker itself, which are not listed as subscriptions."""

_IDLE_READER_MS = 60_000
"""Time for which a non-durable subscription waits for its consumer after a seek."""


def stored_subscription_names(cursors: Iterable[str], replicator_prefix: str) -> list[str]:
    """Return the subscriptions that a topic with these stored cursors lists when it is loaded, sorted."""
    return sorted(
        name for name in cursors if name != DEDUPLICATION_CURSOR and not name.startswith(f"{replicator_prefix}.")
    )


class SubscriptionSet:
    """The subscriptions of one topic."""

    def __init__(self, owner: SubscriptionOwner, state: TopicStateStore, replicator_prefix: str) -> None:
        """Use the topic without keeping it alive."""
        self.by_name: dict[str, Subscription] = {}
        self._owner_ref = ref(owner)
        self._state = state
        self._prefix = replicator_prefix + "."
        self._following = asyncio.Lock()
        self._listed: tuple[str, ...] = ()
        """The remote clusters of the last policies that were followed."""

    @property
    def _owner(self) -> SubscriptionOwner:
        owner = self._owner_ref()
        assert owner is not None, "only the topic and what keeps it alive have this set"
        return owner

    # --- restoring and storing

    def restore(self, name: str, record: CursorRecord) -> None:
        """Restore a subscription from its stored cursor."""
        compacted = self._owner.log.compacted.current
        cursor = Cursor.restore(
            self._owner.log, record, compacted_upto=EARLIEST if compacted is None else compacted.horizon
        )
        subscription = Subscription(
            self._owner, name, cursor, properties=record.properties, replicate_state=record.replicate_state
        )
        subscription.by_policy = record.by_policy
        if name == COMPACTION_CURSOR:
            subscription.numbers = record.numbers
        if record.last_active_ms is not None:
            subscription.idle_since_ms = min(record.last_active_ms, subscription.idle_since_ms)
        subscription.stored_as(cursor.changes)
        self.by_name[name] = subscription

    async def store(self, subscription: Subscription) -> None:
        """Store the cursor of one subscription; durable on return."""
        if subscription.durable and not subscription.deleted:
            record, changes = subscription.take_record()
            await self._state.write_cursor(subscription.name, record)
            subscription.stored_as(changes)

    async def flush(self, more: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        """Store every cursor that changed, and ``more``, together; new ones are stored at their creation."""
        taken = [
            (subscription, *subscription.take_record())
            for subscription in self.by_name.values()
            if subscription.stored and subscription.dirty
        ]
        await self._state.write_cursors(
            {subscription.name: record for subscription, record, _ in taken} | dict(more), last=last
        )
        for subscription, _, changes in taken:
            subscription.stored_as(changes)

    # --- coming

    async def subscribe(self, request: SubscribeRequest, sink: ConsumerSink, *, creation_allowed: bool) -> Consumer:
        """Open a consumer, and the subscription if there is none.

        Raise SubscriptionNotFound for a reader that copies from a replication cursor which policies have closed.
        """
        if self.remote_of(request.subscription) is None:
            self._owner.limits.check_subscribe(request)
        while True:
            self._owner.check_open()
            subscription = self._find_or_begin(request, creation_allowed)
            async with subscription.changing:
                if subscription.deleted:
                    continue
                self._owner.check_open()
                await self._store_new(subscription)
                if request.start_rollback_seconds and not subscription.consumers:
                    since = self._owner.now_ms() - request.start_rollback_seconds * 1000
                    compacted = request.read_compacted
                    subscription.cursor.reset(await self._owner.positions.before_time(since, compacted=compacted))
                    self._owner.cursors_changed()
                await self._mark(subscription, request)
                consumer = await subscription.add(request, sink)
                try:
                    self._owner.check_open()
                    self._check_copied_cursor(request)
                except PulsarError:
                    consumer.close()
                    raise
                return consumer

    async def _mark(self, subscription: Subscription, request: SubscribeRequest) -> None:
        """Mark a subscription as replicated if its consumer asks for it; durable on return. A mark stays."""
        asked = request.replicate_state and self._owner.limits.settings.replicated_subscriptions_enabled
        if asked and not subscription.replicate_state:
            subscription.replicate_state_changed(True)
            await self.store(subscription)

    def _check_copied_cursor(self, request: SubscribeRequest) -> None:
        cursor = request.copied_cursor
        if cursor is not None and self.remote_of(cursor) is not None:
            self.get(cursor)

    async def create(
        self,
        name: str,
        position: MessageId | None,
        initial: InitialPosition,
        properties: Mapping[str, str] | None,
        *,
        replicate_state: bool,
    ) -> None:
        """Create a durable subscription without a consumer; raise AlreadyExists."""
        _check_name(name)
        if name in self.by_name:
            raise AlreadyExists(f"Subscription already exists for topic {self._owner.name}: {name}")
        self._check_count()
        cursor = Cursor(self._owner.log, self._start(position, initial))
        created = self._begin(
            Subscription(self._owner, name, cursor, properties=properties, replicate_state=replicate_state)
        )
        async with created.changing:
            await self._store_new(created)

    async def create_replicated(self, name: str, mark_delete: Position) -> Subscription:
        """Create a subscription that another cluster replicates to this one, unless there is one of this name.

        Raises NotAllowed for a name that clients may not use or if there are too many, and ServiceNotReady.
        """
        self._owner.check_open()
        _check_name(name)
        if not self.is_of_client(name):
            raise NotAllowed(f"The subscription name {name} is reserved")
        if name not in self.by_name:
            self._check_count()
        start = max(mark_delete, self._owner.positions.before_first())
        return await self.ensure(name, start, replicate_state=True)

    def _find_or_begin(self, request: SubscribeRequest, creation_allowed: bool) -> Subscription:
        _check_name(request.subscription)
        settings = self._owner.limits.settings
        subscription = self.by_name.get(request.subscription)
        if subscription is None:
            self._check_not_reserved(request.subscription)
            if request.durable and not creation_allowed:
                raise SubscriptionNotFound(f"Subscription {request.subscription} does not exist on {self._owner.name}")
            if self.remote_of(request.subscription) is None:
                self._check_count()
                check_consumers_of_topic(self.consumer_count, settings.max_consumers)
            start = None if request.durable else request.start_message_id
            first = self._start(start, request.initial_position, compacted=request.read_compacted)
            return self._begin(
                Subscription(
                    self._owner,
                    request.subscription,
                    Cursor(self._owner.log, first),
                    durable=request.durable,
                    properties=request.properties,
                    replicate_state=request.replicate_state and settings.replicated_subscriptions_enabled,
                )
            )
        if subscription.durable != request.durable:
            kind = "Durable" if subscription.durable else "NonDurable"
            raise NotAllowed(f"{kind} subscription with the same name already exists.")
        return subscription

    def _check_not_reserved(self, name: str) -> None:
        """Refuse a consumer that would create a replication cursor, and so retain the log for an excluded cluster.

        It is allowed if policies list the cluster and leave the retention to the job. Raises SubscriptionNotFound.
        """
        remote = self.remote_of(name)
        settings = self._owner.limits.settings
        left_to_the_job = remote in settings.remote_clusters and not settings.replication_cursors_opened
        if remote is not None and not left_to_the_job:
            raise SubscriptionNotFound(
                f"Subscription {name} does not exist on {self._owner.name}: replication cursors are opened by the "
                f"replication clusters of policies, or by `topics create-subscription`, not by consumers"
            )

    def _check_count(self) -> None:
        limit = self._owner.limits.settings.max_subscriptions
        if limit:
            check_subscriptions(str(self._owner.name), len(self.of_clients()), limit)

    def of_clients(self) -> list[Subscription]:
        return [subscription for name, subscription in self.by_name.items() if self.is_of_client(name)]

    def of_client(self, name: str) -> Subscription:
        """Return a durable subscription of clients. Raise SubscriptionNotFound; OperationNotAllowed for a reader."""
        subscription = self.get(name)
        if not self.is_of_client(name):
            raise SubscriptionNotFound(f"{name} of topic {self._owner.name} is no subscription of clients")
        if not subscription.durable:
            raise OperationNotAllowed(f"Subscription {name} of topic {self._owner.name} is not durable: it is a reader")
        return subscription

    def is_of_client(self, name: str) -> bool:
        """Return False for the name of a replication cursor, or of a cursor of the broker itself."""
        return name not in _INTERNAL_CURSORS and self.remote_of(name) is None

    @property
    def consumer_count(self) -> int:
        """The number of consumers on all subscriptions, without replication."""
        return sum(
            len(subscription.consumers) for name, subscription in self.by_name.items() if self.remote_of(name) is None
        )

    def _start(self, position: MessageId | None, initial: InitialPosition, *, compacted: bool = False) -> Position:
        last = self._owner.positions.durable
        if position is not None and position.position <= last:
            return self._owner.positions.before(position, compacted=compacted)
        return last if initial is InitialPosition.LATEST else self._owner.positions.before_first(compacted=compacted)

    def _begin(self, subscription: Subscription) -> Subscription:
        self.by_name[subscription.name] = subscription
        return subscription

    async def _store_new(self, subscription: Subscription) -> None:
        """Store a new subscription. The caller holds `Subscription.changing`."""
        if subscription.stored or not subscription.durable:
            return
        self._owner.cursor_placed(subscription)
        try:
            await self.store(subscription)
        except BaseException:
            self.forget(subscription)
            raise
        self._owner.cursors_changed()  # it may have moved meanwhile, and a flush skips a cursor that was never stored

    # --- going

    def get(self, name: str) -> Subscription:
        subscription = self.by_name.get(name)
        if subscription is None:
            raise SubscriptionNotFound(f"Subscription {name} not found for topic {self._owner.name}")
        return subscription

    def forget(self, subscription: Subscription) -> None:
        """Remove a subscription; a stored cursor stays."""
        subscription.deleted = True
        if self.by_name.get(subscription.name) is subscription:
            del self.by_name[subscription.name]

    async def drop(self, subscription: Subscription) -> None:
        """Remove a subscription and its stored cursor."""
        self.forget(subscription)
        if subscription.durable:
            await self._state.delete_cursor(subscription.name)

    def drop_idle_readers(self) -> None:
        """Remove non-durable subscriptions whose consumer did not reconnect."""
        for subscription in list(self.by_name.values()):
            idle = not subscription.durable and not subscription.consumers and not subscription.changing.locked()
            if idle and self._owner.now_ms() - subscription.idle_since_ms > _IDLE_READER_MS:
                self.forget(subscription)

    def let_go(self) -> None:
        """Release the subscriptions of the closed topic."""
        for subscription in self.by_name.values():
            subscription.let_go()
        self.by_name.clear()

    # --- replication

    def remote_of(self, name: str) -> str | None:
        """Return the remote cluster of a replication cursor, else None."""
        return name[len(self._prefix) :] if name.startswith(self._prefix) else None

    def of_remote(self, cluster: str) -> Subscription | None:
        """Return the replication cursor of a remote cluster."""
        return self.by_name.get(self._prefix + cluster)

    async def follow_remotes(self) -> None:
        """Open cursors for the clusters that policies list, so that entries are retained until they are replicated.

        An open cursor is unchanged. A cursor is closed if policies listed its cluster at any time and no longer do. A
        cursor of a cluster that they never listed stays: an operator or a replication job that is run by hand opened
        it.
        """
        async with self._following:
            settings = self._owner.limits.settings
            wanted = settings.remote_clusters
            for name in [self._prefix + remote for remote in wanted]:
                if settings.replication_cursors_opened or name in self.by_name:
                    await self.ensure(name, self._owner.positions.durable, by_policy=True)
            for subscription in list(self.by_name.values()):
                remote = self.remote_of(subscription.name)
                left = subscription.by_policy or remote in self._listed
                if remote is not None and remote not in wanted and left:
                    await subscription.delete(force=True)
                    self._close_copies_from(subscription.name)
            self._listed = wanted

    def _close_copies_from(self, cursor: str) -> None:
        """Close the readers of tasks that copy from a cursor that was closed: they copy nothing published later."""
        for subscription in list(self.by_name.values()):
            for consumer in list(subscription.consumers):
                if consumer.request.copied_cursor == cursor:
                    consumer.close_by_broker()

    async def ensure(
        self, name: str, mark_delete: Position, *, by_policy: bool = False, replicate_state: bool = False
    ) -> Subscription:
        """Return the durable subscription of this name; if there is none, create it after ``mark_delete``."""
        while True:
            subscription = self.by_name.get(name) or self._begin(
                Subscription(self._owner, name, Cursor(self._owner.log, mark_delete), replicate_state=replicate_state)
            )
            async with subscription.changing:
                if subscription.deleted:
                    continue
                changed = subscription.stored and by_policy > subscription.by_policy
                subscription.by_policy |= by_policy
                try:
                    await (self.store(subscription) if changed else self._store_new(subscription))
                except BaseException:
                    subscription.by_policy &= not changed  # so that the next call stores it
                    raise
                return subscription


def _check_name(name: str) -> None:
    if not name.strip():
        raise NotAllowed("Empty subscription name")
    if name == DEDUPLICATION_CURSOR:
        raise NotAllowed(f"The subscription name {name} is reserved")
    if len(name) > _NAME_LENGTH_MAX or "\0" in name:
        raise NotAllowed(f"A subscription name has no NUL and at most {_NAME_LENGTH_MAX} characters: {name[:100]!r}")
