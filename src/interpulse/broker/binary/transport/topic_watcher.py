"""A watcher of topic lists, which reports created and deleted topics to its client."""

from __future__ import annotations

from typing import Protocol

from interpulse.broker.binary.transport.context import BinaryContext, ConnectionLimits
from interpulse.broker.binary.transport.output import Output
from interpulse.broker.topics.lookup.topic_watches import TopicPattern, TopicWatch
from interpulse.model.errors import ServiceNotReady
from interpulse.model.names import NamespaceName
from interpulse.wire import commands
from interpulse.wire.hashing import topics_hash


class WatchingConnection(Protocol):
    """The interface of the connection for its watchers."""

    limits: ConnectionLimits
    lost: bool
    output: Output
    context: BinaryContext
    topic_watchers: dict[int, TopicWatcher]

    @property
    def writable(self) -> bool:
        """False while so much output waits that no updates are sent."""


class TopicWatcher:
    """One watcher of a connection. While the client does not read, changes are merged into one later update."""

    def __init__(self, connection: WatchingConnection, watcher_id: int, namespace: NamespaceName) -> None:
        self.namespace = namespace
        self._connection = connection
        self._id = watcher_id
        self._watch: TopicWatch | None = None
        self._announced = False
        self._closed = False

    async def open(self, pattern: TopicPattern) -> None:
        """Find the topics that match. Raise the error of the broker if it cannot list the namespace."""
        self._watch = await self._connection.context.topic_watches.watch(self.namespace, pattern, self.send_changes)
        if self._closed:
            self._end()

    def announce(self, request_id: int, known_hash: str) -> None:
        """Send the current list, without names if the client has them already. Updates follow."""
        watch = self._watch
        if watch is None:
            raise ServiceNotReady("Topic list watcher is already being created on this connection")
        watch.take_changes()
        current = topics_hash(watch.names)
        names = [] if known_hash == current else watch.names
        answer = commands.watch_topic_list_success(request_id, self._id, names, topics_hash=current)
        self._connection.output.send(answer)
        self._announced = True

    def send_changes(self) -> None:
        """Send the changes, if the client reads."""
        watch = self._watch
        if watch is None or not self._announced or not watch.has_changes or not self._connection.writable:
            return
        new, gone = watch.take_changes()
        current = topics_hash(watch.names)
        self._connection.output.send(commands.watch_topic_update(self._id, new=new, deleted=gone, topics_hash=current))

    def close(self) -> None:
        """Stop sending. A watcher that is still opening ends once it is open."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        if self._watch is not None:
            self._announced = False
            self._connection.context.topic_watches.end(self.namespace, self._watch)
