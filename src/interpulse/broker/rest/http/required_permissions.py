"""The permissions of routes, checked once before the handler runs, whether or not the resource exists.

Statuses and texts are Pulsar's: 401 for a topic, a tenant or the cluster, 403 for namespaces and policies. The
reference of permissions identifies these functions by their ``__name__``.
"""

from __future__ import annotations

from interpulse.broker.access.authorization import Authorization
from interpulse.broker.rest.http.call import Call, RequiredPermission
from interpulse.model.errors import AuthorizationError, TenantNotFound, Unauthorized
from interpulse.model.permissions import NamespaceOperation, Principal, TopicOperation


async def open_to_all(authorization: Authorization, principal: Principal, call: Call) -> None:
    """Allow every caller, even without credentials."""


async def any_role(authorization: Authorization, principal: Principal, call: Call) -> None:
    """Allow every authenticated role."""


async def super_user(authorization: Authorization, principal: Principal, call: Call) -> None:
    authorization.check_super_user(principal)


async def tenant_admin(authorization: Authorization, principal: Principal, call: Call) -> None:
    await authorization.check_tenant_admin(principal, call.param("tenant"))


async def tenant_itself(authorization: Authorization, principal: Principal, call: Call) -> None:
    """Allow super users and administrators of the tenant. Others do not learn if it exists."""
    try:
        await authorization.check_tenant_admin(principal, call.param("tenant"))
    except TenantNotFound:
        raise Unauthorized("Don't have permission to administrate resources on this tenant") from None


def on_namespace(operation: NamespaceOperation) -> RequiredPermission:
    async def check(authorization: Authorization, principal: Principal, call: Call) -> None:
        subscription = call.param("subscription", form_encoded=True) if "subscription" in call.params else None
        await authorization.check_namespace(principal, operation, call.namespace, subscription)

    check.__name__ = f"namespace {operation}"
    return check


def on_topic(operation: TopicOperation) -> RequiredPermission:
    async def check(authorization: Authorization, principal: Principal, call: Call) -> None:
        subscription = call.subscription if "subscription" in call.params else None
        await authorization.check_topic(principal, operation, call.topic, subscription)

    check.__name__ = f"topic {operation}"
    return check


async def on_policy(authorization: Authorization, principal: Principal, call: Call) -> None:
    """Allow administrators of the tenant. The refusal is the one of Pulsar for policies of namespaces and topics."""
    name = call.route.path.rpartition("/")[2]
    policy, access = "ALL" if name.startswith("{") else name, "READ" if call.route.method == "GET" else "WRITE"
    if "topic" in call.params:
        refusal = f"Unauthorized to validateTopicPolicyOperation for operation [{access}] on topic [{call.topic}]"
    else:
        refusal = (
            f"Unauthorized to validateNamespacePolicyOperation for operation [{access}] on namespace [{call.namespace}]"
        )
    await authorization.check_tenant_admin(
        principal, call.param("tenant"), AuthorizationError(f"{refusal} on policy [{policy}]")
    )
