"""WATCH_TOPIC_LIST and its end: a client is told whenever topics that match its pattern come or go."""

from __future__ import annotations

from typing import Final, Protocol

from interpulse.broker.binary.context import BinaryContext, ConnectionLimits
from interpulse.broker.binary.output import Output
from interpulse.broker.topics.topic_patterns import TopicPattern, without_domain
from interpulse.broker.topics.topic_watches import TopicWatch
from interpulse.model.errors import InvalidTopicName, NotAllowed, ServiceNotReady
from interpulse.model.names import NamespaceName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.hashing import topics_hash

__all__ = ["TopicWatcher", "WatchingConnection", "on_watch_topic_list", "on_watch_topic_list_close"]

# Every watcher remembers the names that match. A client that wants more of them has to ask for the lists instead.
_WATCHERS_MAX: Final = 500
_REFUSED: Final = "Unable to create topic list watcher: "


class WatchingConnection(Protocol):
    """What watchers need of their connection."""

    limits: ConnectionLimits
    lost: bool
    output: Output
    context: BinaryContext
    topic_watchers: dict[int, TopicWatcher]

    @property
    def writable(self) -> bool:
        """False while so much output waits that the client shall be told nothing more."""


class TopicWatcher:
    """One watcher of a connection. While the client does not read, changes gather and become one update later."""

    def __init__(self, connection: WatchingConnection, watcher_id: int, namespace: NamespaceName) -> None:
        self.namespace = namespace
        self._connection = connection
        self._id = watcher_id
        self._watch: TopicWatch | None = None
        self._announced = False
        self._closed = False

    async def open(self, pattern: TopicPattern) -> None:
        """Find what matches. Raises what keeps the names of the namespace from us."""
        self._watch = await self._connection.context.topic_watches.watch(self.namespace, pattern, self.tell)
        if self._closed:
            self._end()

    def announce(self, request_id: int, known_hash: str) -> None:
        """Answer with the list as it is now, without it if the client has it already. Updates follow from here on."""
        watch = self._watch
        if watch is None:
            raise ServiceNotReady("Topic list watcher is already being created on this connection")
        watch.take_changes()
        current = topics_hash(watch.names)
        names = [] if known_hash == current else watch.names
        answer = commands.watch_topic_list_success(request_id, self._id, names, topics_hash=current)
        self._connection.output.send(answer)
        self._announced = True

    def tell(self) -> None:
        """Send what has changed, if the client can take it."""
        watch = self._watch
        if watch is None or not self._announced or not watch.has_changes or not self._connection.writable:
            return
        new, gone = watch.take_changes()
        current = topics_hash(watch.names)
        self._connection.output.send(commands.watch_topic_update(self._id, new=new, deleted=gone, topics_hash=current))

    def close(self) -> None:
        """Tell nothing more; a watcher that is being opened ends when it is open."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        if self._watch is not None:
            self._announced = False
            self._connection.context.topic_watches.end(self.namespace, self._watch)


async def on_watch_topic_list(connection: WatchingConnection, request: pb.CommandWatchTopicList) -> None:
    """With the id of a watcher that is there: its list once more, so that a client can make sure of it."""
    if connection.lost:  # while its permissions were looked up; what is opened now would never be closed
        return
    watcher = connection.topic_watchers.get(request.watcher_id)
    if watcher is None:
        watcher = await _open(connection, request)
    watcher.announce(request.request_id, request.topics_hash)


async def on_watch_topic_list_close(connection: WatchingConnection, request: pb.CommandWatchTopicListClose) -> None:
    """An unknown id is no failure, as with producers and consumers."""
    watcher = connection.topic_watchers.pop(request.watcher_id, None)
    if watcher is not None:
        watcher.close()
    connection.output.send(commands.success(request.request_id))


async def _open(connection: WatchingConnection, request: pb.CommandWatchTopicList) -> TopicWatcher:
    pattern = _pattern(connection, request.topics_pattern)
    watcher = TopicWatcher(connection, request.watcher_id, NamespaceName.parse(request.namespace))
    connection.topic_watchers[request.watcher_id] = watcher
    try:
        await watcher.open(pattern)
    except BaseException:
        if connection.topic_watchers.get(request.watcher_id) is watcher:
            del connection.topic_watchers[request.watcher_id]
        raise
    return watcher


def _pattern(connection: WatchingConnection, text: str) -> TopicPattern:
    limits = connection.limits
    if not limits.patterns_evaluated:
        raise NotAllowed(f"{_REFUSED}Evaluating subscription patterns is disabled.")
    if len(without_domain(text)) > limits.pattern_length_max:
        raise NotAllowed(f"{_REFUSED}Pattern longer than maximum: {limits.pattern_length_max}")
    if len(connection.topic_watchers) >= _WATCHERS_MAX:
        raise NotAllowed(f"{_REFUSED}This connection has {_WATCHERS_MAX} topic list watchers already")
    try:
        return TopicPattern(text)
    except InvalidTopicName as error:
        # A real broker evaluates Java's patterns too, and says InvalidTopicName to what even Java does not understand.
        # Java clients ask again and again after that, but fall back to polling after NotAllowed.
        raise NotAllowed(f"{_REFUSED}{error}") from error
