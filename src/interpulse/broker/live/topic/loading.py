"""The load of a topic from its records, with the pointer to its compacted ledger.

In a cluster the cursor ``__compaction`` names the compacted ledger, and is positioned at its horizon. Both are in one
record, so that the next owner of the topic reads them together. Source: docs/reference/cluster-protocol.md#compaction.
"""

from __future__ import annotations

from interpulse.broker import metadata_paths as keys
from interpulse.broker.live.api import TopicHost, TopicSettings
from interpulse.broker.live.topic.subscription_set import SubscriptionSet
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.errors import NotAllowed, PersistenceError, TopicNotFound
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.storage.api import CompactedLedger, LogNotFound, LogStore, MetadataStore
from interpulse.storage.cursors import (
    COMPACTED_LEDGER,
    COMPACTION_CURSOR,
    DEDUPLICATION_CURSOR,
    CursorRecord,
    read_cursor_names,
)


class CompactionPointer:
    """The pointer; see `interpulse.storage.api.CompactedPointer`."""

    def __init__(self, subscriptions: SubscriptionSet, state: TopicStateStore, stored: CursorRecord | None) -> None:
        self._subscriptions = subscriptions
        self._state = state
        ledger_id = None if stored is None else stored.numbers.get(COMPACTED_LEDGER)
        self.named: tuple[int, Position] | None = None
        if stored is not None and ledger_id is not None:
            self.named = ledger_id, stored.mark_delete

    async def name(self, ledger: CompactedLedger | None) -> None:
        """Store a new pointer. The cursor changes before the write, so that no older state follows it.

        Raises SubscriptionNotFound, ServiceNotReady if the topic is being closed, MetadataError and PersistenceError.
        """
        subscription = self._subscriptions.get(COMPACTION_CURSOR)
        cursor = subscription.cursor
        mark_delete, numbers = cursor.mark_delete, subscription.numbers
        other = {name: value for name, value in numbers.items() if name != COMPACTED_LEDGER}
        subscription.numbers = other if ledger is None else {**other, COMPACTED_LEDGER: ledger.ledger_id}
        cursor.reset(mark_delete if ledger is None else ledger.horizon)
        record, changes = subscription.take_record()
        try:
            await self._state.write_pointer(COMPACTION_CURSOR, record)
        except BaseException:
            subscription.numbers = numbers
            cursor.reset(mark_delete)
            raise
        subscription.stored_as(changes)


async def refuse_transactions(metadata: MetadataStore, topic: TopicName) -> None:
    """Raise NotAllowed for a topic with transactions, before it is changed.

    Loaded here, it would deliver messages of aborted transactions and lose acknowledgements of others.
    """
    subscriptions = await read_cursor_names(metadata, topic.log_name)
    records = [keys.topic_record(transaction_topic) for transaction_topic in topic.transaction_topics(subscriptions)]
    if topic.base.is_transaction_internal or await metadata.get_many(records):
        raise NotAllowed(
            f"Topic {topic} cannot be loaded: namespace {topic.namespace_name} has transactions, which this broker "
            f"does not offer; unload its bundles to brokers of Apache Pulsar"
        )


class _LogListener:
    """The listener of a log from its opening on. Its topic, which needs the log, is set a little later."""

    __slots__ = ("failure", "topic")

    def __init__(self) -> None:
        self.topic: Topic | None = None
        self.failure: Exception | None = None

    def on_durable(self, last: Position) -> None:
        if self.topic is not None:
            self.topic.on_durable(last)

    def on_log_failed(self, error: Exception) -> None:
        self.failure = error
        if self.topic is not None:
            self.topic.on_log_failed(error)


async def load_topic(name: TopicName, host: TopicHost, settings: TopicSettings, logs: LogStore) -> Topic:
    """Open the log, restore cursors and sequence ids. Raises TopicNotFound, LogDamaged, MetadataError, NotAllowed."""
    if host.layout.shared:
        await refuse_transactions(host.metadata, name)
    state = TopicStateStore(host.metadata, name, host.cursor_store, host.layout)
    epoch, last_index = await state.read_counters()  # opening the log changes the record; here it is still cached
    listener = _LogListener()
    try:
        topic_log = await logs.open(name.log_name, listener, create=False)
    except LogNotFound as error:
        raise TopicNotFound(f"Topic {name} does not exist") from error
    try:
        topic = Topic(name, host, settings, topic_log, state, epoch, last_index)
        listener.topic = topic
        if listener.failure is not None:
            topic.on_log_failed(listener.failure)
        await _restore(topic, host, state)
    except BaseException:
        await topic_log.close()
        raise
    if topic.failed:
        await topic.close()
        raise PersistenceError(f"Topic {name} failed while it was loaded")
    return topic


async def _restore(topic: Topic, host: TopicHost, state: TopicStateStore) -> None:
    await topic.broker_entry_metadata.begin(host.broker_entry_fields, topic.now_ms)
    topic.publishing.broker_entry_interceptor = topic.broker_entry_metadata.interceptor
    stored = await state.read_cursors()
    snapshot = stored.pop(DEDUPLICATION_CURSOR, None)
    if host.layout.shared:
        pointer = CompactionPointer(topic.subscription_set, state, stored.get(COMPACTION_CURSOR))
        await topic.log.compacted.follow(pointer)
    for subscription_name, record in stored.items():
        topic.subscription_set.restore(subscription_name, record)
    for subscription in topic.subscription_set.of_clients():
        topic.cursor_placed(subscription)
    if topic.settings.deduplication_enabled:
        await (topic.sequences.begin() if snapshot is None else topic.sequences.resume(snapshot, topic.now_ms()))
    elif snapshot is not None:
        await topic.sequences.end()
    if topic.log.compacted.current is not None:
        topic.compacted_upto(topic.log.compacted.current.horizon)
    if topic.settings.compaction_threshold_bytes > 0:
        await topic.keep_for_compaction()
    await topic.subscription_set.follow_remotes()
