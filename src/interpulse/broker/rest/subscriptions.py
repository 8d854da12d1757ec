"""REST calls about the subscriptions of a topic, or of all partitions of a partitioned one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, Final

from interpulse.broker.live.cursor import Acknowledgements
from interpulse.broker.live.registry import backlog_operations
from interpulse.broker.live.registry.backlog_operations import expire_everywhere, expire_older, expire_upto
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.rest.http.at_owner import (
    answers_of_partitions,
    at_owner,
    by_partition,
    each_name,
    joined_lists,
    joined_objects,
    open_each,
    open_persistent,
    open_single,
)
from interpulse.broker.rest.http.bodies import ACKNOWLEDGEMENTS, MESSAGE_POSITION, NEW_SUBSCRIPTION, RESET_POSITION
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json
from interpulse.broker.rest.http.fields import MASK, RANGE, checked_value
from interpulse.model.errors import AlreadyExists, Conflict, InvalidRequest, SubscriptionNotFound
from interpulse.model.ids import LATEST, MessageId
from interpulse.model.names import TopicName
from interpulse.model.operations import Subscriptions
from interpulse.model.topics import Requester


async def list_subscriptions(call: Call) -> Answer:
    """List subscriptions without loading topics, because tools ask for all topics of a cluster."""
    registry = call.context.registry
    names = {name async for topic in each_name(call) for name in await registry.subscription_names(topic)}
    return answer_json(sorted(names))


async def create_subscription(call: Call) -> None:
    """Create a subscription. Creates the topic if a client could; each partition at its own broker."""
    name = call.topic
    if not name.is_persistent:
        raise InvalidRequest("Create subscription on non-persistent topic can only be done through client")
    body = call.object_or_empty(NEW_SUBSCRIPTION)
    position = _position(body) if body else MessageId(*LATEST)
    properties = body.get("properties") or {}
    replicated = call.flag("replicated")
    if replicated:
        check_replicated_enabled(call)

    async def create(names: Sequence[TopicName]) -> None:
        if call.context.others is not None and name not in names:
            await answers_of_partitions(call, names, _CREATE)
            return
        for topic_name in names:
            topic = await call.context.registry.open(topic_name, by=Requester.ADMIN, create=True)
            await topic.create_subscription(
                call.subscription, position=position, properties=properties, replicate_state=replicated
            )

    count = await call.context.lifecycle.partitions_to_subscribe(name)
    await create([name.partition(index) for index in range(count)] or [name])
    while (grown := await call.context.lifecycle.partitions(name, create=False)) > count:
        for index in range(count, grown):
            with suppress(AlreadyExists):  # a concurrent expansion created it
                await create([name.partition(index)])
        count = grown


async def delete_subscription(call: Call) -> None:
    force = call.flag("force")
    count = await call.context.lifecycle.partitions(call.topic, create=False)
    async for topic in open_each(call):
        came_meanwhile = 0 < count <= topic.name.partition_index  # created with or without the subscription
        with suppress(SubscriptionNotFound) if came_meanwhile else nullcontext():
            await topic.delete_subscription(call.subscription, force=force)


async def reset_to_time(call: Call) -> None:
    time_ms = call.number("time")
    await _move_each(call, lambda topic: topic.subscription(call.subscription).seek_to_time(time_ms))


async def reset_to_message(call: Call) -> None:
    """Continue with a message or, in a batch, with the message of the index; with ``excluded`` after it."""
    body = call.object(RESET_POSITION)
    target, excluded = _message(body), body.get("excluded", False)
    await _move_each(call, lambda topic: backlog_operations.reset(topic, call.subscription, target, excluded=excluded))


async def skip_all(call: Call) -> None:
    async def clear(topic: Topic) -> None:
        backlog_operations.clear(topic, call.subscription)

    await _move_each(call, clear)


async def skip(call: Call) -> None:
    """Skip messages of one unpartitioned topic: for partitions the count would be ambiguous."""
    count = call.number("count")
    topic = await open_single(call, "Skip messages")
    backlog_operations.skip(topic, call.subscription, count)
    await _when_settled(call, [topic])


async def expire_by_time(call: Call) -> None:
    seconds, subscription = call.number("seconds"), call.subscription
    topics = [await open_persistent(call, topic.name) async for topic in open_each(call)]
    await expire_everywhere(partial(expire_older, topic, subscription, seconds) for topic in topics)
    await _when_settled(call, topics)


async def expire_by_position(call: Call) -> None:
    """Expire messages up to and including an entry; with ``excluded`` even the one after it, as in Pulsar."""
    body = call.object(RESET_POSITION)
    target, excluded = _message(body), body.get("excluded", False)
    topic = await open_single(call, "Expire message at position")
    last = await backlog_operations.behind(topic, target) if excluded else target
    expire_upto(topic, call.subscription, last.position)
    await _when_settled(call, [topic])


async def expire_all_by_time(call: Call) -> None:
    """Expire messages of all subscriptions. Replication cursors stay, because their backlog is needed."""
    seconds = call.number("seconds")
    topics = [await open_persistent(call, topic.name) async for topic in open_each(call)]
    await expire_everywhere(
        partial(expire_older, topic, name, seconds) for topic in topics for name in topic.backlog_names()
    )
    for topic in topics:
        await topic.flush()


async def analyze_backlog(call: Call) -> Answer:
    """Analyse the backlog of one topic from the next message on, or from the one in the body."""
    start = None if call.json_or_none() is None else _position(call.object(MESSAGE_POSITION)).position
    topic = await open_single(call, "Analyze backlog")
    config = call.context.dynamic.config
    limits = backlog_operations.ScanLimits(
        config.subscription_backlog_scan_max_entries, config.subscription_backlog_scan_max_time_ms
    )
    return answer_json((await backlog_operations.analyze(topic, call.subscription, start, limits)).to_json())


async def get_backlog_size(call: Call) -> Answer:
    """Return the bytes after the message in the body."""
    position = _position(call.object(MESSAGE_POSITION)).position
    return answer_json(backlog_operations.bytes_behind(await open_single(call, "Calculate backlog size"), position))


async def get_replicated_status(call: Call) -> Answer:
    """Return, for each topic with the subscription, True if it is marked as replicated."""
    states = {}
    async for topic in open_each(call):
        found = (await open_persistent(call, topic.name)).subscription(call.subscription)
        states[str(topic.name)] = found.replicate_state
    return answer_json(states)


async def set_replicated_status(call: Call) -> None:
    replicated = call.boolean()
    check_replicated_enabled(call)
    async for opened in open_each(call):
        topic = await open_persistent(call, opened.name)
        subscription = topic.subscription(call.subscription)
        subscription.replicate_state_changed(replicated)
        await topic.store_cursor(subscription)


def check_replicated_enabled(call: Call) -> None:
    """Raise Conflict if the broker has replicated subscriptions turned off."""
    if not call.context.dynamic.config.enable_replicated_subscriptions:
        raise Conflict("Replicated subscriptions are turned off: enableReplicatedSubscriptions=false")


async def acknowledge(call: Call) -> Answer:
    """Acknowledge what consumers acknowledged on another cluster; return the number of entries with something new."""
    body = call.object(ACKNOWLEDGEMENTS)
    check_replicated_enabled(call)
    topic, subscription = await open_single(call, "Acknowledge"), call.subscription
    expected = body.get("resets")
    reset_as = body.get("resetAs")
    if reset_as is not None and ("markDelete" not in body or body.get("ranges") or body.get("masks")):
        raise InvalidRequest("A reset (resetAs) has a markDelete and neither ranges nor masks")
    done = await backlog_operations.acknowledge(
        topic, subscription, _acknowledgements(body), resets=expected, reset_as=reset_as
    )
    if done.refused:
        reason = f"Subscription {subscription} of topic {topic.name} has been reset {done.resets} times, not {expected}"
        return answer_json({"reason": f"{reason}; nothing was acknowledged", "resets": done.resets}, status=409)
    call.context.instruments.synced_acknowledgements[str(topic.name.namespace_name)] += done.new
    return answer_json({"new": done.new})


def _acknowledgements(body: dict[str, Any]) -> Acknowledgements:
    return Acknowledgements(
        body.get("markDelete"),
        [checked_value(RANGE, "A range", item) for item in body.get("ranges", ())],
        [checked_value(MASK, "A mask", item) for item in body.get("masks", ())],
    )


async def get_properties(call: Call) -> Answer:
    """Return the properties, merged over the partitions of a partitioned topic."""
    properties: dict[str, str] = {}
    async for topic in open_each(call):
        properties |= (await open_persistent(call, topic.name)).subscription(call.subscription).properties
    return answer_json(properties)


async def set_properties(call: Call) -> None:
    properties = call.properties()
    async for opened in open_each(call):
        topic = await open_persistent(call, opened.name)
        subscription = topic.subscription(call.subscription)
        subscription.properties_changed(properties)
        await topic.store_cursor(subscription)


async def _move_each(call: Call, move: Callable[[Topic], Awaitable[None]]) -> None:
    """Move the cursor in every partition, and answer once the move is in force."""
    moved: list[Topic] = []
    async for topic in open_each(call):
        moved.append(await open_persistent(call, topic.name))
        await move(moved[-1])
    await _when_settled(call, moved)


async def _when_settled(call: Call, topics: Iterable[Topic]) -> None:
    """Answer once the cursors are durable, and no skipped message is being replicated any more."""
    for topic in topics:
        if (found := topic.subscriptions.get(call.subscription)) is not None:
            await found.settled()


def _position(body: dict[str, Any]) -> MessageId:
    """Return the entry of a message; as in Pulsar, a subscription cannot begin inside a batch."""
    return _message(body)._replace(batch_index=-1)


def _message(body: dict[str, Any]) -> MessageId:
    if "ledgerId" not in body or "entryId" not in body:
        raise InvalidRequest("A message id has the integers ledgerId and entryId")
    return MessageId(body["ledgerId"], body["entryId"], body.get("partitionIndex", -1), body.get("batchIndex", -1))


_CREATE: Final = Route(Subscriptions.CREATE, create_subscription)

ROUTES: Final = (
    at_owner(_CREATE),
    at_owner(Route(Subscriptions.SKIP, skip)),
    at_owner(Route(Subscriptions.EXPIRE_UPTO, expire_by_position)),
    at_owner(Route(Subscriptions.ANALYZE_BACKLOG, analyze_backlog)),
    at_owner(Route(Subscriptions.GET_BACKLOG_SIZE, get_backlog_size)),
    at_owner(Route(Subscriptions.ACKNOWLEDGE, acknowledge)),
    at_owner(Route(Subscriptions.DELETE, delete_subscription), by_partition),
    at_owner(Route(Subscriptions.RESET_TO_TIME, reset_to_time), by_partition),
    at_owner(Route(Subscriptions.RESET_TO_MESSAGE, reset_to_message), by_partition),
    at_owner(Route(Subscriptions.SKIP_ALL, skip_all), by_partition),
    at_owner(Route(Subscriptions.EXPIRE, expire_by_time), by_partition),
    at_owner(Route(Subscriptions.EXPIRE_ALL, expire_all_by_time), by_partition),
    at_owner(Route(Subscriptions.SET_PROPERTIES, set_properties), by_partition),
    at_owner(Route(Subscriptions.SET_REPLICATED, set_replicated_status), by_partition),
    at_owner(Route(Subscriptions.LIST, list_subscriptions), joined_lists),
    at_owner(Route(Subscriptions.IS_REPLICATED, get_replicated_status), joined_objects),
    at_owner(Route(Subscriptions.GET_PROPERTIES, get_properties), joined_objects),
)
