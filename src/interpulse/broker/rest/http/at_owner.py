"""Calls about one topic, answered by the broker that owns its bundle. Other brokers redirect to the owner.

A call about a partitioned topic asks the owner of each partition and joins the answers. A broker alone answers itself.
Calls about a namespace that a peer cluster serves are redirected to that cluster.
Source: docs/reference/cluster-protocol.md#redirects.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Final
from urllib.parse import urlencode

from interpulse.broker.live.registry.topic_tasks import AnyTopic
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.ownership.ownership import NO_OPTIONS, LookupOptions
from interpulse.broker.rest.http.call import DONE, Answer, Call, Route, answer_json, answer_of
from interpulse.in_turns import sorted_in_turns
from interpulse.model.errors import NotFound, OperationNotAllowed, PreconditionFailed
from interpulse.model.names import PERSISTENT, Domain, TopicName, encode_local_name
from interpulse.model.operations import TOPIC_PATH, Operation
from interpulse.model.topics import Requester, TopicKind
from interpulse.rules.lookup import LookupTarget

_ASKED_AT_ONCE: Final = 16

Join = Callable[[Mapping[TopicName, Any]], Answer]
"""The answer for a partitioned topic, made of the decoded answers of its partitions."""


def at_owner(route: Route, join: Join | None = None) -> Route:
    """Return the route at the owner of the topic. Without ``join`` any broker answers for a partitioned topic."""

    @wraps(route.handler)
    async def answer(call: Call) -> object:
        if call.context.others is None:
            return await route.handler(call)
        name = call.topic
        if not name.is_partition and await _is_partitioned(call, name):
            if join is None:
                return await route.handler(call)
            names = await existing_partitions(call, name)
            return join(await answers_of_partitions(call, names, route))
        options = LookupOptions(call.flag("authoritative"))
        target = await call.context.lookups.find(name, options)
        if _is_here(call, target):
            return await route.handler(call)
        return redirect_to(call, target)

    return Route(route.operation, answer)


def or_at_peer(route: Route) -> Route:
    """Return the route of a topic, which redirects (307) to the peer cluster that serves the namespace.

    Real Pulsar redirects reads, but answers creations with 503 and no address.
    """
    below = route.operation.path.removeprefix(TOPIC_PATH)

    @wraps(route.handler)
    async def answer(call: Call) -> object:
        peer = await call.context.lookups.peer(call.namespace)
        if peer is None or not (peer.web_url or peer.web_url_tls):
            return await route.handler(call)
        query = f"?{urlencode(call.query)}" if call.query else ""
        location = f"{peer.web_address(tls=call.tls)}/admin/v2/{call.topic.rest_path}{below}{query}"
        return Answer(307, headers={"Location": location})

    return Route(route.operation, answer)


def redirect_to(call: Call, target: LookupTarget) -> Answer:
    """Redirect (307) to this path and query at that broker, ``authoritative`` while the bundle has no owner."""
    query = {key: value for key, value in call.query.items() if key != "authoritative"}
    if target.redirect:
        query["authoritative"] = str(target.authoritative).lower()
    location = f"{target.web_address(tls=call.tls)}{call.path}{f'?{urlencode(query)}' if query else ''}"
    return Answer(307, headers={"Location": location})


def by_partition(values: Mapping[TopicName, Any]) -> Answer:
    """Return an empty answer: the operation is done at all partitions."""
    return DONE


def joined_lists(values: Mapping[TopicName, Any]) -> Answer:
    """Return the items of all partitions without duplicates."""
    return answer_json(sorted({item for value in values.values() for item in value}))


def joined_objects(values: Mapping[TopicName, Any]) -> Answer:
    """Return the fields of all partitions in one object."""
    joined: dict[str, Any] = {}
    for value in values.values():
        joined |= value
    return answer_json(joined)


async def answers_of_partitions(call: Call, names: Sequence[TopicName], route: Route) -> dict[TopicName, Any]:
    """Return the answer of each partition to ``route``. All are asked before the first failure is raised."""
    permits = asyncio.Semaphore(_ASKED_AT_ONCE)

    async def ask(name: TopicName) -> Any:
        async with permits:
            target = await call.context.lookups.find(name, NO_OPTIONS)
            params = {**call.params, "topic": encode_local_name(name.local_name)}
            if _is_here(call, target):
                answer = answer_of(await route.handler(replace(call, params=params)))
                return json.loads(answer.body) if answer.body else None
            return await _asked(call, target, route.operation, params)

    answers = await asyncio.gather(*map(ask, names), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return dict(zip(names, answers, strict=True))


async def _asked(call: Call, target: LookupTarget, operation: Operation, params: Mapping[str, str]) -> Any:
    others = call.context.others
    assert others is not None, "only a cluster has partitions elsewhere"
    if not target.broker_id:  # callers must not use this broker's own permissions
        peer = target.web_url or target.web_url_tls
        raise PreconditionFailed(f"Namespace {call.namespace} is served by a peer cluster, ask that one: {peer}")
    query = {key: value for key, value in call.query.items() if key != "authoritative"}
    if target.redirect:
        query["authoritative"] = str(target.authoritative).lower()
    path = operation.path
    for name, value in params.items():
        path = path.replace(f"{{{name}}}", value)
    return await others.ask(target, operation.method, path, kind="topic", query=query, body=call.json_or_none())


def _is_here(call: Call, target: LookupTarget) -> bool:
    return not target.redirect and target.broker_id == call.context.this_broker.broker_id


async def _is_partitioned(call: Call, name: TopicName) -> bool:
    try:
        return await call.context.lifecycle.partitions(name, create=False) > 0
    except NotFound:
        return False


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
