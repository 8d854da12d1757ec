"""The policies of a topic: commands of the forms ``set-...``, ``get-...`` and ``remove-...``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.output import print_json
from interpulse.cli.params import TIME, TOPIC
from interpulse.cli.running import admin_command
from interpulse.model.names import TopicName
from interpulse.model.policies import DELETE_WHEN_CAUGHT_UP, DELETE_WHEN_NO_SUBSCRIPTIONS, InactiveTopicPolicies

if TYPE_CHECKING:
    from interpulse.client.admin import AdminClient

__all__ = ["POLICY_COMMANDS", "inactive_topic_options"]

POLICY_COMMANDS: list[click.Command] = []
"""Every command of this module."""

_applied = click.option("-ap", "--applied", is_flag=True, help="What is in force, namespace and broker included.")


def _policy_command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command whose first argument is the topic."""

    def register(callback: Callable[..., Any]) -> click.Command:
        with_topic = click.argument("topic", type=TOPIC)(admin_command(callback))
        command = click.command(name)(with_topic)
        POLICY_COMMANDS.append(command)
        return command

    return register


def inactive_topic_options(callback: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what becomes of inactive topics, joined into the argument ``policies``."""

    @wraps(callback)
    def joined(*args: Any, enable: bool, disable: bool, seconds: int, mode: str, **rest: Any) -> Any:
        if enable == disable:
            raise click.UsageError(
                "Need to specify either enable-delete-while-inactive or disable-delete-while-inactive"
            )
        return callback(*args, policies=InactiveTopicPolicies(mode, seconds, enable), **rest)

    for option in reversed(_INACTIVE_TOPIC_OPTIONS):
        joined = option(joined)
    return joined


_INACTIVE_TOPIC_OPTIONS = (
    click.option("-e", "--enable-delete-while-inactive", "enable", is_flag=True, help="Delete inactive topics."),
    click.option("-d", "--disable-delete-while-inactive", "disable", is_flag=True, help="Keep inactive topics."),
    click.option(
        "-t",
        "--max-inactive-duration",
        "seconds",
        type=TIME,
        required=True,
        help="How long a topic stays when nobody needs it: 1s, 10s, 1m, 5h, 3d.",
    ),
    click.option(
        "-m",
        "--delete-mode",
        "mode",
        type=click.Choice([DELETE_WHEN_NO_SUBSCRIPTIONS, DELETE_WHEN_CAUGHT_UP]),
        required=True,
        help="What keeps a topic: any subscription, or only one that has messages to come.",
    ),
)


@_policy_command("set-inactive-topic-policies")
@inactive_topic_options
async def set_inactive_topic_policies(admin: AdminClient, topic: TopicName, policies: InactiveTopicPolicies) -> None:
    """Say whether this topic is deleted when nobody needs it, and after which time."""
    await admin.topics.set_inactive_topic_policies(topic, policies)


@_policy_command("get-inactive-topic-policies")
@_applied
async def get_inactive_topic_policies(admin: AdminClient, topic: TopicName, applied: bool) -> None:
    """Print what is set for this topic, null if its namespace decides."""
    policies = await admin.topics.inactive_topic_policies(topic, applied=applied)
    print_json(policies and policies.to_json())


@_policy_command("remove-inactive-topic-policies")
async def remove_inactive_topic_policies(admin: AdminClient, topic: TopicName) -> None:
    """Let the namespace decide again."""
    await admin.topics.remove_inactive_topic_policies(topic)
