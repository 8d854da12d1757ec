"""Commands about the policies of a namespace that have the form of the catalogue."""

from __future__ import annotations

from typing import Final

import click

from interpulse.cli.policies.policy_commands import Calls, policy_commands, quota_commands
from interpulse.cli.support.params import NAMESPACE
from interpulse.model.policies.catalogue import OF_NAMESPACES

_CALLS: Final = Calls(
    get=lambda admin, namespace, name: admin.namespaces.policy(namespace, name),
    set=lambda admin, namespace, name, value: admin.namespaces.set_policy(namespace, name, value),
    remove=lambda admin, namespace, name: admin.namespaces.remove_policy(namespace, name),
    quotas=lambda admin: admin.namespaces,
    target=click.argument("target", metavar="NAMESPACE", type=NAMESPACE),
)

MESSAGING_COMMANDS: Final = (
    *policy_commands(OF_NAMESPACES, "namespaces", _CALLS),
    *quota_commands("get-backlog-quotas", _CALLS),
)
