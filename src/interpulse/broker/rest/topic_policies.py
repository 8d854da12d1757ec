"""REST calls about the single policies of a topic: one line of the table for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker.config import BrokerConfig
from interpulse.broker.rest.call import DONE, Answer, Call, Handler, Route, answer_json
from interpulse.model.policies import InactiveTopicPolicies, NamespacePolicies
from interpulse.model.topic_policies import TopicPolicies
from interpulse.rules.inactivity import check_inactive_topics, effective_inactive_topics

__all__ = ["ROUTES", "inactive_topics"]


@dataclass(frozen=True, slots=True)
class _Policy:
    """How one policy is read from a body, and what is in force where the topic says nothing."""

    path: str
    attribute: str
    parse: Callable[[Call], Any]
    applied: Callable[[TopicPolicies, NamespacePolicies, BrokerConfig], Any]


def inactive_topics(call: Call) -> InactiveTopicPolicies | None:
    """The policy in the body; null, or no body, takes it away."""
    return None if call.json_or_none() is None else check_inactive_topics(call.object())


_POLICIES: Final = (
    _Policy(
        "inactiveTopicPolicies",
        "inactive_topics",
        inactive_topics,
        lambda topic, namespace, config: effective_inactive_topics(topic, namespace, config.inactive_topics),
    ),
)


def _shower(policy: _Policy) -> Handler:
    async def show(call: Call) -> Answer:
        """What is set for the topic, or with ``applied`` what is in force."""
        stored = await call.rooms.topic_policies.find_of_existing(call.topic)
        value = getattr(stored, policy.attribute)
        if call.flag("applied"):
            namespace = await call.rooms.namespaces.get_policies(call.topic.namespace_name)
            value = policy.applied(stored, namespace, call.rooms.dynamic.config)
        return answer_json(value and value.to_json())

    return show


def _setter(policy: _Policy) -> Handler:
    async def store(call: Call) -> Answer:
        return await _replace(call, policy, policy.parse(call))

    return store


def _clearer(policy: _Policy) -> Handler:
    async def clear(call: Call) -> Answer:
        return await _replace(call, policy, None)

    return clear


async def _replace(call: Call, policy: _Policy, value: Any) -> Answer:
    """Store the new value; when the call returns it is in force in the loaded topic too."""
    name = call.topic
    await call.rooms.topic_policies.update(name, lambda policies: policies.changed(**{policy.attribute: value}))
    await call.rooms.registry.policies_changed(name.namespace_name, name.base)
    return DONE


_TOPIC: Final = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"

ROUTES: Final = tuple(
    Route(method, f"{_TOPIC}/{policy.path}", handler(policy))
    for policy in _POLICIES
    for method, handler in (("GET", _shower), ("POST", _setter), ("DELETE", _clearer))
)
