"""The admission of calls to their handlers: none from another site's pages, none without permission.

Permissions are checked once before the handler runs, whether or not the resource exists. Statuses and texts are
Pulsar's: 401 for a topic, a tenant or the cluster, 403 for namespaces and policies.
"""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.authentication.authentication import PeerCertificate
from interpulse.broker.access.authorization import Authorization
from interpulse.broker.access.setup import Access as AccessControl
from interpulse.broker.rest.http.call import Call, Route
from interpulse.broker.rest.http.routing import MethodNotAllowed, Router
from interpulse.model.errors import AuthorizationError, NotFound, TenantNotFound, Unauthorized
from interpulse.model.operations import Access
from interpulse.model.permissions import NamespaceOperation, Principal, TopicOperation
from interpulse.serving.web_pages import KnownHosts, check_origin

_ORIGINAL_PRINCIPAL = "X-Original-Principal"


class AuthorizationFilter:
    """Authenticates and authorizes calls; without ``access`` every caller may do everything."""

    def __init__(self, access: AccessControl | None, hosts: KnownHosts | None) -> None:
        """Create the filter; ``hosts`` is None if callers without credentials are refused."""
        self._access = access
        self._hosts = hosts

    async def find(
        self,
        router: Router,
        method: str,
        path: str,
        headers: Mapping[str, str],
        certificate: PeerCertificate | None = None,
    ) -> tuple[Route, dict[str, str]]:
        """Return the result of `Router.find`. Only authenticated callers learn that a path does not exist."""
        try:
            return router.find(method, path)
        except (NotFound, MethodNotAllowed):
            if self._access is not None:
                await self._access.authentication.authenticate_http(headers, certificate=certificate)
            raise

    async def check(self, call: Call) -> None:
        """Set the principal of the call. Raise BadCredentials, or the refusal of the required permission."""
        access, operation = self._access, call.route.operation
        is_open = operation.permission is Access.OPEN
        if not is_open:
            check_origin(call.request_headers)
            if self._hosts is not None:
                self._hosts.check(call.request_headers)
        if access is None:
            return
        if is_open and not (access.metrics_authenticated and operation.path == "/metrics"):
            return
        identity = await access.authentication.authenticate_http(call.request_headers, certificate=call.certificate)
        original = call.request_headers.get(_ORIGINAL_PRINCIPAL)
        call.principal = access.principal(identity.role, original, same_allowed=True)
        if access.authorization is not None:
            await check_permission(access.authorization, call.principal, call)


async def check_permission(authorization: Authorization, principal: Principal, call: Call) -> None:
    """Raise AuthorizationError or TenantNotFound unless the principal has the permission of the call's operation."""
    match call.route.operation.permission:
        case Access.SUPER_USER:
            authorization.check_super_user(principal)
        case Access.TENANT_ADMIN:
            await authorization.check_tenant_admin(principal, call.param("tenant"))
        case Access.TENANT_ITSELF:
            try:
                await authorization.check_tenant_admin(principal, call.param("tenant"))
            except TenantNotFound:
                raise Unauthorized("Don't have permission to administrate resources on this tenant") from None
        case Access.POLICY:
            await authorization.check_tenant_admin(principal, call.param("tenant"), _refusal_on_policy(call))
        case NamespaceOperation() as operation:
            subscription = call.param("subscription", form_encoded=True) if "subscription" in call.params else None
            await authorization.check_namespace(principal, operation, call.namespace, subscription)
        case TopicOperation() as operation:
            subscription = call.subscription if "subscription" in call.params else None
            await authorization.check_topic(principal, operation, call.topic, subscription)


def _refusal_on_policy(call: Call) -> AuthorizationError:
    operation = call.route.operation
    name = operation.path.rpartition("/")[2]
    policy, access = "ALL" if name.startswith("{") else name, "READ" if operation.method == "GET" else "WRITE"
    level, target = ("Topic", call.topic) if "topic" in call.params else ("Namespace", call.namespace)
    return AuthorizationError(
        f"Unauthorized to validate{level}PolicyOperation for operation [{access}] on {level.lower()} [{target}] "
        f"on policy [{policy}]"
    )
