"""The load of a topic from its records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from interpulse.broker.live.host import TopicHost
from interpulse.broker.live.settings import TopicSettings
from interpulse.broker.live.topic.compaction_pointer import CompactionPointer
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.live.topic_state import TopicStateStore
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.storage.api import Log, LogListener
from interpulse.storage.cursors import COMPACTION_CURSOR, DEDUPLICATION_CURSOR, CursorRecord


class _LogListener:
    """The listener of a log from its opening on. Its topic, which needs the log, is set a little later."""

    __slots__ = ("_failure", "_topic")

    def __init__(self) -> None:
        self._topic: Topic | None = None
        self._failure: Exception | None = None

    def pass_on_to(self, topic: Topic) -> None:
        self._topic = topic
        if self._failure is not None:
            topic.on_log_failed(self._failure)

    def on_durable(self, last: Position) -> None:
        if self._topic is not None:
            self._topic.on_durable(last)

    def on_log_failed(self, error: Exception) -> None:
        self._failure = error
        if self._topic is not None:
            self._topic.on_log_failed(error)


async def load_topic(
    name: TopicName,
    host: TopicHost,
    settings: TopicSettings,
    open_log: Callable[[TopicName, LogListener], Awaitable[Log]],
) -> Topic:
    """Open the log, restore cursors and sequence ids. Raises LogNotFound, LogDamaged, MetadataError."""
    state = TopicStateStore(host.metadata, name, host.cursor_store, host.layout)
    counters = await state.read_counters()  # opening the log changes the record; here it is still cached
    listener = _LogListener()
    topic_log = await open_log(name, listener)
    try:
        topic = Topic(name, host, settings, topic_log, state, counters)
        listener.pass_on_to(topic)
        await _restore(topic, host, state)
    except BaseException:
        await topic_log.close()
        raise
    return topic


async def _restore(topic: Topic, host: TopicHost, state: TopicStateStore) -> None:
    await topic.broker_entry_metadata.begin(host.broker_entry_fields, topic.now_ms)
    stored = await state.read_cursors()
    snapshot = stored.pop(DEDUPLICATION_CURSOR, None)
    if host.layout.shared:
        pointer = CompactionPointer(topic.subscription_set, state, stored.get(COMPACTION_CURSOR))
        await topic.log.compacted.follow(pointer)
    for subscription_name, record in stored.items():
        topic.subscription_set.restore(subscription_name, record)
    await _restore_sequences(topic, snapshot)
    if topic.log.compacted.current is not None:
        topic.compacted_upto(topic.log.compacted.current.horizon)
    if topic.settings.compaction_threshold_bytes > 0:
        await topic.keep_for_compaction()
    await topic.subscription_set.follow_remotes()


async def _restore_sequences(topic: Topic, snapshot: CursorRecord | None) -> None:
    topic.sequences.follow(topic.settings)
    if not topic.settings.deduplication_enabled:
        if snapshot is not None:
            await topic.sequences.end()
    elif snapshot is None:
        await topic.sequences.begin()
    else:
        await topic.sequences.resume(snapshot, topic.now_ms())
