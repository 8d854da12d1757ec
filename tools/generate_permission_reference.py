"""Writes ``docs/reference/permissions.md`` from the routes of the admin API and the commands of the binary protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from interpulse.broker.binary.handlers import AWAITING
from interpulse.broker.rest.server import ROUTES
from interpulse.model.names import TopicName
from interpulse.model.operations import Access, Permission
from interpulse.model.permissions import Action, NamespaceOperation, Permissions, TopicOperation
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.permissions import may_on_namespace, may_on_topic
from interpulse.wire import pulsar_api_pb2 as pb

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "permissions.md"

_HEAD = """# Permissions

Written by `tools/generate_permission_reference.py`; do not edit.

What a role needs for each command of the binary protocol and each call of the admin API, while
`authorizationEnabled=true`. Super users (`superUserRoles`) may do everything, and the administrators of a tenant
everything in it that does not say *super users*. A refusal is the same whether the topic exists or not. How to grant:
[secure a broker](../howto/secure-a-broker.md#4-grant-permissions). Behind
[a proxy](../howto/run-a-proxy.md#pass-on-credentials) that speaks for its clients, both roles need it: that of the
client, and that of the proxy (`proxyRoles`).

"""

_SAID: Final[Mapping[str, str]] = {
    "_nothing": "no further permission: checked when the producer or consumer was opened, or for each topic",
    "_to_produce": "`produce`; with an initial subscription `consume` as well",
    "_to_subscribe": "`consume`",
}
_ACCESS: Final = {
    Access.OPEN: "nothing, not even credentials",
    Access.ANY_ROLE: "any authenticated role",
    Access.SUPER_USER: "super users",
}
_TOPIC: Final = TopicName.parse("persistent://a/b/c")


def page() -> str:
    """The whole page."""
    return "".join((_HEAD, *_commands(), *_calls()))


def _commands() -> Iterator[str]:
    yield "## Commands of the binary protocol\n\n| command | needs |\n| --- | --- |\n"
    names = pb.BaseCommand.Type.DESCRIPTOR.values_by_number
    for kind, (_, _, check) in AWAITING.items():
        yield f"| `{names[kind].name}` | {_needs(check.__name__)} |\n"


def _calls() -> Iterator[str]:
    yield "\n## Calls of the admin API\n\n| call | needs |\n| --- | --- |\n"
    operations = [route.operation for route in ROUTES]
    for operation in sorted(operations, key=lambda operation: (operation.path, operation.method)):
        yield f"| `{operation.method} {operation.path}` | {needed(operation.permission)} |\n"


def needed(permission: Permission) -> str:
    """What an operation of the admin API needs."""
    if isinstance(permission, Access):
        return _ACCESS.get(permission, "administrators of the tenant")
    return _needs(f"{'topic' if isinstance(permission, TopicOperation) else 'namespace'} {permission}")


def _needs(name: str) -> str:
    if name in _SAID:
        return _SAID[name]
    level, _, operation = name.partition(" ")
    actions = [f"`{action}`" for action in Action if _is_enough(action, level, operation)]
    return f"{' or '.join(actions)} on the {level}" if actions else "administrators of the tenant"


def _is_enough(action: Action, level: str, operation: str) -> bool:
    """Asks the rule itself."""
    policies = NamespacePolicies(granted=Permissions().grant("role", [action]))
    if level == "topic":
        return may_on_topic("role", TopicOperation(operation), _TOPIC, policies)
    return may_on_namespace("role", NamespaceOperation(operation), policies)


if __name__ == "__main__":
    PAGE.write_text(page())
