"""Commands of ``namespaces`` and ``topics`` that grant and revoke permissions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from interpulse.cli.support.call_commands import call_command, namespace_argument, topic_argument
from interpulse.cli.support.params import STRINGS
from interpulse.model.permissions import SUBSCRIPTION_AUTH_MODES, Action
from interpulse.terminal.output import print_pairs, print_text

if TYPE_CHECKING:
    pass

NAMESPACE_PERMISSION_COMMANDS: list[click.Command] = []
"""Every command about permissions of ``namespaces``."""

TOPIC_PERMISSION_COMMANDS: list[click.Command] = []
"""Every command about permissions of ``topics``."""

_role = click.option("-r", "--role", required=True, help="The role.")
_roles = click.option("-rs", "--roles", type=STRINGS, required=True, help="The roles, separated by commas.")
_actions = click.option(
    "-a", "--actions", type=STRINGS, required=True, help=f"Permissions, separated by commas: {', '.join(Action)}."
)
_subscription = click.option("-s", "--subscription", required=True, help="Name of the subscription.")
_mode = click.option(
    "-m",
    "--subscription-auth-mode",
    "mode",
    type=click.Choice(SUBSCRIPTION_AUTH_MODES),
    required=True,
    help="Prefix: names of subscriptions must begin with the role; None: any name.",
)


def _print(grants: dict[str, list[str]]) -> None:
    print_pairs({name: f"[{', '.join(granted)}]" for name, granted in grants.items()})


_of_namespace = partial(call_command, NAMESPACE_PERMISSION_COMMANDS.append, "permissions", namespace_argument)
_of_topic = partial(call_command, TOPIC_PERMISSION_COMMANDS.append, "permissions", topic_argument)

_of_namespace("permissions", "of_namespace", "Print the permissions of roles on a namespace.", show=_print)
_of_namespace(
    "grant-permission", "grant", "Grant a role permissions on a namespace, in place of those it had.", _role, _actions
)
_of_namespace("revoke-permission", "revoke", "Revoke the permissions of a role on a namespace.", _role)
_of_namespace(
    "subscription-permission", "of_subscriptions", "Print the subscriptions that are reserved for roles.", show=_print
)
_of_namespace(
    "grant-subscription-permission",
    "grant_on_subscription",
    "Reserve a subscription for roles, in place of those it had.",
    _subscription,
    _roles,
)
_of_namespace(
    "revoke-subscription-permission",
    "revoke_on_subscription",
    "Revoke a subscription from a role. Without roles it is open to all consumers of the namespace.",
    _subscription,
    _role,
)
_of_namespace(
    "get-subscription-auth-mode",
    "subscription_auth_mode",
    "Print the mode: whether subscription names must begin with the role.",
    show=lambda mode: print_text(str(mode)),
)
_of_namespace(
    "set-subscription-auth-mode",
    "set_subscription_auth_mode",
    "Set the mode: whether subscription names must begin with the role.",
    _mode,
)
_of_topic(
    "permissions",
    "of_topic",
    "Print the permissions of roles on a topic, including those on its namespace.",
    show=_print,
)
_of_topic(
    "grant-permission",
    "grant_on_topic",
    "Grant a role permissions on a topic and its partitions, in place of those it had.",
    _role,
    _actions,
)
_of_topic(
    "revoke-permission",
    "revoke_on_topic",
    "Revoke the permissions of a role on a topic. Those on its namespace stay.",
    _role,
)
