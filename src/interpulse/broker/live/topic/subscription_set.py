"""The subscriptions of one topic: which there are, how they come and go, and how their cursors are stored.

A durable subscription exists from the moment its cursor is stored. Cursors of replication to another cluster are
ordinary durable subscriptions with a reserved name, ``<replicatorPrefix>.<remote cluster>``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol
from weakref import ref

from interpulse.broker.live.api import ConsumerSink
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.dispatch.consumer import Consumer
from interpulse.broker.live.requests import InitialPosition, SubscribeRequest
from interpulse.broker.live.topic.subscription import Subscription, SubscriptionOwner
from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.errors import AlreadyExists, NotAllowed, PulsarError, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.rules.limits import check_consumers_of_topic, check_subscriptions
from interpulse.storage.cursors.cursor_records import COMPACTION_CURSOR, DEDUPLICATION_CURSOR, CursorRecord

__all__ = ["SubscriptionSet", "stored_subscription_names"]

_NAME_LENGTH_MAX = 1_000
"""With a topic's name it has to fit into the line of an HTTP request, encoded."""

_INTERNAL_CURSORS = frozenset({DEDUPLICATION_CURSOR, COMPACTION_CURSOR})
"""Cursors of the broker itself do not count as subscriptions."""

_IDLE_READER_MS = 60_000
"""A non-durable subscription whose consumer was disconnected by a seek is kept so long for it to come back."""


def stored_subscription_names(cursors: Iterable[str], replicator_prefix: str) -> list[str]:
    """What a topic with these stored cursors lists as subscriptions when it is loaded, sorted."""
    return sorted(
        name for name in cursors if name != DEDUPLICATION_CURSOR and not name.startswith(f"{replicator_prefix}.")
    )


class SubscribedTopic(SubscriptionOwner, Protocol):
    """The topic, as the set of its subscriptions sees it."""

    def check_open(self) -> None:
        """Raises ServiceNotReady once the topic has failed or is being closed."""


class SubscriptionSet:
    """See the module."""

    def __init__(self, owner: SubscribedTopic, state: TopicStateStore, replicator_prefix: str) -> None:
        """The topic is not kept alive."""
        self.by_name: dict[str, Subscription] = {}
        self._owner_ref = ref(owner)
        self._state = state
        self._prefix = replicator_prefix + "."
        self._following = asyncio.Lock()
        self._listed: tuple[str, ...] = ()
        """The remote clusters of the policies when they were followed last."""

    @property
    def _owner(self) -> SubscribedTopic:
        owner = self._owner_ref()
        assert owner is not None, "only the topic and what keeps it alive have this set"
        return owner

    # --- restoring and storing

    def restore(self, name: str, record: CursorRecord) -> None:
        """Take over a stored cursor."""
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
        """Store every cursor that changed, and ``more``, together; new ones are stored where they are made."""
        taken = [(each, *each.take_record()) for each in self.by_name.values() if each.stored and each.dirty]
        await self._state.write_cursors({each.name: record for each, record, _ in taken} | dict(more), last=last)
        for subscription, _, changes in taken:
            subscription.stored_as(changes)

    # --- coming

    async def subscribe(self, request: SubscribeRequest, sink: ConsumerSink, *, creation_allowed: bool) -> Consumer:
        """Open a consumer, and the subscription if there is none."""
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
                return self._still_open(await subscription.add(request, sink))

    def _still_open(self, consumer: Consumer) -> Consumer:
        """A consumer that came while its topic was closed was not disconnected with the others."""
        try:
            self._owner.check_open()
        except PulsarError:
            consumer.close()
            raise
        return consumer

    async def create(
        self,
        name: str,
        position: MessageId | None,
        initial: InitialPosition,
        properties: Mapping[str, str] | None,
        *,
        replicate_state: bool,
    ) -> None:
        """Create a durable subscription without a consumer; raises AlreadyExists."""
        _check_name(name)
        if name in self.by_name:
            raise AlreadyExists(f"Subscription already exists for topic {self._owner.name}: {name}")
        self._check_count()
        start = self._start(position, initial)
        created = self._begin(name, start, properties=properties, replicate_state=replicate_state)
        async with created.changing:
            await self._store_new(created)

    def _find_or_begin(self, request: SubscribeRequest, creation_allowed: bool) -> Subscription:
        _check_name(request.subscription)
        subscription = self.by_name.get(request.subscription)
        if subscription is None:
            self._check_not_reserved(request.subscription)
            if request.durable and not creation_allowed:
                raise SubscriptionNotFound(f"Subscription {request.subscription} does not exist on {self._owner.name}")
            if self.remote_of(request.subscription) is None:
                self._check_count()
                check_consumers_of_topic(self.consumer_count, self._owner.limits.settings.max_consumers)
            start = None if request.durable else request.start_message_id
            return self._begin(
                request.subscription,
                self._start(start, request.initial_position, compacted=request.read_compacted),
                durable=request.durable,
                properties=request.properties,
                replicate_state=request.replicate_state,
            )
        if subscription.durable != request.durable:
            kind = "Durable" if subscription.durable else "NonDurable"
            raise NotAllowed(f"{kind} subscription with the same name already exists.")
        return subscription

    def _check_not_reserved(self, name: str) -> None:
        """A consumer opens no cursor of replication: the job would keep the log for a cluster that was just left out.

        Except where policies list the cluster and leave it to the job what is kept. Raises SubscriptionNotFound.
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
        """Raises NotAllowed if there are as many subscriptions as there may be."""
        limit = self._owner.limits.settings.max_subscriptions
        if limit:
            check_subscriptions(str(self._owner.name), len(self.of_clients()), limit)

    def of_clients(self) -> list[Subscription]:
        """All but the cursors that the broker keeps for itself and for replication."""
        return [
            each
            for name, each in self.by_name.items()
            if name not in _INTERNAL_CURSORS and self.remote_of(name) is None
        ]

    @property
    def consumer_count(self) -> int:
        """Of all subscriptions, without replication."""
        return sum(len(each.consumers) for name, each in self.by_name.items() if self.remote_of(name) is None)

    def _start(self, position: MessageId | None, initial: InitialPosition, *, compacted: bool = False) -> Position:
        """Where a new cursor stands."""
        last = self._owner.positions.durable
        if position is not None and position.position <= last:
            return self._owner.positions.before(position, compacted=compacted)
        return last if initial is InitialPosition.LATEST else self._owner.positions.before_first(compacted=compacted)

    def _begin(
        self,
        name: str,
        mark_delete: Position,
        *,
        durable: bool = True,
        properties: Mapping[str, str] | None = None,
        replicate_state: bool = False,
    ) -> Subscription:
        subscription = Subscription(
            self._owner,
            name,
            Cursor(self._owner.log, mark_delete),
            durable=durable,
            properties=properties,
            replicate_state=replicate_state,
        )
        self.by_name[name] = subscription
        return subscription

    async def _store_new(self, subscription: Subscription) -> None:
        """The caller holds `Subscription.changing`."""
        if subscription.stored or not subscription.durable:
            return
        try:
            await self.store(subscription)
        except BaseException:
            self.forget(subscription)
            raise
        if subscription.dirty:  # it moved meanwhile, and no flush takes one that was never stored
            self._owner.cursor_changed(subscription)

    # --- going

    def get(self, name: str) -> Subscription:
        """Raises SubscriptionNotFound."""
        subscription = self.by_name.get(name)
        if subscription is None:
            raise SubscriptionNotFound(f"Subscription {name} not found for topic {self._owner.name}")
        return subscription

    def forget(self, subscription: Subscription) -> None:
        """The subscription exists no more; a stored cursor stays."""
        subscription.deleted = True
        if self.by_name.get(subscription.name) is subscription:
            del self.by_name[subscription.name]

    async def drop(self, subscription: Subscription) -> None:
        """The subscription exists no more, nor does its stored cursor."""
        self.forget(subscription)
        if subscription.durable:
            await self._state.delete_cursor(subscription.name)

    def drop_idle_readers(self) -> None:
        """Forget non-durable subscriptions whose consumer did not come back."""
        for subscription in list(self.by_name.values()):
            idle = not subscription.durable and not subscription.consumers and not subscription.changing.locked()
            if idle and self._owner.now_ms() - subscription.idle_since_ms > _IDLE_READER_MS:
                self.forget(subscription)

    def let_go(self) -> None:
        """The topic is closed, and its subscriptions do not keep it alive any more."""
        for subscription in self.by_name.values():
            subscription.let_go()
        self.by_name.clear()

    # --- replication

    def remote_of(self, name: str) -> str | None:
        """The remote cluster if this is the name of a replication cursor."""
        return name[len(self._prefix) :] if name.startswith(self._prefix) else None

    async def follow_remotes(self) -> None:
        """Keep everything from now on until replication to the clusters that policies list has it.

        An open cursor stays as it is. One of a cluster that policies list no more is closed, however long ago and
        wherever they did. One of a cluster that they never listed was opened by an operator, or
        by a replication job that is run by hand.
        """
        async with self._following:
            settings = self._owner.limits.settings
            wanted = settings.remote_clusters
            for name in [self._prefix + remote for remote in wanted]:
                if settings.replication_cursors_opened or name in self.by_name:
                    await self.ensure(name, self._owner.positions.durable, by_policy=True)
            for each in list(self.by_name.values()):
                remote = self.remote_of(each.name)
                left = each.by_policy or remote in self._listed
                if remote is not None and remote not in wanted and left:
                    await each.delete(force=True)
            self._listed = wanted

    async def ensure(self, name: str, mark_delete: Position, *, by_policy: bool = False) -> None:
        """A durable subscription of this name exists; if there was none, it stands behind ``mark_delete``."""
        while True:
            subscription = self.by_name.get(name) or self._begin(name, mark_delete)
            async with subscription.changing:
                if subscription.deleted:
                    continue
                told = subscription.stored and by_policy > subscription.by_policy
                subscription.by_policy |= by_policy
                try:
                    await (self.store(subscription) if told else self._store_new(subscription))
                except BaseException:
                    subscription.by_policy &= not told  # so that it is stored the next time
                    raise
                return


def _check_name(name: str) -> None:
    if not name.strip():
        raise NotAllowed("Empty subscription name")
    if name == DEDUPLICATION_CURSOR:
        raise NotAllowed(f"The subscription name {name} is reserved")
    if len(name) > _NAME_LENGTH_MAX or "\0" in name:
        raise NotAllowed(f"A subscription name has no NUL and at most {_NAME_LENGTH_MAX} characters: {name[:100]!r}")
