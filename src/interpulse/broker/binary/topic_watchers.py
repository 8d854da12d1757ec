"""WATCH_TOPIC_LIST and WATCH_TOPIC_LIST_CLOSE, by which a client follows the topics that match its pattern."""

from __future__ import annotations

from typing import Final

from interpulse.broker.binary.transport.command_connection import CommandConnection
from interpulse.broker.binary.transport.topic_watcher import TopicWatcher
from interpulse.broker.topics.lookup.topic_watches import TopicPattern, without_domain
from interpulse.model.errors import InvalidTopicName, NotAllowed
from interpulse.model.names import NamespaceName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb

# Every watcher holds the matching names. A client that needs more watchers must poll the lists.
_WATCHERS_MAX: Final = 500
_REFUSED: Final = "Unable to create topic list watcher: "


async def on_watch_topic_list(connection: CommandConnection, request: pb.CommandWatchTopicList) -> None:
    """Open a watcher. For an id in use, send the list again, so that the client can verify it."""
    if connection.lost:  # during the permission check; a watcher opened now would never be closed
        return
    watcher = connection.topic_watchers.get(request.watcher_id)
    if watcher is None:
        watcher = await _open(connection, request)
    watcher.announce(request.request_id, request.topics_hash)


async def on_watch_topic_list_close(connection: CommandConnection, request: pb.CommandWatchTopicListClose) -> None:
    """Close a watcher. An unknown id is no failure, as for producers and consumers."""
    watcher = connection.topic_watchers.pop(request.watcher_id, None)
    if watcher is not None:
        watcher.close()
    connection.output.send(commands.success(request.request_id))


async def _open(connection: CommandConnection, request: pb.CommandWatchTopicList) -> TopicWatcher:
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


def _pattern(connection: CommandConnection, text: str) -> TopicPattern:
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
        # A real broker also evaluates Java's patterns, and answers InvalidTopicName to those that Java rejects.
        # Java clients then retry forever, but fall back to polling after NotAllowed.
        raise NotAllowed(f"{_REFUSED}{error}") from error
