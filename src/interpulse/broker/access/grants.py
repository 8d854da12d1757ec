"""Changes of permissions by operators."""

from __future__ import annotations

from collections.abc import Collection

from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import Permissions
from interpulse.model.topics import TopicKind
from interpulse.rules import permissions as rules


class Grants:
    """The permissions of namespaces.

    Every call raises NamespaceNotFound; calls for a topic also raise TopicNotFound.

    Changes raise the errors of their rules, ``decide_...`` in ``rules/permissions.py``.
    """

    def __init__(self, namespaces: Namespaces, lifecycle: TopicLifecycle) -> None:
        self._namespaces = namespaces
        self._lifecycle = lifecycle

    async def of_namespace(self, namespace: NamespaceName) -> Permissions:
        """Return the grants of a namespace."""
        return (await self._namespaces.get_policies(namespace)).permissions

    async def grant(self, namespace: NamespaceName, role: str, actions: Collection[str]) -> None:
        """Grant actions in the whole namespace."""
        await self._namespaces.decide(namespace, lambda view: rules.decide_grant(view, role, actions))

    async def revoke(self, namespace: NamespaceName, role: str) -> None:
        """Revoke the role's permissions in the whole namespace."""
        await self._namespaces.decide(namespace, lambda view: rules.decide_revoke(view, role))

    async def on_topic(self, topic: TopicName) -> dict[str, list[str]]:
        """Return the permissions of every role on a topic, from both levels."""
        rules.check_topic_exists(topic, exists=await self._exists(topic))
        permissions = await self.of_namespace(topic.namespace_name)
        return {role: sorted(actions) for role, actions in permissions.granted_on(topic).items()}

    async def grant_on_topic(self, topic: TopicName, role: str, actions: Collection[str]) -> None:
        """Grant actions on one topic and its partitions."""
        exists = await self._exists(topic)
        await self._namespaces.decide(
            topic.namespace_name, lambda view: rules.decide_grant_on_topic(view, topic, role, actions, exists=exists)
        )

    async def revoke_on_topic(self, topic: TopicName, role: str) -> None:
        """Revoke the role's permissions on this topic alone."""
        exists = await self._exists(topic)
        await self._namespaces.decide(
            topic.namespace_name, lambda view: rules.decide_revoke_on_topic(view, topic, role, exists=exists)
        )

    async def grant_on_subscription(self, namespace: NamespaceName, subscription: str, roles: Collection[str]) -> None:
        """Let only these roles use subscriptions of this name."""
        await self._namespaces.decide(
            namespace, lambda view: rules.decide_grant_on_subscription(view, subscription, roles)
        )

    async def revoke_on_subscription(self, namespace: NamespaceName, subscription: str, role: str) -> None:
        """Remove one role from a subscription."""
        await self._namespaces.decide(
            namespace, lambda view: rules.decide_revoke_on_subscription(view, subscription, role)
        )

    async def auth_mode(self, namespace: NamespaceName) -> str:
        """Return how subscriptions are authorized: a mode of `SUBSCRIPTION_AUTH_MODES`."""
        policies = await self._namespaces.get_policies(namespace)
        return rules.check_subscription_auth_mode(policies.subscription_auth_mode)

    async def set_auth_mode(self, namespace: NamespaceName, mode: str | None) -> None:
        """Set how subscriptions are authorized."""
        await self._namespaces.decide(namespace, lambda view: rules.decide_subscription_auth_mode(view, mode))

    async def _exists(self, topic: TopicName) -> bool:
        return (await self._lifecycle.existence(topic)).kind is not TopicKind.ABSENT
