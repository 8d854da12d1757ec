"""REST calls about permissions: to produce, to consume, and to use a subscription."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json
from interpulse.model.errors import InvalidRequest
from interpulse.model.operations import Grants


async def get_of_namespace(call: Call) -> Answer:
    permissions = await call.context.grants.of_namespace(call.namespace)
    return answer_json(permissions.to_json()["namespace_auth"])


async def grant(call: Call) -> None:
    await call.context.grants.grant(call.namespace, call.param("role"), _texts(call, "Actions"))


async def get_of_subscriptions(call: Call) -> Answer:
    permissions = await call.context.grants.of_namespace(call.namespace)
    return answer_json(permissions.to_json()["subscription_auth_roles"])


async def grant_on_subscription(call: Call) -> None:
    await call.context.grants.grant_on_subscription(call.namespace, call.subscription, _texts(call, "Roles"))


async def revoke_on_subscription(call: Call) -> None:
    await call.context.grants.revoke_on_subscription(call.namespace, call.subscription, call.param("role"))


async def grant_on_topic(call: Call) -> None:
    await call.context.grants.grant_on_topic(call.topic, call.param("role"), _texts(call, "Actions"))


async def set_auth_mode(call: Call) -> None:
    mode = call.json_or_none()
    if not isinstance(mode, str | None):
        raise InvalidRequest(f"subscriptionAuthMode must be a string, not {mode!r}"[:200])
    await call.context.grants.set_auth_mode(call.namespace, mode)


def _texts(call: Call, what: str) -> list[str]:
    if call.json_or_none() is None:
        raise InvalidRequest(f"{what} should not be null")
    return call.strings()


ROUTES: Final = (
    Route(Grants.GET, get_of_namespace),
    Route(Grants.GRANT, grant),
    Route(Grants.REVOKE, lambda call: call.context.grants.revoke(call.namespace, call.param("role"))),
    Route(Grants.GET_OF_SUBSCRIPTIONS, get_of_subscriptions),
    Route(Grants.GRANT_ON_SUBSCRIPTION, grant_on_subscription),
    Route(Grants.REVOKE_ON_SUBSCRIPTION, revoke_on_subscription),
    Route(Grants.GET_OF_TOPIC, lambda call: call.context.grants.on_topic(call.topic)),
    Route(Grants.GRANT_ON_TOPIC, grant_on_topic),
    Route(Grants.REVOKE_ON_TOPIC, lambda call: call.context.grants.revoke_on_topic(call.topic, call.param("role"))),
    Route(Grants.GET_AUTH_MODE, lambda call: call.context.grants.auth_mode(call.namespace)),
    Route(Grants.SET_AUTH_MODE, set_auth_mode),
)
