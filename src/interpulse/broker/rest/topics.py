"""REST calls about the existence of topics: create, expand, list, delete, properties, unload, compact."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote_plus

from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.rest.http.at_owner import (
    answers_of_partitions,
    at_owner,
    by_partition,
    existing_partitions,
    listed_topics,
    open_each,
    open_persistent,
    or_at_peer,
)
from interpulse.broker.rest.http.bodies import PARTITIONED_TOPIC
from interpulse.broker.rest.http.call import UNSET, Answer, Call, Route, answer_json, answer_many
from interpulse.in_turns import in_turns
from interpulse.model.errors import Conflict, InvalidRequest, OperationNotAllowed, PreconditionFailed, TopicNotFound
from interpulse.model.names import Domain
from interpulse.model.operations import Topics
from interpulse.model.topics import Requester
from interpulse.rules.bundles import bundle_of, checked_bundle
from interpulse.serving.web_pages import check_source_of_creation


async def list_topics(call: Call) -> Answer:
    """List the topics of the namespace or ``bundle``; with ``properties``, only topics that have them all (PIP-452)."""
    properties = _wanted_properties(call)
    await call.context.namespaces.get_policies(call.namespace)
    include_system, domain = call.flag("includeSystemTopic"), _domain(call)
    if text := call.query.get("bundle"):
        boundaries = await call.context.namespaces.boundaries(call.namespace)
        bundle = checked_bundle(text, boundaries)
        names = await listed_topics(call, domain, include_system=include_system, bundle=bundle)
        names = [name async for some in in_turns(names) for name in some if bundle_of(name, boundaries) == bundle]
    else:
        names = await listed_topics(call, domain, include_system=include_system)
    if properties:
        names = await call.context.lifecycle.having_properties(names, properties)
    return await answer_many(map(str, names))


def _wanted_properties(call: Call) -> dict[str, str]:
    """Parse ``key=value,key=value`` with percent-encoded keys and values."""
    wanted: dict[str, str] = {}
    for pair in call.query.get("properties", "").split(","):
        key, separator, value = map(unquote_plus, pair.strip().partition("="))
        if key and separator:
            wanted[key] = value
        elif pair.strip():
            raise InvalidRequest(f"properties has to be key=value,key=value, not {pair[:100]!r}")
    return wanted


async def list_partitioned(call: Call) -> Answer:
    """List partitioned topics; with ``partitionCounts``, which real Pulsar lacks, return their counts."""
    await call.context.namespaces.get_policies(call.namespace)
    include_system = call.flag("includeSystemTopic")
    if call.flag("partitionCounts"):
        counts = await call.context.lifecycle.partition_counts(
            call.namespace, _domain(call), include_system=include_system
        )
        return await answer_many({str(name): count for name, count in counts.items()})
    names = await call.context.lifecycle.list_partitioned(call.namespace, _domain(call), include_system=include_system)
    return await answer_many(map(str, names))


async def create_topic(call: Call) -> None:
    topic, properties = call.topic, call.properties()
    await call.context.lifecycle.create_plain(topic, properties=properties)
    if topic.is_persistent:
        call.context.inactive_topics.note_created(topic)
    else:
        await call.context.registry.open(topic, by=Requester.ADMIN, create=True)


async def get_partitions(call: Call) -> Answer:
    """Return partition metadata. With ``checkAllowAutoCreation`` (PIP-344), create and omit properties."""
    create = call.flag("checkAllowAutoCreation")
    if create:
        check_source_of_creation(call.request_headers)
    metadata = await call.context.lifecycle.partitions_for_operator(call.topic, create=create)
    return answer_json(metadata.to_json())


async def create_partitioned(call: Call) -> None:
    partitions, properties = _partitions(call)
    local_only = call.flag("createLocalTopicOnly")
    topic = call.topic
    await call.context.lifecycle.create_partitioned(topic, partitions, properties=properties, local_only=local_only)


def _partitions(call: Call) -> tuple[int, dict[str, str]]:
    if not isinstance(call.json(), dict):
        return call.integer(), {}
    given = call.object(PARTITIONED_TOPIC)
    if "partitions" not in given:
        raise InvalidRequest("partitions must be an integer, it is missing")
    return given["partitions"], given.get("properties", {})


async def expand(call: Call) -> None:
    """Expand a topic, first on other clusters of its namespace unless ``updateLocalTopicOnly`` is true."""
    partitions, force, local_only = call.integer(), call.flag("force"), call.flag("updateLocalTopicOnly")
    await call.context.expansion.expand(call.topic, partitions, force=force, local_only=local_only)


async def delete_partitioned(call: Call) -> None:
    """Delete a partitioned topic: each partition at its broker, the partition metadata last."""
    topic, force = call.topic, call.flag("force")

    async def delete_partitions() -> None:
        await answers_of_partitions(call, await existing_partitions(call, topic), _DELETE)

    if call.context.others is None:
        await call.context.deletion.partitioned_topic(topic, force=force)
    else:
        await call.context.deletion.spread_topic(topic, delete_partitions, force=force)


async def get_properties(call: Call) -> Answer:
    _check_stored(call)
    await call.context.lifecycle.partitions(call.topic, create=False)
    return answer_json(await call.context.lifecycle.properties(call.topic))


async def update_properties(call: Call) -> None:
    properties = call.properties()
    _check_stored(call)
    await call.context.lifecycle.set_properties(call.topic, lambda old: old | properties)


async def delete_property(call: Call) -> None:
    key = call.query.get("key", "")
    if not key:
        raise InvalidRequest("The query parameter key has to name the property")
    _check_stored(call)
    await call.context.lifecycle.set_properties(
        call.topic, lambda old: {name: value for name, value in old.items() if name != key}
    )


def _check_stored(call: Call) -> None:
    if not call.topic.is_persistent:
        raise OperationNotAllowed("Need to provide a persistent topic name: no other topic has properties")


async def truncate(call: Call) -> None:
    """Delete every entry of the topic or its partitions."""
    if not call.topic.is_persistent:
        raise PreconditionFailed("A non-persistent topic cannot be truncated: it keeps no messages")
    async for topic in open_each(call):
        await backlog_operations.truncate(await open_persistent(call, topic.name))


async def trim(call: Call) -> Answer:
    """Delete messages that no subscription and no policy keeps, of the topic or its partitions."""
    if not call.topic.is_persistent:
        raise OperationNotAllowed(f"{call.topic} is not persistent: it keeps no messages")
    async for topic in open_each(call):
        await backlog_operations.trim(await open_persistent(call, topic.name))
    return UNSET


async def compact(call: Call) -> None:
    """Start compacting the topic or all its partitions. Raise Conflict if one is being compacted already.

    A compacted copy needs space beside the original, so compaction is refused while the disk is full.
    """
    _check_compactable(call)
    disk_space = call.context.instruments.disk_space
    if disk_space is not None:
        disk_space.check()
    conflicts: list[Conflict] = []
    async for opened in open_each(call):
        topic = await open_persistent(call, opened.name)
        try:
            topic.compaction.begin()
        except Conflict as conflict:
            conflicts.append(conflict)
    if conflicts:
        raise conflicts[0]


async def get_compaction(call: Call) -> Answer:
    """Return the status of the compaction. As in Pulsar, a partitioned topic has none of its own."""
    _check_compactable(call)
    topic = call.topic
    if await call.context.lifecycle.partitions(topic, create=False):
        raise TopicNotFound(f"Topic {topic} not found: it is partitioned, ask for the status of its partitions")
    return answer_json((await open_persistent(call, topic)).compaction.shown())


def _check_compactable(call: Call) -> None:
    if not call.topic.is_persistent:
        raise OperationNotAllowed("A non-persistent topic cannot be compacted: it keeps no messages")


async def unload(call: Call) -> None:
    topic = call.topic
    partitions = await call.context.lifecycle.partitions(topic, create=False)
    for name in [topic.partition(index) for index in range(partitions)] or [topic]:
        await call.context.registry.unload(name)


def _domain(call: Call) -> Domain:
    domain: Any = call.params["domain"]
    return domain  # type: ignore[no-any-return]


_DELETE: Final = Route(Topics.DELETE, lambda call: call.context.deletion.topic(call.topic, force=call.flag("force")))

ROUTES: Final = (
    Route(Topics.LIST, list_topics),
    Route(Topics.LIST_PARTITIONED, list_partitioned),
    at_owner(or_at_peer(Route(Topics.CREATE, create_topic))),
    at_owner(_DELETE),
    or_at_peer(Route(Topics.GET_PARTITIONS, get_partitions)),
    or_at_peer(Route(Topics.CREATE_PARTITIONED, create_partitioned)),
    Route(Topics.EXPAND, expand),
    Route(Topics.DELETE_PARTITIONED, delete_partitioned),
    Route(Topics.CREATE_MISSED_PARTITIONS, lambda call: call.context.lifecycle.create_missed_partitions(call.topic)),
    Route(Topics.GET_PROPERTIES, get_properties),
    Route(Topics.UPDATE_PROPERTIES, update_properties),
    Route(Topics.REMOVE_PROPERTY, delete_property),
    at_owner(Route(Topics.TRUNCATE, truncate), by_partition),
    at_owner(Route(Topics.TRIM, trim), lambda answers: UNSET),
    at_owner(Route(Topics.UNLOAD, unload), by_partition),
    at_owner(Route(Topics.COMPACT, compact), by_partition),
    at_owner(Route(Topics.GET_COMPACTION, get_compaction)),
)
