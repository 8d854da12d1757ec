"""Commands of ``topics`` about subscriptions."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from interpulse.cli.admin.wide_lists import print_subscriptions
from interpulse.cli.policies.policy_forms import one_of, switch
from interpulse.cli.support.call_commands import call_command, pairs_option, topic_argument, topic_command
from interpulse.cli.support.params import MESSAGE_ID, TIME
from interpulse.clock import now_ms
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName
from interpulse.terminal.output import is_wide, print_json, print_lines, print_value

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

SUBSCRIPTION_COMMANDS: list[click.Command] = []
"""Every command of this module."""

_subscription = click.option("-s", "--subscription", required=True, help="Name of the subscription.")
_count = click.option("-n", "--count", type=click.IntRange(min=0), required=True, help="How many messages.")
_start = click.option(
    "-p", "--position", "start", type=MESSAGE_ID, help="Position of the first message: ledgerId:entryId."
)
_new_position = click.option(
    "-m",
    "--messageId",
    "position",
    type=MESSAGE_ID,
    default="latest",
    help="latest, earliest or ledgerId:entryId.",
)
_replicated = click.option("-r", "--replicated", is_flag=True, help="Replicate the position of the subscription.")
_properties = pairs_option("-p", "--property", "properties", help="Properties: a=b.")
_force = click.option("-f", "--force", is_flag=True, help="Disconnect its consumers first.")

_topic_command = partial(topic_command, SUBSCRIPTION_COMMANDS)
_call = partial(call_command, SUBSCRIPTION_COMMANDS.append, "topics", topic_argument)
_CLEAR: Final = "Acknowledge the whole backlog of a subscription."
_ANALYZE: Final = "Print counts of the backlog of a subscription. The broker reads all of it."

_call(
    "create-subscription",
    "create_subscription",
    "Create a subscription, after the last message by default.",
    _subscription,
    _new_position,
    _replicated,
    _properties,
)
_call("unsubscribe", "delete_subscription", "Delete a subscription.", _subscription, _force)
_call("skip", "skip", "Acknowledge the next messages of a subscription.", _subscription, _count)
_call("clear-backlog", "skip_all", _CLEAR, _subscription)
_call("skip-all", "skip_all", _CLEAR, _subscription)
_call(
    "get-replicated-subscription-status",
    "subscription_replicated",
    "Print, for a topic or for each partition, true if a subscription is marked as replicated.",
    _subscription,
    show=print_json,
)
_call("analyze-backlog", "analyze_backlog", _ANALYZE, _subscription, _start, show=print_json)


@_topic_command("subscriptions")
async def list_subscriptions(admin: AdminClient, topic: TopicName) -> None:
    """List the subscriptions of a topic.

    -o wide adds their types and statistics, for all partitions together.
    """
    names = await admin.topics.subscriptions(topic)
    if is_wide():
        await print_subscriptions(admin, topic, names)
    else:
        print_lines(names)


@_topic_command("reset-cursor")
@_subscription
@click.option("-t", "--time", "ago_seconds", type=TIME, help="Go back by this time: 30s, 100m, 3h, 2d, 5w.")
@click.option("-m", "--messageId", "message_id", type=MESSAGE_ID, help="Go to latest, earliest or ledgerId:entryId.")
@click.option("-e", "--exclude-reset-position", "excluded", is_flag=True, help="Continue after the message.")
async def reset_cursor(
    admin: AdminClient,
    topic: TopicName,
    subscription: str,
    ago_seconds: int | None,
    message_id: MessageId | None,
    excluded: bool,
) -> None:
    """Move a subscription back or forward to a time or a message."""
    if message_id is not None:
        await admin.topics.reset_cursor_to_message(topic, subscription, message_id, excluded=excluded)
    elif ago_seconds is not None:
        time_ms = now_ms() - ago_seconds * 1000
        await admin.topics.reset_cursor_to_time(topic, subscription, time_ms)
    else:
        raise click.UsageError("Either --time or --messageId has to be provided to reset cursor")


@_topic_command("expire-messages")
@_subscription
@click.option(
    "-t", "--expireTime", "--expire-time", "seconds", type=TIME, help="Age of the messages: seconds, or 3m, 2d."
)
@click.option("-p", "--position", "position", type=MESSAGE_ID, help="Position of the last message: ledgerId:entryId.")
@click.option(
    "-e",
    "--exclude-reset-position",
    "excluded",
    is_flag=True,
    help="Include the message behind the position, as Pulsar does.",
)
async def expire_messages(
    admin: AdminClient,
    topic: TopicName,
    subscription: str,
    seconds: int | None,
    position: MessageId | None,
    excluded: bool,
) -> None:
    """Acknowledge the old messages of a subscription."""
    if seconds is not None and position is not None:
        raise click.UsageError("Can't expire message by time and by message position at the same time.")
    if seconds is not None:
        await admin.topics.expire(topic, subscription, _not_negative(seconds))
    elif position is not None:
        await admin.topics.expire_upto(topic, subscription, position, excluded=excluded)
    else:
        raise click.UsageError(
            "Either time (--expireTime) or message position (--position) has to be provided to expire messages"
        )


@_topic_command("get-subscription-properties")
@_subscription
async def get_subscription_properties(admin: AdminClient, topic: TopicName, subscription: str) -> None:
    """Print the properties of a subscription."""
    properties = await admin.topics.subscription_properties(topic, subscription)
    print_value(properties, json.dumps(properties, separators=(",", ":"), ensure_ascii=False))


@_topic_command("update-subscription-properties")
@_subscription
@pairs_option("-p", "--property", "properties", help="Properties: a=b. They replace all others.")
@click.option("-c", "--clear", "cleared", is_flag=True, help="Remove all properties.")
async def update_subscription_properties(
    admin: AdminClient, topic: TopicName, subscription: str, properties: dict[str, str], cleared: bool
) -> None:
    """Replace the properties of a subscription."""
    if cleared == bool(properties):
        raise click.UsageError("Either --property or --clear has to be provided")
    await admin.topics.set_subscription_properties(topic, subscription, properties)


@_topic_command("set-replicated-subscription-status")
@_subscription
@switch("replication of the position")
async def set_replicated(admin: AdminClient, topic: TopicName, subscription: str, enable: bool, disable: bool) -> None:
    """Mark a subscription as replicated to other clusters, or remove the mark."""
    await admin.topics.set_subscription_replicated(topic, subscription, one_of(enable, disable))


@_topic_command("expire-messages-all-subscriptions")
@click.option(
    "-t", "--expireTime", "--expire-time", "seconds", type=TIME, required=True, help="Age of the messages: 90, 3m, 2d."
)
async def expire_messages_everywhere(admin: AdminClient, topic: TopicName, seconds: int) -> None:
    """Acknowledge the old messages of all subscriptions."""
    await admin.topics.expire_all(topic, _not_negative(seconds))


def _not_negative(seconds: int) -> int:
    if seconds < 0:
        raise click.UsageError(f"--expireTime must be 0 or more, not {seconds}")
    return seconds
