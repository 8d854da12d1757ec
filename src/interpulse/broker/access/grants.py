"""Granting and revoking: what operators change about permissions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.errors import NotFound, TopicNotFound
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import Permissions
from interpulse.model.topics import TopicKind
from interpulse.rules.permissions import check_actions, check_roles, check_subscription_auth_mode

__all__ = ["Grants"]


class Grants:
    """The permissions of namespaces. Every call raises NamespaceNotFound, those about a topic TopicNotFound."""

    def __init__(self, namespaces: Namespaces, lifecycle: TopicLifecycle) -> None:
        self._namespaces = namespaces
        self._lifecycle = lifecycle

    async def of_namespace(self, namespace: NamespaceName) -> Permissions:
        """The grants of a namespace."""
        return (await self._namespaces.get_policies(namespace)).permissions

    async def grant(self, namespace: NamespaceName, role: str, actions: Iterable[str]) -> None:
        """In the whole namespace; replaces what the role had there. Raises InvalidRequest."""
        check_roles([role])
        granted = check_actions(actions)
        await self._change(namespace, lambda permissions: permissions.grant(role, granted))

    async def revoke(self, namespace: NamespaceName, role: str) -> None:
        """The role's permissions in the whole namespace."""
        await self._change(namespace, lambda permissions: permissions.revoke(role))

    async def on_topic(self, topic: TopicName) -> dict[str, list[str]]:
        """The permissions of every role on a topic, from both levels."""
        await self._check_exists(topic)
        permissions = await self.of_namespace(topic.namespace_name)
        return {role: sorted(actions) for role, actions in permissions.granted_on(topic).items()}

    async def grant_on_topic(self, topic: TopicName, role: str, actions: Iterable[str]) -> None:
        """On one topic and its partitions; replaces what the role had there. Raises InvalidRequest."""
        check_roles([role])
        granted = check_actions(actions)
        await self._check_exists(topic)
        await self._change(topic.namespace_name, lambda permissions: permissions.grant_topic([topic], role, granted))

    async def revoke_on_topic(self, topic: TopicName, role: str) -> None:
        """The role's permissions on this topic alone."""
        await self._check_exists(topic)
        await self._change(topic.namespace_name, lambda permissions: permissions.revoke_topic([topic], role))

    async def grant_on_subscription(self, namespace: NamespaceName, subscription: str, roles: Iterable[str]) -> None:
        """From now on only these roles may use subscriptions of this name. Raises InvalidRequest."""
        granted = check_roles(roles)
        await self._change(namespace, lambda permissions: permissions.grant_subscription(subscription, granted))

    async def revoke_on_subscription(self, namespace: NamespaceName, subscription: str, role: str) -> None:
        """One role less; raises NotFound where it is not named for the subscription."""

        def without(permissions: Permissions) -> Permissions:
            if role not in permissions.subscriptions.get(subscription, ()):
                raise NotFound(f"Role {role} has no permission on subscription {subscription}")
            return permissions.revoke_subscription(subscription, role)

        await self._change(namespace, without)

    async def auth_mode(self, namespace: NamespaceName) -> str:
        """Whether subscription names must begin with the role: a mode of `SUBSCRIPTION_AUTH_MODES`."""
        return check_subscription_auth_mode((await self._namespaces.get_policies(namespace)).subscription_auth_mode)

    async def set_auth_mode(self, namespace: NamespaceName, mode: str | None) -> None:
        """Raises InvalidRequest."""
        checked = check_subscription_auth_mode(mode)
        await self._namespaces.update_policies(namespace, lambda old: old.changed(subscription_auth_mode=checked))

    async def _change(self, namespace: NamespaceName, change: Callable[[Permissions], Permissions]) -> None:
        await self._namespaces.update_policies(namespace, lambda old: old.changed(granted=change(old.permissions)))

    async def _check_exists(self, topic: TopicName) -> None:
        """A grant on a topic that does not exist would hold for its creator."""
        if (await self._lifecycle.existence(topic)).kind is TopicKind.ABSENT:
            raise TopicNotFound(f"Topic {topic} not found")
