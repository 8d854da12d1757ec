"""What every route needs: asked once, before its handler runs and whether what it names exists or not.

A route about a policy of a namespace or a topic needs no line here: by its path it is for the administrators of the
tenant. Every other route has its line; one without is for super users alone. Statuses and texts are Pulsar's: 401 where
a topic, a tenant or the cluster is concerned, 403 for namespaces and policies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from interpulse.broker.access.authorization import Authorization
from interpulse.broker.rest.http.call import Call, Route
from interpulse.model.errors import AuthorizationError, TenantNotFound, Unauthorized
from interpulse.model.names import PERSISTENT, TopicName
from interpulse.model.permissions import NamespaceOperation, Principal, TopicOperation

__all__ = ["NEEDS", "OPEN", "Need", "is_declared", "need_of"]

Need = Callable[[Authorization, Principal, Call], Awaitable[None]]


async def OPEN(authorization: Authorization, principal: Principal, call: Call) -> None:
    """For everybody, without credentials."""


async def anybody(authorization: Authorization, principal: Principal, call: Call) -> None:
    """For everybody who was let in."""


async def super_user(authorization: Authorization, principal: Principal, call: Call) -> None:
    authorization.check_super_user(principal)


async def tenant_admin(authorization: Authorization, principal: Principal, call: Call) -> None:
    await authorization.check_tenant_admin(principal, call.param("tenant"))


async def tenant_itself(authorization: Authorization, principal: Principal, call: Call) -> None:
    """For super users, and for the administrators a tenant has; nobody else learns whether it exists."""
    try:
        await authorization.check_tenant_admin(principal, call.param("tenant"))
    except TenantNotFound:
        raise Unauthorized("Don't have permission to administrate resources on this tenant") from None


def on_namespace(operation: NamespaceOperation) -> Need:
    async def check(authorization: Authorization, principal: Principal, call: Call) -> None:
        subscription = call.param("subscription", form_encoded=True) if "subscription" in call.params else None
        await authorization.check_namespace(principal, operation, call.namespace, subscription)

    return check


def on_topic(operation: TopicOperation) -> Need:
    async def check(authorization: Authorization, principal: Principal, call: Call) -> None:
        subscription = call.subscription if "subscription" in call.params else None
        await authorization.check_topic(principal, operation, _topic(call), subscription)

    return check


def _topic(call: Call) -> TopicName:
    """The topic of the path; where that does not say the domain both have the same permissions."""
    if "domain" in call.params:
        return call.topic
    params = {**call.params, "domain": PERSISTENT}
    return Call(call.context, params, call.query).topic


def _policy(path: str, method: str) -> Need:
    """For the administrators of the tenant, with Pulsar's refusal."""
    name, access = path.rsplit("/", 1)[-1], "READ" if method == "GET" else "WRITE"
    policy = "ALL" if name.startswith("{") else name

    async def check(authorization: Authorization, principal: Principal, call: Call) -> None:
        if "topic" in call.params:
            refusal = f"Unauthorized to validateTopicPolicyOperation for operation [{access}] on topic [{call.topic}]"
        else:
            refusal = (
                f"Unauthorized to validateNamespacePolicyOperation for operation [{access}] "
                f"on namespace [{call.namespace}]"
            )
        await authorization.check_tenant_admin(
            principal, call.param("tenant"), AuthorizationError(f"{refusal} on policy [{policy}]")
        )

    return check


_ADMIN: Final = "/admin/v2"
_NAMESPACE: Final = f"{_ADMIN}/namespaces/{{tenant}}/{{namespace}}"
_TOPICS: Final = f"{_ADMIN}/{{domain}}/{{tenant}}/{{namespace}}"
_TOPIC: Final = f"{_TOPICS}/{{topic}}"
_SUBSCRIPTION: Final = f"{_TOPIC}/subscription/{{subscription}}"
_SCHEMAS: Final = f"{_ADMIN}/schemas/{{tenant}}/{{namespace}}/{{topic}}"
_LOOKUP: Final = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"
_OLDER_LOOKUP: Final = "/lookup/v2/topic/{any_domain}/{tenant}/{cluster}/{namespace}/{any_topic}"
_OTHER_LOOKUP: Final = "/lookup/v2/topic/{any_domain}/{tenant}/{namespace}/{any_topic}"
_POLICY_FAMILIES: Final = (f"{_NAMESPACE}/", f"{_TOPIC}/")

_N = NamespaceOperation
_T = TopicOperation

_CLUSTER_NEEDS: Final[Mapping[str, Need]] = {
    f"GET {_ADMIN}/clusters": anybody,
    f"GET {_ADMIN}/brokers/ready": anybody,
    f"GET {_ADMIN}/brokers/version": anybody,
    f"GET {_ADMIN}/tenants": super_user,
    f"GET {_ADMIN}/tenants/{{tenant}}": tenant_itself,
    f"PUT {_ADMIN}/tenants/{{tenant}}": tenant_itself,
    f"POST {_ADMIN}/tenants/{{tenant}}": tenant_itself,
    f"DELETE {_ADMIN}/tenants/{{tenant}}": tenant_itself,
    "GET /livez": OPEN,
    "GET /readyz": OPEN,
    "GET /metrics": OPEN,
    "GET /metrics/": OPEN,
}
_NAMESPACE_NEEDS: Final[Mapping[str, Need]] = {
    f"GET {_ADMIN}/namespaces/{{tenant}}": tenant_admin,
    f"GET {_NAMESPACE}": _policy(_NAMESPACE, "GET"),
    f"PUT {_NAMESPACE}": tenant_admin,
    f"DELETE {_NAMESPACE}": tenant_admin,
    f"GET {_NAMESPACE}/topics": on_namespace(_N.GET_TOPICS),
    f"GET {_ADMIN}/non-persistent/{{tenant}}/{{namespace}}/{{bundle}}": on_namespace(_N.GET_BUNDLE),
    f"GET {_NAMESPACE}/{{bundle}}/topicHashPositions": on_namespace(_N.GET_BUNDLE),
    f"DELETE {_NAMESPACE}/{{bundle}}": tenant_admin,
    f"GET {_NAMESPACE}/bundles": on_namespace(_N.GET_BUNDLE),
    f"PUT {_NAMESPACE}/unload": super_user,
    f"PUT {_NAMESPACE}/{{bundle}}/unload": super_user,
    f"PUT {_NAMESPACE}/{{bundle}}/split": super_user,
    f"POST {_NAMESPACE}/clearBacklog": on_namespace(_N.CLEAR_BACKLOG),
    f"POST {_NAMESPACE}/clearBacklog/{{subscription}}": on_namespace(_N.CLEAR_BACKLOG),
    f"POST {_NAMESPACE}/{{bundle}}/clearBacklog": on_namespace(_N.CLEAR_BACKLOG),
    f"POST {_NAMESPACE}/{{bundle}}/clearBacklog/{{subscription}}": on_namespace(_N.CLEAR_BACKLOG),
    f"POST {_NAMESPACE}/unsubscribe/{{subscription}}": on_namespace(_N.UNSUBSCRIBE),
    f"POST {_NAMESPACE}/{{bundle}}/unsubscribe/{{subscription}}": on_namespace(_N.UNSUBSCRIBE),
    f"GET {_NAMESPACE}/permissions": on_namespace(_N.GET_PERMISSION),
    f"GET {_NAMESPACE}/permissions/subscription": on_namespace(_N.GET_PERMISSION),
    f"POST {_NAMESPACE}/permissions/{{role}}": on_namespace(_N.GRANT_PERMISSION),
    f"DELETE {_NAMESPACE}/permissions/{{role}}": on_namespace(_N.REVOKE_PERMISSION),
    f"POST {_NAMESPACE}/permissions/subscription/{{subscription}}": on_namespace(_N.GRANT_PERMISSION),
    f"DELETE {_NAMESPACE}/permissions/{{subscription}}/{{role}}": on_namespace(_N.REVOKE_PERMISSION),
    f"POST {_NAMESPACE}/delayedDelivery": super_user,
    f"DELETE {_NAMESPACE}/delayedDelivery": super_user,
}
_TOPIC_NEEDS: Final[Mapping[str, Need]] = {
    f"GET {_TOPICS}": on_namespace(_N.GET_TOPICS),
    f"GET {_TOPICS}/partitioned": on_namespace(_N.GET_TOPICS),
    f"PUT {_TOPIC}": on_namespace(_N.CREATE_TOPIC),
    f"DELETE {_TOPIC}": on_namespace(_N.DELETE_TOPIC),
    f"GET {_TOPIC}/partitions": on_topic(_T.LOOKUP),
    f"DELETE {_TOPIC}/partitions": on_namespace(_N.DELETE_TOPIC),
    f"POST {_TOPIC}/createMissedPartitions": on_topic(_T.LOOKUP),
    f"GET {_TOPIC}/properties": on_topic(_T.GET_METADATA),
    f"PUT {_TOPIC}/properties": on_topic(_T.UPDATE_METADATA),
    f"DELETE {_TOPIC}/properties": on_topic(_T.DELETE_METADATA),
    f"DELETE {_TOPIC}/truncate": tenant_admin,
    f"PUT {_TOPIC}/unload": on_topic(_T.UNLOAD),
    f"POST {_TOPIC}/terminate": on_topic(_T.TERMINATE),
    f"POST {_TOPIC}/terminate/partitions": on_topic(_T.TERMINATE),
    f"GET {_TOPIC}/compaction": on_topic(_T.COMPACT),
    f"PUT {_TOPIC}/compaction": on_topic(_T.COMPACT),
    f"GET {_TOPIC}/offload": on_topic(_T.OFFLOAD),
    f"PUT {_TOPIC}/offload": on_topic(_T.OFFLOAD),
    f"POST {_TOPIC}/trim": on_topic(_T.TRIM_TOPIC),
    f"GET {_TOPIC}/permissions": tenant_admin,
    f"POST {_TOPIC}/permissions/{{role}}": tenant_admin,
    f"DELETE {_TOPIC}/permissions/{{role}}": tenant_admin,
    **{
        f"GET {_TOPIC}/{what}": on_topic(_T.GET_STATS)
        for what in ("stats", "internalStats", "internal-info", "partitioned-stats", "partitioned-internalStats")
    },
}
_MESSAGE_NEEDS: Final[Mapping[str, Need]] = {
    f"GET {_TOPIC}/subscriptions": on_topic(_T.GET_SUBSCRIPTIONS),
    f"PUT {_SUBSCRIPTION}": on_topic(_T.SUBSCRIBE),
    f"DELETE {_SUBSCRIPTION}": on_topic(_T.UNSUBSCRIBE),
    f"POST {_SUBSCRIPTION}/resetcursor": on_topic(_T.RESET_CURSOR),
    f"POST {_SUBSCRIPTION}/resetcursor/{{time}}": on_topic(_T.RESET_CURSOR),
    f"POST {_SUBSCRIPTION}/skip_all": on_topic(_T.SKIP),
    f"POST {_SUBSCRIPTION}/skip/{{count}}": on_topic(_T.SKIP),
    f"POST {_SUBSCRIPTION}/expireMessages": on_topic(_T.EXPIRE_MESSAGES),
    f"POST {_SUBSCRIPTION}/expireMessages/{{seconds}}": on_topic(_T.EXPIRE_MESSAGES),
    f"POST {_TOPIC}/all_subscription/expireMessages/{{seconds}}": on_topic(_T.EXPIRE_MESSAGES),
    f"GET {_SUBSCRIPTION}/properties": on_topic(_T.CONSUME),
    f"PUT {_SUBSCRIPTION}/properties": on_topic(_T.SUBSCRIBE),
    f"GET {_SUBSCRIPTION}/position/{{position}}": on_topic(_T.PEEK_MESSAGES),
    f"POST {_SUBSCRIPTION}/analyzeBacklog": on_topic(_T.CONSUME),
    f"GET {_SUBSCRIPTION}/replicatedSubscriptionStatus": on_topic(_T.GET_REPLICATED_SUBSCRIPTION_STATUS),
    f"POST {_SUBSCRIPTION}/replicatedSubscriptionStatus": on_topic(_T.SET_REPLICATED_SUBSCRIPTION_STATUS),
    f"GET {_TOPIC}/examinemessage": on_topic(_T.PEEK_MESSAGES),
    f"GET {_TOPIC}/ledger/{{ledger}}/entry/{{entry}}": on_topic(_T.PEEK_MESSAGES),
    f"GET {_TOPIC}/messageid/{{time}}": on_topic(_T.PEEK_MESSAGES),
    f"GET {_TOPIC}/lastMessageId": on_topic(_T.PEEK_MESSAGES),
    f"POST {_TOPIC}": on_topic(_T.PRODUCE),
    f"POST {_TOPIC}/partitions/{{partition}}": on_topic(_T.PRODUCE),
    f"GET {_TOPIC}/getMessageIdByIndex": on_topic(_T.PEEK_MESSAGES),
    f"PUT {_TOPIC}/backlogSize": on_topic(_T.GET_BACKLOG_SIZE),
}
_OTHER_NEEDS: Final[Mapping[str, Need]] = {
    f"GET {_SCHEMAS}/schema": on_topic(_T.GET_METADATA),
    f"GET {_SCHEMAS}/schema/{{version}}": on_topic(_T.GET_METADATA),
    f"GET {_SCHEMAS}/schemas": on_topic(_T.GET_METADATA),
    f"GET {_SCHEMAS}/metadata": on_topic(_T.GET_METADATA),
    f"POST {_SCHEMAS}/schema": on_topic(_T.PRODUCE),
    f"POST {_SCHEMAS}/version": on_topic(_T.GET_METADATA),
    f"DELETE {_SCHEMAS}/schema": tenant_admin,
    f"POST {_SCHEMAS}/compatibility": tenant_admin,
    f"GET {_LOOKUP}": on_topic(_T.LOOKUP),
    f"GET {_LOOKUP}/bundle": on_namespace(_N.GET_BUNDLE),
    f"GET {_OLDER_LOOKUP}": anybody,  # as the next two refused, whoever asks
    f"GET {_OLDER_LOOKUP}/bundle": anybody,
    f"GET {_OTHER_LOOKUP}": anybody,
    "POST /lookup/v2/topics": anybody,  # each topic of it is asked for by itself
}

NEEDS: Final[Mapping[str, Need]] = {
    **_CLUSTER_NEEDS,
    **_NAMESPACE_NEEDS,
    **_TOPIC_NEEDS,
    **_MESSAGE_NEEDS,
    **_OTHER_NEEDS,
}
"""By method and path."""

_SUPER_USERS: Final = tuple(
    f"{_ADMIN}/{each}"
    for each in (
        "bookies/",
        "broker-stats/",
        "brokers",
        "clusters/",
        "metadata/",
        "namespaces/grantPermissionsOnTopics",
        "namespaces/revokePermissionsOnTopics",
        "namespaces/{cluster}/antiAffinity/",
        "resource-quotas",
        "resourcegroups",
        "scalable/",
    )
)
"""What else is below these paths is for super users, and says so by being there."""


def need_of(route: Route) -> Need:
    """What a route needs."""
    declared = NEEDS.get(f"{route.method} {route.path}")
    if declared is not None:
        return declared
    return _policy(route.path, route.method) if route.path.startswith(_POLICY_FAMILIES) else super_user


def is_declared(route: Route) -> bool:
    """Whether somebody thought of what this route needs."""
    return f"{route.method} {route.path}" in NEEDS or route.path.startswith((*_POLICY_FAMILIES, *_SUPER_USERS))
