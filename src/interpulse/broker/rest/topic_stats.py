"""REST calls that look into loaded topics: statistics, last message, termination."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.live.topic.topic_stats import NO_REPLICATION, add_earliest_times
from interpulse.broker.replication.replication_status import REPLICATING
from interpulse.broker.rest.http.at_owner import (
    answers_of_partitions,
    at_owner,
    existing_partitions,
    open_persistent,
    open_topic,
)
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json
from interpulse.model.errors import OperationNotAllowed, PartitionedTopicNotFound
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.operations import Messages, Topics
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.topic_stats import summed


async def get_stats(call: Call) -> Answer:
    return answer_json(await _with_status(call, call.topic, await _stats(call, await open_topic(call, call.topic))))


async def _stats(call: Call, topic: AnyTopic) -> dict[str, Any]:
    """Return statistics. ``getEarliestTimeInBacklog`` reads one entry of each backlog; clients are optional."""
    body = topic.stats()
    if call.flag("excludePublishers"):
        body["publishers"] = []
    if call.flag("excludeConsumers"):
        for subscription in body["subscriptions"].values():
            subscription["consumers"] = []
    if call.flag("getEarliestTimeInBacklog", False) and isinstance(topic, Topic):
        await add_earliest_times(topic, body)
    return body


async def _with_status(call: Call, name: TopicName, stats: dict[str, Any]) -> dict[str, Any]:
    """Add the state of replication, and the reason if it is held, to the replication statistics."""
    for cluster, known in (await call.context.replication_status.in_stats(name)).items():
        figures = NO_REPLICATION | stats["replication"].get(cluster, {}) | known
        figures["connected"] = figures["connected"] and known["status"]["state"] == REPLICATING
        stats["replication"][cluster] = figures
    return stats


async def get_internal_stats(call: Call) -> Answer:
    return answer_json(await _internal_stats(await open_topic(call, call.topic)))


async def get_internal_info(call: Call) -> Answer:
    """Return the records of a topic, or of each partition, without loading them."""
    topic, lifecycle = call.topic, call.context.lifecycle
    if not topic.is_persistent:
        raise OperationNotAllowed(f"{topic} is not persistent: nothing of it is recorded")
    if await lifecycle.metadata(topic) is None:
        return answer_json(await lifecycle.internal_info(topic))
    names = await existing_partitions(call, topic)
    return answer_json({"version": 0, "partitions": {str(name): await lifecycle.internal_info(name) for name in names}})


async def get_partitioned_stats(call: Call) -> Answer:
    """Return the sum over all partitions, and each partition unless ``perPartition`` is false."""
    metadata = await _partitioned(call)
    by_name = await _of_partitions(call, _STATS, partial(_stats, call))
    body: dict[str, Any] = summed(by_name.values()) | {"metadata": metadata.to_json()}
    if by_name:
        await _with_status(call, call.topic, body)
    shown = by_name if call.flag("perPartition", True) else {}
    body["partitions"] = {str(name): await _with_status(call, name, stats) for name, stats in shown.items()}
    return answer_json(body)


async def get_partitioned_internal_stats(call: Call) -> Answer:
    metadata = await _partitioned(call)
    by_name = await _of_partitions(call, INTERNAL_STATS, _internal_stats)
    partitions = {str(name): stats for name, stats in by_name.items()}
    return answer_json({"metadata": metadata.to_json(), "partitions": partitions})


async def get_last_message_id(call: Call) -> Answer:
    """Return the last message id. An empty topic has its ledger and the entry -1."""
    topic = await open_persistent(call, call.topic)
    last = await topic.last_message()
    position = last.position if last.position.entry >= 0 else Position(topic.positions.durable.ledger, -1)
    return answer_json(_message_id(topic.name, position.ledger, position.entry, last.batch_index))


async def terminate(call: Call) -> Answer:
    if not call.topic.is_partition and await call.context.lifecycle.partitions(call.topic, create=False):
        raise OperationNotAllowed("Termination of a partitioned topic is not allowed")
    return answer_json(await _terminated(await open_persistent(call, call.topic)))


async def terminate_partitioned(call: Call) -> Answer:
    if await call.context.lifecycle.metadata(call.topic) is None:
        raise OperationNotAllowed(
            "Termination of a non-partitioned topic is not allowed using partitioned-terminate, please use terminate "
            "commands"
        )
    ends = await _of_partitions(call, _TERMINATE, _terminated)
    return answer_json({str(name.partition_index): end for name, end in ends.items()})


async def _terminated(topic: AnyTopic) -> dict[str, int]:
    if not isinstance(topic, Topic):
        raise OperationNotAllowed(f"{topic.name} is not persistent: it keeps no messages")
    position = await topic.terminate()
    return _message_id(topic.name, position.ledger, position.entry, -1)


async def _partitioned(call: Call) -> PartitionedTopicMetadata:
    metadata = await call.context.lifecycle.metadata(call.topic)
    if metadata is None:
        raise PartitionedTopicNotFound(f"Partitioned Topic {call.topic} not found")
    return metadata


async def _internal_stats(topic: AnyTopic) -> dict[str, Any]:
    return topic.internal_stats()


async def _of_partitions(
    call: Call, route: Route, local: Callable[[AnyTopic], Awaitable[dict[str, Any]]]
) -> dict[TopicName, dict[str, Any]]:
    """Return the value of each partition, by ``local`` if all are here, else by the route at their owners."""
    names = await existing_partitions(call, call.topic)
    if call.context.others is None:
        return {name: await local(await open_topic(call, name)) for name in names}
    return await answers_of_partitions(call, names, route)


def _message_id(name: TopicName, ledger: int, entry: int, batch_index: int) -> dict[str, int]:
    return {
        "ledgerId": ledger,
        "entryId": entry,
        "partitionIndex": name.partition_index,
        "batchIndex": batch_index,
        "batchSize": 0,
    }


_STATS: Final = Route(Topics.GET_STATS, get_stats)
INTERNAL_STATS: Final = Route(Topics.GET_INTERNAL_STATS, get_internal_stats)
_TERMINATE: Final = Route(Topics.TERMINATE, terminate)

ROUTES: Final = (
    at_owner(_STATS),
    at_owner(INTERNAL_STATS),
    Route(Topics.GET_INTERNAL_INFO, get_internal_info),
    Route(Topics.GET_PARTITIONED_STATS, get_partitioned_stats),
    Route(Topics.GET_PARTITIONED_INTERNAL_STATS, get_partitioned_internal_stats),
    at_owner(Route(Messages.GET_LAST_ID, get_last_message_id)),
    at_owner(_TERMINATE),
    Route(Topics.TERMINATE_PARTITIONED, terminate_partitioned),
)
