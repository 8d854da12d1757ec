"""Policies of topics: the group ``topicPolicies``, and the older commands of ``topics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.policies.policy_commands import Calls, policy_commands, quota_commands
from interpulse.cli.support.call_commands import command
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import TOPIC
from interpulse.cli.support.running import NOT_OFFERED, CommandFailed
from interpulse.model.names import TopicName
from interpulse.model.policies.catalogue import OF_TOPICS
from interpulse.terminal.output import print_json

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_topic = click.argument("target", metavar="TOPIC", type=TOPIC)
_applied = click.option(
    "-ap", "-a", "--applied", is_flag=True, help="Print the value in force, namespace and broker included."
)
_everywhere = click.option("-g", "--global", "everywhere", is_flag=True, help="Set it for all clusters of the topic.")


def _calls(*options: Any) -> Calls:
    return Calls("topic_policies", "get", "set", "remove", _topic, options, (_applied,))


async def _delete(admin: AdminClient, target: TopicName) -> None:
    await admin.topic_policies.delete(target)


async def _enable_deduplication(admin: AdminClient, target: TopicName) -> None:
    await admin.topic_policies.set(target, "deduplication_enabled", True)


async def _disable_deduplication(admin: AdminClient, target: TopicName) -> None:
    await admin.topic_policies.set(target, "deduplication_enabled", False)


async def _get_deduplication(admin: AdminClient, target: TopicName) -> None:
    print_json(await admin.topic_policies.get(target, "deduplication_enabled"))


_OLDER_NAMES: Final = (
    command("enable-deduplication", "As set-deduplication --enable.", _enable_deduplication, _topic),
    command("disable-deduplication", "As set-deduplication --disable.", _disable_deduplication, _topic),
    command("get-deduplication-enabled", "As get-deduplication.", _get_deduplication, _topic),
)
POLICY_COMMANDS: Final = (
    *policy_commands(OF_TOPICS, "topics", _calls()),
    *quota_commands("get-backlog-quotas", _calls()),
    *_OLDER_NAMES,
)
"""The commands about policies in the group ``topics``."""


@click.group("topicPolicies", cls=CommandGroup)
def topic_policies() -> None:
    """Operations about the policies of topics."""


for policy_command in policy_commands(OF_TOPICS, "topicPolicies", _calls(_everywhere)):
    topic_policies.add_command(policy_command)
for policy_command in quota_commands("get-backlog-quota", _calls(_everywhere)):
    topic_policies.add_command(policy_command)
topic_policies.add_command(command("delete", "Remove all policies of the topic.", _delete, _topic))


def _refuse_subscription(context: click.Context, option: click.Parameter, given: str | None) -> None:
    if given is not None:
        raise CommandFailed(
            "The dispatch rate of a single subscription (-s) is not offered; without -s it is that of each of them",
            NOT_OFFERED,
        )


for verb in ("get", "set", "remove"):
    topic_policies.commands[f"{verb}-subscription-dispatch-rate"].params.append(
        click.Option(["-s", "--subscription"], expose_value=False, hidden=True, callback=_refuse_subscription)
    )
