"""PARTITIONED_METADATA, GET_TOPICS_OF_NAMESPACE, and WATCH_TOPIC_LIST for the topics that match a pattern."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from interpulse.broker.binary.lookup import answer_from_cache
from interpulse.broker.binary.transport.context import CommandConnection
from interpulse.broker.binary.transport.sinks import TopicWatcher
from interpulse.broker.topics.lookup.topic_watches import TopicPattern, without_domain
from interpulse.model.errors import InvalidTopicName, NamespaceNotFound, NotAllowed, NotFound
from interpulse.model.names import NON_PERSISTENT, PERSISTENT, Domain, NamespaceName, TopicName
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.answers import failed_answer
from interpulse.wire.frames import Frame, PartitionsRun
from interpulse.wire.hashing import topics_hash

_logger = logging.getLogger(__name__)
_DOMAINS_BY_MODE: Final[dict[int, tuple[Domain, ...]]] = {
    pb.CommandGetTopicsOfNamespace.PERSISTENT: (PERSISTENT,),
    pb.CommandGetTopicsOfNamespace.NON_PERSISTENT: (NON_PERSISTENT,),
    pb.CommandGetTopicsOfNamespace.ALL: (PERSISTENT, NON_PERSISTENT),
}

# Every watcher holds the matching names. A client that needs more watchers must poll the lists.
_WATCHERS_MAX: Final = 500

_REFUSED: Final = "Unable to create topic list watcher: "


def on_partitions_run(connection: CommandConnection, run: PartitionsRun) -> Sequence[Frame]:
    """Answer from memory. The rest goes to `on_partitioned_metadata`."""
    cached = partial(connection.context.lifecycle.cached_partitions, create=run.create)
    return answer_from_cache(connection, run, cached, commands.partitioned_metadata_answer)


async def on_partitioned_metadata(connection: CommandConnection, request: pb.CommandPartitionedTopicMetadata) -> None:
    """Answer with the partition count (PIP-344); ``metadata_auto_creation_enabled`` defaults to true.

    A missing topic is reported by the code alone, without a message, as Pulsar does.
    """
    topic, create = TopicName.parse(request.topic), request.metadata_auto_creation_enabled
    with connection.context.permits:
        try:
            partitions = await connection.context.lifecycle.partitions(topic, create=create)
        except NotFound as error:
            message = str(error) if create and isinstance(error, NamespaceNotFound) else ""
            answer = failed_answer(pb.BaseCommand.PARTITIONED_METADATA, request.request_id, error.wire_code, message)
        else:
            answer = commands.partitioned_metadata_answer(partitions).frame(request.request_id)
    connection.output.send(answer)


async def on_get_topics_of_namespace(connection: CommandConnection, request: pb.CommandGetTopicsOfNamespace) -> None:
    """Answer with the topics of a namespace, or with nothing if the client's hash still matches.

    They are filtered by the pattern if this broker evaluates it. A namespace that does not exist has no topics.
    """
    pattern = _evaluated_pattern(connection, request)
    namespace = NamespaceName.parse(request.namespace)
    topics: list[TopicName] = []
    try:
        for domain in _DOMAINS_BY_MODE[request.mode]:
            topics += await connection.context.lifecycle.list_topics(namespace, domain, include_system=False)
    except NamespaceNotFound:
        topics = []
    names = [str(topic) for topic in topics if pattern is None or pattern.matches(topic)]
    current = topics_hash(names)
    changed = request.topics_hash != current
    connection.output.send(
        commands.get_topics_of_namespace_response(
            request.request_id,
            names if changed else (),
            topics_hash=current,
            filtered=pattern is not None,
            changed=changed,
        )
    )


def _evaluated_pattern(connection: CommandConnection, request: pb.CommandGetTopicsOfNamespace) -> TopicPattern | None:
    """Return the pattern to evaluate. None: the client gets all topics and filters them itself."""
    limits, text = connection.limits, request.topics_pattern
    if not request.HasField("topics_pattern") or not limits.patterns_evaluated or len(text) > limits.pattern_length_max:
        return None
    try:
        return TopicPattern(text)
    except InvalidTopicName as error:  # Java may understand the pattern
        _logger.debug("pattern left to the client address=%s reason=%s", connection.address, error)
        return None


async def on_watch_topic_list(connection: CommandConnection, request: pb.CommandWatchTopicList) -> None:
    """Open a watcher. For an id in use, send the list again, so that the client can verify it."""
    if connection.lost:  # during the permission check; a watcher opened now would never be closed
        return
    watcher_id, watchers = request.watcher_id, connection.topic_watchers
    watcher = watchers.get(watcher_id)
    if watcher is None:
        pattern, namespace = _pattern(connection, request.topics_pattern), NamespaceName.parse(request.namespace)
        watcher = TopicWatcher(connection, connection.context.topic_watches, watcher_id, namespace)
        watchers[watcher_id] = watcher
        try:
            await watcher.open(pattern)
        except BaseException:
            if watchers.get(watcher_id) is watcher:
                del watchers[watcher_id]
            raise
    watcher.announce(request.request_id, request.topics_hash)


async def on_watch_topic_list_close(connection: CommandConnection, request: pb.CommandWatchTopicListClose) -> None:
    """Close a watcher. An unknown id is no failure, as for producers and consumers."""
    watcher = connection.topic_watchers.pop(request.watcher_id, None)
    if watcher is not None:
        watcher.close()
    connection.output.send(commands.success(request.request_id))


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
