"""REST calls about permissions: to produce, to consume, and to use a subscription."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json
from interpulse.model.changes import Decision
from interpulse.model.errors import InvalidRequest
from interpulse.model.operations import Grants
from interpulse.model.topics import TopicKind
from interpulse.rules import permissions as rules
from interpulse.rules.namespaces import NamespaceView


async def get_of_namespace(call: Call) -> Answer:
    permissions = (await call.context.namespaces.get_policies(call.namespace)).permissions
    return answer_json(permissions.to_json()["namespace_auth"])


async def grant(call: Call) -> None:
    await _decide(call, partial(rules.decide_grant, role=call.param("role"), actions=_texts(call, "Actions")))


async def get_of_subscriptions(call: Call) -> Answer:
    permissions = (await call.context.namespaces.get_policies(call.namespace)).permissions
    return answer_json(permissions.to_json()["subscription_auth_roles"])


async def grant_on_subscription(call: Call) -> None:
    rule = rules.decide_grant_on_subscription
    await _decide(call, partial(rule, subscription=call.subscription, roles=_texts(call, "Roles")))


async def revoke_on_subscription(call: Call) -> None:
    rule = rules.decide_revoke_on_subscription
    await _decide(call, partial(rule, subscription=call.subscription, role=call.param("role")))


async def get_of_topic(call: Call) -> dict[str, list[str]]:
    """Return the permissions of every role on a topic, from both levels."""
    rules.check_topic_exists(call.topic, exists=await _exists(call))
    permissions = (await call.context.namespaces.get_policies(call.topic.namespace_name)).permissions
    return {role: sorted(actions) for role, actions in permissions.granted_on(call.topic).items()}


async def grant_on_topic(call: Call) -> None:
    role, actions, exists = call.param("role"), _texts(call, "Actions"), await _exists(call)
    rule = partial(rules.decide_grant_on_topic, topic=call.topic, role=role, actions=actions, exists=exists)
    await call.context.namespaces.decide(call.topic.namespace_name, rule)


async def revoke_on_topic(call: Call) -> None:
    rule = partial(rules.decide_revoke_on_topic, topic=call.topic, role=call.param("role"), exists=await _exists(call))
    await call.context.namespaces.decide(call.topic.namespace_name, rule)


async def get_auth_mode(call: Call) -> str:
    policies = await call.context.namespaces.get_policies(call.namespace)
    return rules.check_subscription_auth_mode(policies.subscription_auth_mode)


async def set_auth_mode(call: Call) -> None:
    mode = call.json_or_none()
    if not isinstance(mode, str | None):
        raise InvalidRequest(f"subscriptionAuthMode must be a string, not {mode!r}"[:200])
    await _decide(call, partial(rules.decide_subscription_auth_mode, mode=mode))


async def _decide(call: Call, rule: Callable[[NamespaceView], Decision[None]]) -> None:
    await call.context.namespaces.decide(call.namespace, rule)


async def _exists(call: Call) -> bool:
    return (await call.context.lifecycle.existence(call.topic)).kind is not TopicKind.ABSENT


def _texts(call: Call, what: str) -> list[str]:
    if call.json_or_none() is None:
        raise InvalidRequest(f"{what} should not be null")
    return call.strings()


ROUTES: Final = (
    Route(Grants.GET, get_of_namespace),
    Route(Grants.GRANT, grant),
    Route(Grants.REVOKE, lambda call: _decide(call, partial(rules.decide_revoke, role=call.param("role")))),
    Route(Grants.GET_OF_SUBSCRIPTIONS, get_of_subscriptions),
    Route(Grants.GRANT_ON_SUBSCRIPTION, grant_on_subscription),
    Route(Grants.REVOKE_ON_SUBSCRIPTION, revoke_on_subscription),
    Route(Grants.GET_OF_TOPIC, get_of_topic),
    Route(Grants.GRANT_ON_TOPIC, grant_on_topic),
    Route(Grants.REVOKE_ON_TOPIC, revoke_on_topic),
    Route(Grants.GET_AUTH_MODE, get_auth_mode),
    Route(Grants.SET_AUTH_MODE, set_auth_mode),
)
