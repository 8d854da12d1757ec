"""REST calls about the existence of topics: create, expand, list, delete, properties, unload, terminate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote_plus

from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.rest.http.at_owner import answers_of_partitions, at_owner, by_partition, or_at_peer
from interpulse.broker.rest.http.bodies import PARTITIONED_TOPIC
from interpulse.broker.rest.http.call import DONE, TOPIC_PATH, Answer, Call, Route, answer_json, answer_many
from interpulse.broker.rest.http.opening import existing_partitions, listed_topics, open_each, open_persistent
from interpulse.broker.rest.http.required_permissions import on_namespace, on_policy, on_topic, tenant_admin
from interpulse.in_turns import in_turns
from interpulse.model.errors import InvalidRequest, OperationNotAllowed, PreconditionFailed
from interpulse.model.names import Domain, TopicName
from interpulse.model.permissions import NamespaceOperation, TopicOperation
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


async def create_topic(call: Call) -> Answer:
    topic, properties = call.topic, call.properties()
    await call.context.lifecycle.create_plain(topic, properties=properties)
    if topic.is_persistent:
        call.context.inactive_topics.note_created(topic)
    else:
        await call.context.registry.open(topic, by=Requester.ADMIN, create=True)
    return DONE


async def delete_topic(call: Call) -> Answer:
    await call.context.deletion.topic(call.topic, force=call.flag("force"))
    return DONE


async def get_partitions(call: Call) -> Answer:
    """Return partition metadata. With ``checkAllowAutoCreation`` (PIP-344), create and omit properties."""
    create = call.flag("checkAllowAutoCreation")
    if create:
        check_source_of_creation(call.request_headers)
    metadata = await call.context.lifecycle.partitions_for_operator(call.topic, create=create)
    return answer_json(metadata.to_json())


async def create_partitioned(call: Call) -> Answer:
    partitions, properties = _partitions(call)
    local_only = call.flag("createLocalTopicOnly")
    topic = call.topic
    await call.context.lifecycle.create_partitioned(topic, partitions, properties=properties, local_only=local_only)
    return DONE


def _partitions(call: Call) -> tuple[int, dict[str, str]]:
    if not isinstance(call.json(), dict):
        return call.integer(), {}
    given = call.object(PARTITIONED_TOPIC)
    if "partitions" not in given:
        raise InvalidRequest("partitions must be an integer, it is missing")
    return given["partitions"], given.get("properties", {})


async def expand(call: Call) -> Answer:
    """Expand a topic, first on other clusters of its namespace unless ``updateLocalTopicOnly`` is true."""
    partitions, force, local_only = call.integer(), call.flag("force"), call.flag("updateLocalTopicOnly")
    await call.context.expansion.expand(call.topic, partitions, force=force, local_only=local_only)
    return DONE


async def create_missed_partitions(call: Call) -> Answer:
    await call.context.lifecycle.create_missed_partitions(call.topic)
    return DONE


async def delete_partitioned(call: Call) -> Answer:
    """Delete a partitioned topic: each partition at its broker, the partition metadata last."""
    topic, force = call.topic, call.flag("force")

    async def delete_partitions() -> None:
        await answers_of_partitions(call, "DELETE", TOPIC_PATH, await existing_partitions(call, topic), _DELETE)

    if call.context.others is None:
        await call.context.deletion.partitioned_topic(topic, force=force)
    else:
        await call.context.deletion.spread_topic(topic, delete_partitions, force=force)
    return DONE


async def get_properties(call: Call) -> Answer:
    _check_stored(call)
    await call.context.lifecycle.partitions(call.topic, create=False)
    return answer_json(await call.context.lifecycle.properties(call.topic))


async def update_properties(call: Call) -> Answer:
    properties = call.properties()
    _check_stored(call)
    await call.context.lifecycle.set_properties(call.topic, lambda old: old | properties)
    return DONE


async def delete_property(call: Call) -> Answer:
    key = call.query.get("key", "")
    if not key:
        raise InvalidRequest("The query parameter key has to name the property")
    _check_stored(call)
    await call.context.lifecycle.set_properties(
        call.topic, lambda old: {name: value for name, value in old.items() if name != key}
    )
    return DONE


def _check_stored(call: Call) -> None:
    if not call.topic.is_persistent:
        raise OperationNotAllowed("Need to provide a persistent topic name: no other topic has properties")


async def truncate(call: Call) -> Answer:
    """Delete every entry of the topic or its partitions."""
    if not call.topic.is_persistent:
        raise PreconditionFailed("A non-persistent topic cannot be truncated: it keeps no messages")
    async for topic in open_each(call):
        await backlog_operations.truncate(await open_persistent(call, topic.name))
    return DONE


async def trim(call: Call) -> Answer:
    """Delete messages that no subscription and no policy keeps, of the topic or its partitions."""
    if not call.topic.is_persistent:
        raise OperationNotAllowed(f"{call.topic} is not persistent: it keeps no messages")
    async for topic in open_each(call):
        await backlog_operations.trim(await open_persistent(call, topic.name))
    return Answer(200)


async def unload(call: Call) -> Answer:
    topic = call.topic
    partitions = await call.context.lifecycle.partitions(topic, create=False)
    for name in [topic.partition(index) for index in range(partitions)] or [topic]:
        await call.context.registry.unload(name)
    return DONE


def _domain(call: Call) -> Domain:
    domain: Any = call.params["domain"]
    return domain  # type: ignore[no-any-return]


def _trimmed(partitions: Mapping[TopicName, Any]) -> Answer:
    return Answer(200)


_DELETE: Final = Route("DELETE", TOPIC_PATH, delete_topic, on_namespace(NamespaceOperation.DELETE_TOPIC))
_TOPICS: Final = "/admin/v2/{domain}/{tenant}/{namespace}"

ROUTES: Final = (
    Route("GET", _TOPICS, list_topics, on_namespace(NamespaceOperation.GET_TOPICS)),
    Route("GET", f"{_TOPICS}/partitioned", list_partitioned, on_namespace(NamespaceOperation.GET_TOPICS)),
    at_owner(Route("PUT", TOPIC_PATH, or_at_peer(create_topic), on_namespace(NamespaceOperation.CREATE_TOPIC))),
    at_owner(_DELETE),
    Route(
        "GET", f"{TOPIC_PATH}/partitions", or_at_peer(get_partitions, "/partitions"), on_topic(TopicOperation.LOOKUP)
    ),
    Route("PUT", f"{TOPIC_PATH}/partitions", or_at_peer(create_partitioned, "/partitions"), on_policy),
    Route("POST", f"{TOPIC_PATH}/partitions", expand, on_policy),
    Route("DELETE", f"{TOPIC_PATH}/partitions", delete_partitioned, on_namespace(NamespaceOperation.DELETE_TOPIC)),
    Route("POST", f"{TOPIC_PATH}/createMissedPartitions", create_missed_partitions, on_topic(TopicOperation.LOOKUP)),
    Route("GET", f"{TOPIC_PATH}/properties", get_properties, on_topic(TopicOperation.GET_METADATA)),
    Route("PUT", f"{TOPIC_PATH}/properties", update_properties, on_topic(TopicOperation.UPDATE_METADATA)),
    Route("DELETE", f"{TOPIC_PATH}/properties", delete_property, on_topic(TopicOperation.DELETE_METADATA)),
    at_owner(Route("DELETE", f"{TOPIC_PATH}/truncate", truncate, tenant_admin), by_partition),
    at_owner(Route("POST", f"{TOPIC_PATH}/trim", trim, on_topic(TopicOperation.TRIM_TOPIC)), _trimmed),
    at_owner(Route("PUT", f"{TOPIC_PATH}/unload", unload, on_topic(TopicOperation.UNLOAD)), by_partition),
)
