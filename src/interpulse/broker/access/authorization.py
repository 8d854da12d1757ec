"""Authorization of client requests.

Reads the administrators of the tenant and the grants of the namespace, and asks the rules.

Privileged roles are recognised first. A refusal shows other roles that a tenant does not exist, as in Pulsar, but
nothing about namespaces and topics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.tenancy.tenants import Tenants
from interpulse.model.errors import AuthorizationError, PulsarError, TenantNotFound, Unauthorized
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import NamespaceOperation, Principal, TopicOperation
from interpulse.rules.permissions import (
    check_principals,
    denied_on_namespace,
    denied_on_topic,
    may_administer,
    may_on_namespace,
    may_on_topic,
)

_NOT_ADMIN: Final = "Don't have permission to administrate resources on this tenant"


class Authorization:
    """Checks of permissions. A check returns if the call is allowed; it raises AuthorizationError or TenantNotFound."""

    def __init__(
        self,
        tenants: Tenants,
        namespaces: Namespaces,
        *,
        super_users: Iterable[str] = (),
        proxies: Iterable[str] = (),
        replicators: Iterable[str] = (),
        replicator_prefix: str = "pulsar.repl",
    ) -> None:
        """Names that begin with ``replicator_prefix`` and a dot are replication cursors."""
        self._tenants = tenants
        self._namespaces = namespaces
        self.super_users: Collection[str] = frozenset(super_users)
        self._proxies = frozenset(proxies)
        self._replicators = frozenset(replicators)
        self._cursor_prefix = f"{replicator_prefix}."

    def principal(self, role: str, original: str | None, *, same_allowed: bool = False) -> Principal:
        """Return the principal of ``role`` and the original role that it acts for; see `check_principals`."""
        error = check_principals(role, original, self._proxies, same_allowed=same_allowed)
        if error is not None:
            raise error
        return Principal(role, original if role in self._proxies else None)

    def is_super_user(self, principal: Principal) -> bool:
        return all(may_administer(role, super_users=self.super_users) for role in principal.roles)

    def is_replicator(self, principal: Principal) -> bool:
        """Return True if the principal is a replicator (``replicatorRoles``)."""
        return all(role in self._replicators or role in self.super_users for role in principal.roles)

    def check_super_user(
        self, principal: Principal, refusal: str = "This operation requires super-user access"
    ) -> None:
        """Check a call that concerns the whole cluster."""
        if not self.is_super_user(principal):
            raise Unauthorized(refusal)

    async def check_tenant_admin(
        self, principal: Principal, tenant: str, refusal: AuthorizationError | None = None
    ) -> None:
        """Check a call for the administrators of a tenant; raise ``refusal`` for other roles."""
        for role in principal.roles:
            if not await self._administers(role, tenant):
                raise refusal or Unauthorized(_NOT_ADMIN)

    async def check_namespace(
        self,
        principal: Principal,
        operation: NamespaceOperation,
        namespace: NamespaceName,
        subscription: str | None = None,
    ) -> None:
        """Check an action on a whole namespace, or on every subscription of one name in it."""
        for role in principal.roles:
            if await self._administers(role, namespace.tenant):
                continue
            policies = await self._namespaces.find_policies(namespace)
            if not may_on_namespace(role, operation, policies) or self._is_of_replicators(role, subscription):
                raise denied_on_namespace(operation, namespace)

    async def check_topic(
        self, principal: Principal, operation: TopicOperation, topic: TopicName, subscription: str | None = None
    ) -> None:
        """Check an action on a topic. The topic need not exist."""
        for role in principal.roles:
            if await self._administers(role, topic.tenant):
                continue
            policies = await self._namespaces.find_policies(topic.namespace_name)
            if not may_on_topic(role, operation, topic, policies, subscription):
                raise denied_on_topic(role, operation, topic, policies, subscription)
            if self._is_of_replicators(role, subscription):
                raise denied_on_topic(role, operation, topic, policies)

    def _is_of_replicators(self, role: str, subscription: str | None) -> bool:
        """Return True if the subscription is a replication cursor, which is reserved for replicators.

        Without the cursor, entries that another cluster still needs are trimmed.
        """
        return bool(subscription and subscription.startswith(self._cursor_prefix) and role not in self._replicators)

    async def refused_lookups(self, principal: Principal, topics: Mapping[str, TopicName]) -> dict[str, PulsarError]:
        """Return the topics that the principal may not look up, each with the reason."""
        refused: dict[str, PulsarError] = {}
        for name, topic in topics.items():
            try:
                await self.check_topic(principal, TopicOperation.LOOKUP, topic)
            except (AuthorizationError, TenantNotFound):
                refused[name] = AuthorizationError("Client is not authorized to Lookup")
        return refused

    async def _administers(self, role: str, tenant: str) -> bool:
        """Return True for an administrator of the tenant. Raise TenantNotFound if it does not exist.

        Super users also administer tenants that do not exist.
        """
        if may_administer(role, super_users=self.super_users):
            return True
        admins = (await self._tenants.get(tenant)).admin_roles
        return may_administer(role, super_users=self.super_users, tenant_admins=admins)
