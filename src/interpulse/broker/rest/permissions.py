"""REST calls about permissions: to produce, to consume, and to use a subscription."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.http.call import DONE, NAMESPACE_PATH, TOPIC_PATH, Answer, Call, Route, answer_json
from interpulse.broker.rest.http.required_permissions import on_namespace, on_policy, tenant_admin
from interpulse.model.errors import InvalidRequest
from interpulse.model.permissions import NamespaceOperation


async def get_of_namespace(call: Call) -> Answer:
    permissions = await call.context.grants.of_namespace(call.namespace)
    return answer_json(permissions.to_json()["namespace_auth"])


async def grant(call: Call) -> Answer:
    await call.context.grants.grant(call.namespace, call.param("role"), _texts(call, "Actions"))
    return DONE


async def revoke(call: Call) -> Answer:
    await call.context.grants.revoke(call.namespace, call.param("role"))
    return DONE


async def get_of_subscriptions(call: Call) -> Answer:
    permissions = await call.context.grants.of_namespace(call.namespace)
    return answer_json(permissions.to_json()["subscription_auth_roles"])


async def grant_on_subscription(call: Call) -> Answer:
    await call.context.grants.grant_on_subscription(call.namespace, call.subscription, _texts(call, "Roles"))
    return DONE


async def revoke_on_subscription(call: Call) -> Answer:
    await call.context.grants.revoke_on_subscription(call.namespace, call.subscription, call.param("role"))
    return DONE


async def get_of_topic(call: Call) -> Answer:
    return answer_json(await call.context.grants.on_topic(call.topic))


async def grant_on_topic(call: Call) -> Answer:
    await call.context.grants.grant_on_topic(call.topic, call.param("role"), _texts(call, "Actions"))
    return DONE


async def revoke_on_topic(call: Call) -> Answer:
    await call.context.grants.revoke_on_topic(call.topic, call.param("role"))
    return DONE


async def get_auth_mode(call: Call) -> Answer:
    return answer_json(await call.context.grants.auth_mode(call.namespace))


async def set_auth_mode(call: Call) -> Answer:
    mode = call.json_or_none()
    if not isinstance(mode, str | None):
        raise InvalidRequest(f"subscriptionAuthMode must be a string, not {mode!r}"[:200])
    await call.context.grants.set_auth_mode(call.namespace, mode)
    return DONE


def _texts(call: Call, what: str) -> list[str]:
    if call.json_or_none() is None:
        raise InvalidRequest(f"{what} should not be null")
    return call.strings()


_GRANTS: Final = f"{NAMESPACE_PATH}/permissions"
_TOPIC_GRANTS: Final = f"{TOPIC_PATH}/permissions"

_GRANT_PERMISSION: Final = on_namespace(NamespaceOperation.GRANT_PERMISSION)
_REVOKE_PERMISSION: Final = on_namespace(NamespaceOperation.REVOKE_PERMISSION)

ROUTES: Final = (
    Route("GET", _GRANTS, get_of_namespace, on_namespace(NamespaceOperation.GET_PERMISSION)),
    Route("POST", f"{_GRANTS}/{{role}}", grant, _GRANT_PERMISSION),
    Route("DELETE", f"{_GRANTS}/{{role}}", revoke, _REVOKE_PERMISSION),
    Route("GET", f"{_GRANTS}/subscription", get_of_subscriptions, on_namespace(NamespaceOperation.GET_PERMISSION)),
    Route("POST", f"{_GRANTS}/subscription/{{subscription}}", grant_on_subscription, _GRANT_PERMISSION),
    Route("DELETE", f"{_GRANTS}/{{subscription}}/{{role}}", revoke_on_subscription, _REVOKE_PERMISSION),
    Route("GET", _TOPIC_GRANTS, get_of_topic, tenant_admin),
    Route("POST", f"{_TOPIC_GRANTS}/{{role}}", grant_on_topic, tenant_admin),
    Route("DELETE", f"{_TOPIC_GRANTS}/{{role}}", revoke_on_topic, tenant_admin),
    Route("GET", f"{NAMESPACE_PATH}/subscriptionAuthMode", get_auth_mode, on_policy),
    Route("POST", f"{NAMESPACE_PATH}/subscriptionAuthMode", set_auth_mode, on_policy),
)
