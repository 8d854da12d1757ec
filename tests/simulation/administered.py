"""What an operator administers: each thing with its requests, their effects, and the way to read it."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import TopicNotFound
from interpulse.model.ids import EARLIEST, LATEST, MessageId
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.model.schemas import SchemaInfo, SchemaType
from tests.simulation.possible import REFUSED, Effect, Value

SUBSCRIPTION: Final = "s"
_ROLE: Final = "visitor"
_PARTITIONS_MAX: Final = 6
_SCHEMAS: Final = 4


class Request(NamedTuple):
    """A request that changes a thing."""

    text: str
    send: Callable[[AdminClient], Awaitable[object]]
    effect: Effect
    is_resumed: bool = False
    """True if the next start of a broker continues it."""


class Administered(NamedTuple):
    """One thing, which is changed by one program."""

    name: str
    initial: Value
    read: Callable[[AdminClient], Awaitable[Value]]
    draw: Callable[[random.Random], Request]
    """Draw the next request."""


def things_of(namespace: str, topic: str, ids: Sequence[MessageId]) -> list[Administered]:
    """Return the things of a namespace. Its ``topic`` has the messages with these ids, and stays."""
    return [
        _time_to_live(namespace),
        _retention(namespace),
        _property(namespace),
        _permission(namespace),
        existing_namespace(f"{namespace}-other"),
        _topic(f"persistent://{namespace}/plain"),
        partitioned_topic(f"persistent://{namespace}/partitioned"),
        _topic_policy(topic),
        _schemas(topic),
        _subscription(topic, ids),
    ]


def _to(value: Value) -> Effect:
    return lambda before: value


def _create(value: Value) -> Effect:
    return lambda before: value if before is None else REFUSED


def _delete(before: Value) -> Value:
    return REFUSED if before is None else None


def _time_to_live(namespace: str) -> Administered:
    def draw(chance: random.Random) -> Request:
        if chance.random() < 0.2:
            return Request("remove", lambda admin: admin.namespaces.remove_message_ttl(namespace), _to(None))
        seconds = chance.randint(10_000, 20_000)
        return Request(
            f"set {seconds}", lambda admin: admin.namespaces.set_message_ttl(namespace, seconds), _to(seconds)
        )

    return Administered(
        f"time to live of {namespace}", None, lambda admin: admin.namespaces.message_ttl(namespace), draw
    )


def _retention(namespace: str) -> Administered:
    def draw(chance: random.Random) -> Request:
        if chance.random() < 0.2:
            return Request("remove", lambda admin: admin.namespaces.remove_retention(namespace), _to(None))
        policy = RetentionPolicies(-1, chance.randint(1000, 2000))
        return Request(f"set {policy}", lambda admin: admin.namespaces.set_retention(namespace, policy), _to(policy))

    return Administered(f"retention of {namespace}", None, lambda admin: admin.namespaces.retention(namespace), draw)


def _property(namespace: str) -> Administered:
    def draw(chance: random.Random) -> Request:
        if chance.random() < 0.2:
            return Request("remove", lambda admin: admin.namespaces.remove_property(namespace, "color"), _to(None))
        color = chance.choice(["red", "green", "blue"])
        return Request(
            f"set {color}", lambda admin: admin.namespaces.set_property(namespace, "color", color), _to(color)
        )

    return Administered(
        f"property of {namespace}", None, lambda admin: admin.namespaces.property(namespace, "color"), draw
    )


def _permission(namespace: str) -> Administered:
    async def read(admin: AdminClient) -> Value:
        granted = (await admin.permissions.of_namespace(namespace)).get(_ROLE)
        return None if granted is None else tuple(granted)

    def draw(chance: random.Random) -> Request:
        if chance.random() < 0.2:
            return Request("revoke", lambda admin: admin.permissions.revoke(namespace, _ROLE), _to(None))
        actions = tuple(sorted(chance.sample(["consume", "functions", "produce"], chance.randint(1, 3))))
        return Request(
            f"grant {actions}", lambda admin: admin.permissions.grant(namespace, _ROLE, actions), _to(actions)
        )

    return Administered(f"permissions of {namespace}", None, read, draw)


def existing_namespace(namespace: str) -> Administered:
    """Return a namespace that is created and deleted."""

    async def read(admin: AdminClient) -> Value:
        return True if namespace in await admin.namespaces.list(NamespaceName.parse(namespace).tenant) else None

    def draw(chance: random.Random) -> Request:
        if chance.random() < 0.5:
            return Request("create", lambda admin: admin.namespaces.create(namespace), _create(True))
        return Request("delete", lambda admin: admin.namespaces.delete(namespace), _delete, is_resumed=True)

    return Administered(namespace, None, read, draw)


def _topic(topic: str) -> Administered:
    async def read(admin: AdminClient) -> Value:
        return True if topic in await admin.topics.list(_namespace_of(topic)) else None

    def draw(chance: random.Random) -> Request:
        if chance.random() < 0.5:
            return Request("create", lambda admin: admin.topics.create(topic), _create(True))
        force = chance.random() < 0.5
        return Request("delete", lambda admin: admin.topics.delete(topic, force=force), _delete)

    return Administered(topic, None, read, draw)


def partitioned_topic(topic: str) -> Administered:
    """Return a partitioned topic, whose value is its count of partitions."""

    async def read(admin: AdminClient) -> Value:
        try:
            return (await admin.topics.partitioned_metadata(topic)).partitions
        except TopicNotFound:
            return None

    def draw(chance: random.Random) -> Request:
        kind, count = chance.choice(["create", "expand", "expand", "delete"]), chance.randint(2, _PARTITIONS_MAX)
        if kind == "create":
            return Request(
                f"create {count}", lambda admin: admin.topics.create_partitioned(topic, count), _create(count)
            )
        if kind == "delete":
            force = chance.random() < 0.5
            return Request(
                "delete", lambda admin: admin.topics.delete_partitioned(topic, force=force), _delete, is_resumed=True
            )
        return Request(f"expand {count}", lambda admin: admin.topics.expand(topic, count), _expand(count))

    return Administered(topic, None, read, draw)


def _expand(count: int) -> Effect:
    return lambda before: count if isinstance(before, int) and count >= before else REFUSED


def _topic_policy(topic: str) -> Administered:
    def draw(chance: random.Random) -> Request:
        if chance.random() < 0.2:
            return Request("remove", lambda admin: admin.topic_policies.remove(topic, "max_producers"), _to(None))
        count = chance.randint(100, 200)
        return Request(
            f"set {count}", lambda admin: admin.topic_policies.set(topic, "max_producers", count), _to(count)
        )

    return Administered(
        f"policy of {topic}", None, lambda admin: admin.topic_policies.get(topic, "max_producers"), draw
    )


def _schema(number: int) -> SchemaInfo:
    fields = [{"name": f"f{index}", "type": ["null", "string"], "default": None} for index in range(number + 1)]
    definition = json.dumps({"type": "record", "name": "r", "fields": fields}).encode()
    return SchemaInfo(SchemaType.JSON, definition)


def _schemas(topic: str) -> Administered:
    async def read(admin: AdminClient) -> Value:
        history = await admin.schemas.history(topic)
        return tuple(len(json.loads(version.schema.definition)["fields"]) - 1 for version in history)

    def draw(chance: random.Random) -> Request:
        if chance.random() < 0.2:
            return Request("delete", lambda admin: admin.schemas.delete(topic, force=True), _to(()))
        number = chance.randrange(_SCHEMAS)

        def upload(before: Any) -> Value:
            return before if number in before else (*before, number)

        return Request(f"upload {number}", lambda admin: admin.schemas.upload(topic, _schema(number)), upload)

    return Administered(f"schemas of {topic}", (), read, draw)


def _subscription(topic: str, ids: Sequence[MessageId]) -> Administered:
    """Return a subscription, whose value is its backlog."""

    async def read(admin: AdminClient) -> Value:
        stats = await admin.topics.stats(topic, precise_backlog=True)
        subscription = stats["subscriptions"].get(SUBSCRIPTION)
        return None if subscription is None else int(subscription["msgBacklog"])

    def draw(chance: random.Random) -> Request:
        kind = chance.choice(list(_SUBSCRIPTION_REQUESTS))
        return _SUBSCRIPTION_REQUESTS[kind](topic, ids, chance.randrange(len(ids)))

    return Administered(f"subscription of {topic}", None, read, draw)


def _moving(effect: Callable[[int], int]) -> Effect:
    return lambda backlog: effect(backlog) if isinstance(backlog, int) else REFUSED


Draw = Callable[[str, Sequence[MessageId], int], Request]


def _created(topic: str, ids: Sequence[MessageId], index: int) -> Request:
    position, backlog = [
        (MessageId(*EARLIEST), len(ids)),
        (MessageId(*LATEST), 0),
        (ids[index], len(ids) - index),
    ][index % 3]
    return Request(
        f"create at {position}",
        lambda admin: admin.topics.create_subscription(topic, SUBSCRIPTION, position),
        _create(backlog),
    )


def _deleted(topic: str, ids: Sequence[MessageId], index: int) -> Request:
    return Request("delete", lambda admin: admin.topics.delete_subscription(topic, SUBSCRIPTION), _delete)


def _skipped(topic: str, ids: Sequence[MessageId], index: int) -> Request:
    return Request(
        f"skip {index}",
        lambda admin: admin.topics.skip(topic, SUBSCRIPTION, index),
        _moving(lambda backlog: max(0, backlog - index)),
    )


def _all_skipped(topic: str, ids: Sequence[MessageId], index: int) -> Request:
    return Request("skip all", lambda admin: admin.topics.skip_all(topic, SUBSCRIPTION), _moving(lambda backlog: 0))


def _reset(topic: str, ids: Sequence[MessageId], index: int) -> Request:
    excluded = index % 2 == 0
    return Request(
        f"reset to {ids[index]} excluded={excluded}",
        lambda admin: admin.topics.reset_cursor_to_message(topic, SUBSCRIPTION, ids[index], excluded=excluded),
        _moving(lambda backlog: len(ids) - index - excluded),
    )


def _expired(topic: str, ids: Sequence[MessageId], index: int) -> Request:
    return Request(
        f"expire up to {ids[index]}",
        lambda admin: admin.topics.expire_upto(topic, SUBSCRIPTION, ids[index]),
        _moving(lambda backlog: min(backlog, len(ids) - index - 1)),
    )


_SUBSCRIPTION_REQUESTS: Final[dict[str, Draw]] = {
    "create": _created,
    "delete": _deleted,
    "skip": _skipped,
    "skip all": _all_skipped,
    "reset": _reset,
    "expire": _expired,
}


def _namespace_of(topic: str) -> str:
    return topic.partition("://")[2].rpartition("/")[0]
