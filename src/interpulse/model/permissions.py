"""Principals, permissions, and the grants of a namespace; ``auth_policies`` of Pulsar's JSON.

The operations carry Pulsar's names, because refusals show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from interpulse.model.names import TopicName

SUBSCRIPTION_AUTH_NONE: Final = "None"
SUBSCRIPTION_AUTH_PREFIX: Final = "Prefix"
SUBSCRIPTION_AUTH_MODES: Final = (SUBSCRIPTION_AUTH_NONE, SUBSCRIPTION_AUTH_PREFIX)


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated client and, behind a proxy, the client that it speaks for."""

    role: str
    original: str | None = None

    @property
    def roles(self) -> tuple[str, ...]:
        """All roles that need the permission: a proxy may do for a client only what both may."""
        return (self.role,) if self.original is None else (self.role, self.original)


class Action(StrEnum):
    """The actions that can be granted."""

    PRODUCE = "produce"
    CONSUME = "consume"
    FUNCTIONS = "functions"
    SOURCES = "sources"
    SINKS = "sinks"
    PACKAGES = "packages"


class NamespaceOperation(StrEnum):
    """The operations on a namespace as a whole, apart from its policies."""

    CREATE_TOPIC = "CREATE_TOPIC"
    GET_TOPICS = "GET_TOPICS"
    DELETE_TOPIC = "DELETE_TOPIC"
    GET_BUNDLE = "GET_BUNDLE"
    CLEAR_BACKLOG = "CLEAR_BACKLOG"
    UNSUBSCRIBE = "UNSUBSCRIBE"
    GET_PERMISSION = "GET_PERMISSION"
    GRANT_PERMISSION = "GRANT_PERMISSION"
    REVOKE_PERMISSION = "REVOKE_PERMISSION"


class TopicOperation(StrEnum):
    """The operations on one topic, apart from its policies."""

    LOOKUP = "LOOKUP"
    PRODUCE = "PRODUCE"
    CONSUME = "CONSUME"
    SUBSCRIBE = "SUBSCRIBE"
    UNSUBSCRIBE = "UNSUBSCRIBE"
    GET_SUBSCRIPTIONS = "GET_SUBSCRIPTIONS"
    GET_STATS = "GET_STATS"
    GET_METADATA = "GET_METADATA"
    UPDATE_METADATA = "UPDATE_METADATA"
    DELETE_METADATA = "DELETE_METADATA"
    GET_BACKLOG_SIZE = "GET_BACKLOG_SIZE"
    PEEK_MESSAGES = "PEEK_MESSAGES"
    RESET_CURSOR = "RESET_CURSOR"
    SKIP = "SKIP"
    EXPIRE_MESSAGES = "EXPIRE_MESSAGES"
    SET_REPLICATED_SUBSCRIPTION_STATUS = "SET_REPLICATED_SUBSCRIPTION_STATUS"
    GET_REPLICATED_SUBSCRIPTION_STATUS = "GET_REPLICATED_SUBSCRIPTION_STATUS"
    COMPACT = "COMPACT"
    OFFLOAD = "OFFLOAD"
    TERMINATE = "TERMINATE"
    TRIM_TOPIC = "TRIM_TOPIC"
    UNLOAD = "UNLOAD"


@dataclass(frozen=True, slots=True)
class Permissions:
    """The grants of a namespace: to roles in all of it, on single topics, and on subscriptions."""

    namespace: Mapping[str, frozenset[str]] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """Grants by the full name of the topic; those on a base name apply to its partitions."""
    subscriptions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Roles that may use a subscription. One that is not listed is open to all roles that may consume."""

    def on_topic(self, topic: TopicName, role: str) -> frozenset[str]:
        """Return the actions granted to a role on a topic, at any level."""
        granted = self.namespace.get(role, _NOTHING) | self._of_topic(str(topic), role)
        return granted | self._of_topic(str(topic.base), role) if topic.is_partition else granted

    def granted_on(self, topic: TopicName) -> dict[str, frozenset[str]]:
        """Return every role with a grant on a topic, and its actions."""
        names = {str(topic), str(topic.base)}
        roles = set(self.namespace).union(*(self.topics.get(name, {}) for name in names))
        return {role: self.on_topic(topic, role) for role in sorted(roles)}

    def grant(self, role: str, actions: Iterable[str]) -> Permissions:
        """Return the grants with these actions for a role in the whole namespace, in place of its earlier ones."""
        return replace(self, namespace={**self.namespace, role: frozenset(actions)})

    def revoke(self, role: str) -> Permissions:
        """Return the grants without those of a role in the whole namespace; its grants on single topics stay."""
        return replace(self, namespace=_without(self.namespace, role))

    def grant_topic(self, topics: Iterable[TopicName], role: str, actions: Iterable[str]) -> Permissions:
        """Return the grants with these actions for a role on these topics, in place of its earlier ones there."""
        granted = frozenset(actions)
        changed = {str(topic): {**self.topics.get(str(topic), {}), role: granted} for topic in topics}
        return replace(self, topics={**self.topics, **changed})

    def revoke_topic(self, topics: Iterable[TopicName], role: str) -> Permissions:
        """Return the grants without those of a role on these topics."""
        changed = {str(topic): _without(self.topics.get(str(topic), {}), role) for topic in topics}
        remaining = {name: roles for name, roles in {**self.topics, **changed}.items() if roles}
        return replace(self, topics=remaining)

    def without_topic(self, topic: TopicName) -> Permissions:
        """Return the grants without those on this topic and its partitions, for a new topic of its name."""
        name, partition = str(topic), f"{topic}-partition-"
        gone = {topic for topic in self.topics if topic == name or topic.removeprefix(partition).isdecimal()}
        remaining = {topic: roles for topic, roles in self.topics.items() if topic not in gone}
        return self if len(remaining) == len(self.topics) else replace(self, topics=remaining)

    def grant_subscription(self, subscription: str, roles: Iterable[str]) -> Permissions:
        """Return the grants with these roles as the only users of a subscription."""
        return replace(self, subscriptions={**self.subscriptions, subscription: frozenset(roles)})

    def revoke_subscription(self, subscription: str, role: str) -> Permissions:
        """Return the grants without a role on a subscription. Without roles it is open again, as in Pulsar."""
        remaining = self.subscriptions.get(subscription, _NOTHING) - {role}
        return replace(self, subscriptions={**self.subscriptions, subscription: remaining})

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace_auth": _lists(self.namespace),
            "destination_auth": {name: _lists(roles) for name, roles in self.topics.items()},
            "subscription_auth_roles": _lists(self.subscriptions),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Permissions:
        """Parse Pulsar's JSON. Raise ValueError for values of another kind."""
        topics = body.get("destination_auth") or {}
        if not isinstance(topics, Mapping):
            raise ValueError(f"destination_auth must be an object, not {topics!r}")
        return cls(
            namespace=_sets("namespace_auth", body.get("namespace_auth")),
            topics={name: _sets("destination_auth", roles) for name, roles in topics.items()},
            subscriptions=_sets("subscription_auth_roles", body.get("subscription_auth_roles")),
        )

    def _of_topic(self, name: str, role: str) -> frozenset[str]:
        roles = self.topics.get(name)
        return _NOTHING if roles is None else roles.get(role, _NOTHING)


NO_PERMISSIONS: Final = Permissions()

_NOTHING: Final[frozenset[str]] = frozenset()


def _without(roles: Mapping[str, frozenset[str]], role: str) -> dict[str, frozenset[str]]:
    return {name: granted for name, granted in roles.items() if name != role}


def _lists(sets: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    return {name: sorted(members) for name, members in sets.items()}


def _sets(name: str, value: Any) -> dict[str, frozenset[str]]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(members, list) for members in value.values()):
        raise ValueError(f"{name} must be an object of arrays, not {value!r}")
    if not all(isinstance(member, str) for members in value.values() for member in members):
        raise ValueError(f"{name} must hold texts")
    return {key: frozenset(members) for key, members in value.items()}
