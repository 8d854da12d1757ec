"""Commands of ``namespaces`` and ``topics`` that grant and revoke permissions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.support.command_lists import namespace_command, topic_command
from interpulse.cli.support.params import STRINGS
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.permissions import SUBSCRIPTION_AUTH_MODES, Action
from interpulse.terminal.output import print_pairs, print_text

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

NAMESPACE_PERMISSION_COMMANDS: list[click.Command] = []
"""Every command about permissions of ``namespaces``."""

TOPIC_PERMISSION_COMMANDS: list[click.Command] = []
"""Every command about permissions of ``topics``."""

_namespace_command = partial(namespace_command, NAMESPACE_PERMISSION_COMMANDS)
_topic_command = partial(topic_command, TOPIC_PERMISSION_COMMANDS)
_role = click.option("-r", "--role", required=True, help="The role.")
_actions = click.option(
    "-a", "--actions", type=STRINGS, required=True, help=f"Permissions, separated by commas: {', '.join(Action)}."
)
_subscription = click.option("-s", "--subscription", required=True, help="Name of the subscription.")


def _print(grants: dict[str, list[str]]) -> None:
    print_pairs({name: f"[{', '.join(granted)}]" for name, granted in grants.items()})


@_namespace_command("permissions")
async def namespace_permissions(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the permissions of roles on a namespace."""
    _print(await admin.permissions.of_namespace(namespace))


@_namespace_command("grant-permission")
@_role
@_actions
async def grant_on_namespace(admin: AdminClient, namespace: NamespaceName, role: str, actions: list[str]) -> None:
    """Grant a role permissions on a namespace, in place of those it had."""
    await admin.permissions.grant(namespace, role, actions)


@_namespace_command("revoke-permission")
@_role
async def revoke_on_namespace(admin: AdminClient, namespace: NamespaceName, role: str) -> None:
    """Revoke the permissions of a role on a namespace."""
    await admin.permissions.revoke(namespace, role)


@_namespace_command("subscription-permission")
async def subscription_permissions(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the subscriptions that are reserved for roles."""
    _print(await admin.permissions.of_subscriptions(namespace))


@_namespace_command("grant-subscription-permission")
@_subscription
@click.option("-rs", "--roles", type=STRINGS, required=True, help="The roles, separated by commas.")
async def grant_on_subscription(
    admin: AdminClient, namespace: NamespaceName, subscription: str, roles: list[str]
) -> None:
    """Reserve a subscription for roles, in place of those it had."""
    await admin.permissions.grant_on_subscription(namespace, subscription, roles)


@_namespace_command("revoke-subscription-permission")
@_subscription
@_role
async def revoke_on_subscription(admin: AdminClient, namespace: NamespaceName, subscription: str, role: str) -> None:
    """Revoke a subscription from a role. Without roles it is open to all consumers of the namespace."""
    await admin.permissions.revoke_on_subscription(namespace, subscription, role)


@_namespace_command("get-subscription-auth-mode")
async def get_auth_mode(admin: AdminClient, namespace: NamespaceName) -> None:
    """Print the mode: whether subscription names must begin with the role."""
    print_text(str(await admin.permissions.subscription_auth_mode(namespace)))


@_namespace_command("set-subscription-auth-mode")
@click.option(
    "-m",
    "--subscription-auth-mode",
    "mode",
    type=click.Choice(SUBSCRIPTION_AUTH_MODES),
    required=True,
    help="Prefix: names of subscriptions must begin with the role; None: any name.",
)
async def set_auth_mode(admin: AdminClient, namespace: NamespaceName, mode: str) -> None:
    """Set the mode: whether subscription names must begin with the role."""
    await admin.permissions.set_subscription_auth_mode(namespace, mode)


@_topic_command("permissions")
async def topic_permissions(admin: AdminClient, topic: TopicName) -> None:
    """Print the permissions of roles on a topic, including those on its namespace."""
    _print(await admin.permissions.of_topic(topic))


@_topic_command("grant-permission")
@_role
@_actions
async def grant_on_topic(admin: AdminClient, topic: TopicName, role: str, actions: list[str]) -> None:
    """Grant a role permissions on a topic and its partitions, in place of those it had."""
    await admin.permissions.grant_on_topic(topic, role, actions)


@_topic_command("revoke-permission")
@_role
async def revoke_on_topic(admin: AdminClient, topic: TopicName, role: str) -> None:
    """Revoke the permissions of a role on a topic. Those on its namespace stay."""
    await admin.permissions.revoke_on_topic(topic, role)
