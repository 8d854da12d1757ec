"""The loading of topics that a path names: one topic, or every partition of a partitioned one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.rest.http.call import Call
from interpulse.in_turns import sorted_in_turns
from interpulse.model.errors import OperationNotAllowed
from interpulse.model.names import PERSISTENT, Domain, TopicName
from interpulse.model.topics import Requester, TopicKind


async def open_topic(call: Call, name: TopicName) -> AnyTopic:
    """Load one topic that exists; raises TopicNotFound and TopicInconsistent."""
    return await call.context.registry.open(name, by=Requester.ADMIN, create=False)


async def open_persistent(call: Call, name: TopicName) -> Topic:
    """Return the topic with a log. Raise OperationNotAllowed if it is non-persistent; see `open_topic`."""
    topic = await open_topic(call, name)
    if not isinstance(topic, Topic):
        raise OperationNotAllowed(f"{name} is not persistent: it keeps no messages")
    return topic


async def open_single(call: Call, operation: str) -> Topic:
    """Return the topic of the path. Raise OperationNotAllowed if it has several logs or none."""
    name = call.topic
    if not name.is_persistent:
        raise OperationNotAllowed(f"{operation} on a non-persistent topic is not allowed")
    if not name.is_partition and await call.context.lifecycle.partitions(name, create=False):
        raise OperationNotAllowed(f"{operation} on a partitioned topic is not allowed, ask one of its partitions")
    return await open_persistent(call, name)


async def open_each(call: Call) -> AsyncIterator[AnyTopic]:
    """Yield the open topics that `each_name` names."""
    async for name in each_name(call):
        yield await open_topic(call, name)


async def each_name(call: Call) -> AsyncIterator[TopicName]:
    """Yield the topic of the path, or its existing partitions, including any that are added meanwhile."""
    name = call.topic
    if name.is_partition or await call.context.lifecycle.partitions(name, create=False) == 0:
        yield name
        return
    begin = 0
    while (end := await call.context.lifecycle.partitions(name, create=False)) > begin:
        for partition in await _existing(call, [name.partition(index) for index in range(begin, end)]):
            yield partition
        begin = end


async def existing_partitions(call: Call, base: TopicName) -> list[TopicName]:
    """Return the partitions that have a record or are loaded at any broker."""
    partitions = await call.context.lifecycle.partitions(base, create=False)
    names = [base.partition(index) for index in range(partitions)]
    if base.is_persistent or call.context.others is None:
        return await _existing(call, names)
    elsewhere = await call.context.others.loaded_topics(base.namespace_name, include_system=True)
    loaded = {*await _existing(call, names), *elsewhere}
    return [name for name in names if name in loaded]


async def listed_topics(
    call: Call, domain: Domain, *, include_system: bool, bundle: str | None = None
) -> list[TopicName]:
    """Return the topics of the namespace at all brokers; with ``bundle``, other brokers list only that bundle."""
    names = await call.context.lifecycle.list_topics(call.namespace, domain, include_system=include_system)
    if domain == PERSISTENT or call.context.others is None:
        return names
    elsewhere = await call.context.others.loaded_topics(call.namespace, bundle, include_system=include_system)
    return await sorted_in_turns({*names, *elsewhere}, key=str)


async def _existing(call: Call, names: Sequence[TopicName]) -> list[TopicName]:
    if not call.topic.is_persistent:
        return [name for name in names if call.context.registry.get(name) is not None]
    kinds = [(await call.context.lifecycle.existence(name)).kind for name in names]
    return [name for name, kind in zip(names, kinds, strict=True) if kind is not TopicKind.ABSENT]
