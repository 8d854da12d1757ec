"""Admin calls for permissions to produce, to consume and to use a subscription."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interpulse.client.admin.calls import ask, send
from interpulse.client.json_readers import each, names, optional, string
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.operations import Grants

RolesByName = dict[str, list[str]]
"""Roles or subscriptions with their sorted grants."""


class PermissionsAdmin:
    """Permissions. Actions are ``produce``, ``consume``, ``functions``, ``sources``, ``sinks`` and ``packages``."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def of_namespace(self, namespace: NamespaceName | str) -> RolesByName:
        """Return the permissions of every role in the whole namespace."""
        return await ask(self._http, Grants.GET, namespace, read=_grants)

    async def grant(self, namespace: NamespaceName | str, role: str, actions: Iterable[str]) -> None:
        """Replace the permissions of a role in the whole namespace."""
        await send(self._http, Grants.GRANT, namespace, role, body=list(actions))

    async def revoke(self, namespace: NamespaceName | str, role: str) -> None:
        await send(self._http, Grants.REVOKE, namespace, role)

    async def of_topic(self, topic: TopicName | str) -> RolesByName:
        """Return the permissions of every role on a topic, from topic and namespace. Raise TopicNotFound."""
        return await ask(self._http, Grants.GET_OF_TOPIC, topic, read=_grants)

    async def grant_on_topic(self, topic: TopicName | str, role: str, actions: Iterable[str]) -> None:
        """Replace the permissions of a role on a topic and its partitions."""
        await send(self._http, Grants.GRANT_ON_TOPIC, topic, role, body=list(actions))

    async def revoke_on_topic(self, topic: TopicName | str, role: str) -> None:
        await send(self._http, Grants.REVOKE_ON_TOPIC, topic, role)

    async def of_subscriptions(self, namespace: NamespaceName | str) -> RolesByName:
        """Return the restricted subscriptions, each with the roles that may use it."""
        return await ask(self._http, Grants.GET_OF_SUBSCRIPTIONS, namespace, read=_grants)

    async def grant_on_subscription(
        self, namespace: NamespaceName | str, subscription: str, roles: Iterable[str]
    ) -> None:
        """Restrict subscriptions of this name to these roles."""
        await send(self._http, Grants.GRANT_ON_SUBSCRIPTION, namespace, subscription, body=list(roles))

    async def revoke_on_subscription(self, namespace: NamespaceName | str, subscription: str, role: str) -> None:
        await send(self._http, Grants.REVOKE_ON_SUBSCRIPTION, namespace, subscription, role)

    async def subscription_auth_mode(self, namespace: NamespaceName | str) -> str | None:
        """Return ``Prefix`` if subscription names must start with the role, otherwise ``None``."""
        return await ask(self._http, Grants.GET_AUTH_MODE, namespace, read=optional(string))

    async def set_subscription_auth_mode(self, namespace: NamespaceName | str, mode: str) -> None:
        await send(self._http, Grants.SET_AUTH_MODE, namespace, body=mode)


def _grants(body: Any) -> RolesByName:
    return {name: sorted(granted) for name, granted in sorted(each(names)(body).items())}
