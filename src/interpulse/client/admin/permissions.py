"""Admin calls for permissions to produce, to consume and to use a subscription."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from interpulse.client.admin.topic_requests import encoded_subscription, topic_path
from interpulse.client.json_readers import each, names, optional, string
from interpulse.client.transport.http_session import HttpSession
from interpulse.model.names import NamespaceName, TopicName

Grants = dict[str, list[str]]
"""Roles or subscriptions with their sorted grants."""


class PermissionsAdmin:
    """Permissions. Actions are ``produce``, ``consume``, ``functions``, ``sources``, ``sinks`` and ``packages``."""

    def __init__(self, http: HttpSession) -> None:
        self._http = http

    async def of_namespace(self, namespace: NamespaceName | str) -> Grants:
        """Return the permissions of every role in the whole namespace."""
        return await self._http.get(_path(namespace), kind="namespace", read=_grants)

    async def grant(self, namespace: NamespaceName | str, role: str, actions: Iterable[str]) -> None:
        """Replace the permissions of a role in the whole namespace."""
        await self._http.post(_path(namespace, _quoted(role)), list(actions), kind="namespace")

    async def revoke(self, namespace: NamespaceName | str, role: str) -> None:
        await self._http.delete(_path(namespace, _quoted(role)), kind="namespace")

    async def of_topic(self, topic: TopicName | str) -> Grants:
        """Return the permissions of every role on a topic, from topic and namespace. Raise TopicNotFound."""
        return await self._http.get(topic_path(topic, "permissions"), kind="topic", read=_grants)

    async def grant_on_topic(self, topic: TopicName | str, role: str, actions: Iterable[str]) -> None:
        """Replace the permissions of a role on a topic and its partitions."""
        await self._http.post(topic_path(topic, f"permissions/{_quoted(role)}"), list(actions), kind="topic")

    async def revoke_on_topic(self, topic: TopicName | str, role: str) -> None:
        await self._http.delete(topic_path(topic, f"permissions/{_quoted(role)}"), kind="topic")

    async def of_subscriptions(self, namespace: NamespaceName | str) -> Grants:
        """Return the restricted subscriptions, each with the roles that may use it."""
        return await self._http.get(_path(namespace, "subscription"), kind="namespace", read=_grants)

    async def grant_on_subscription(
        self, namespace: NamespaceName | str, subscription: str, roles: Iterable[str]
    ) -> None:
        """Restrict subscriptions of this name to these roles."""
        path = _path(namespace, f"subscription/{encoded_subscription(subscription)}")
        await self._http.post(path, list(roles), kind="namespace")

    async def revoke_on_subscription(self, namespace: NamespaceName | str, subscription: str, role: str) -> None:
        path = _path(namespace, f"{encoded_subscription(subscription)}/{_quoted(role)}")
        await self._http.delete(path, kind="subscription")

    async def subscription_auth_mode(self, namespace: NamespaceName | str) -> str | None:
        """Return ``Prefix`` if subscription names must start with the role, otherwise ``None``."""
        return await self._http.get(_mode(namespace), kind="namespace", read=optional(string))

    async def set_subscription_auth_mode(self, namespace: NamespaceName | str, mode: str) -> None:
        await self._http.post(_mode(namespace), mode, kind="namespace")


def _root(namespace: NamespaceName | str) -> str:
    return f"/admin/v2/namespaces/{NamespaceName.parse(str(namespace))}"


def _path(namespace: NamespaceName | str, last: str = "") -> str:
    path = f"{_root(namespace)}/permissions"
    return f"{path}/{last}" if last else path


def _mode(namespace: NamespaceName | str) -> str:
    return f"{_root(namespace)}/subscriptionAuthMode"


def _quoted(role: str) -> str:
    return quote(role, safe="")


def _grants(body: Any) -> Grants:
    return {name: sorted(granted) for name, granted in sorted(each(names)(body).items())}
