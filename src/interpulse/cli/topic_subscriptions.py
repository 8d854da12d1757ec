"""The commands of ``topics`` that are about subscriptions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.output import print_lines
from interpulse.cli.params import MESSAGE_ID, PAIRS, TIME, TOPIC, joined_pairs
from interpulse.cli.running import admin_command
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName

if TYPE_CHECKING:
    from interpulse.client.admin import AdminClient

__all__ = ["SUBSCRIPTION_COMMANDS"]

SUBSCRIPTION_COMMANDS: list[click.Command] = []
"""Every command of this module."""

_subscription = click.option("-s", "--subscription", required=True, help="Name of the subscription.")


def _topic_command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command whose first argument is the topic."""

    def register(callback: Callable[..., Any]) -> click.Command:
        with_topic = click.argument("topic", type=TOPIC)(admin_command(callback))
        command = click.command(name)(with_topic)
        SUBSCRIPTION_COMMANDS.append(command)
        return command

    return register


@_topic_command("subscriptions")
async def list_subscriptions(admin: AdminClient, topic: TopicName) -> None:
    """List the subscriptions of a topic."""
    print_lines(await admin.topics.subscriptions(topic))


@_topic_command("create-subscription")
@_subscription
@click.option(
    "-m", "--messageId", "message_id", type=MESSAGE_ID, default="latest", help="latest, earliest or ledgerId:entryId."
)
@click.option("-r", "--replicated", is_flag=True, help="Let other clusters know how far it is.")
@click.option("-p", "--property", "properties", type=PAIRS, multiple=True, help="Properties: a=b.")
async def create_subscription(
    admin: AdminClient,
    topic: TopicName,
    subscription: str,
    message_id: MessageId,
    replicated: bool,
    properties: tuple[dict[str, str], ...],
) -> None:
    """Create a subscription, after the last message unless told otherwise."""
    await admin.topics.create_subscription(
        topic, subscription, message_id, replicated=replicated, properties=joined_pairs(properties)
    )


@_topic_command("unsubscribe")
@_subscription
@click.option("-f", "--force", is_flag=True, help="Disconnect its consumers first.")
async def delete_subscription(admin: AdminClient, topic: TopicName, subscription: str, force: bool) -> None:
    """Delete a subscription."""
    await admin.topics.delete_subscription(topic, subscription, force=force)


@_topic_command("reset-cursor")
@_subscription
@click.option("-t", "--time", "ago_seconds", type=TIME, help="Go back by this time: 30s, 100m, 3h, 2d, 5w.")
@click.option("-m", "--messageId", "message_id", type=MESSAGE_ID, help="Go to latest, earliest or ledgerId:entryId.")
@click.option("-e", "--exclude-reset-position", "excluded", is_flag=True, help="Continue after that message.")
async def reset_cursor(
    admin: AdminClient,
    topic: TopicName,
    subscription: str,
    ago_seconds: int | None,
    message_id: MessageId | None,
    excluded: bool,
) -> None:
    """Set a subscription back, or forward, to a time or a message."""
    if message_id is not None:
        await admin.topics.reset_cursor_to_message(topic, subscription, message_id, excluded=excluded)
    elif ago_seconds is not None:
        time_ms = int(time.time() * 1000) - ago_seconds * 1000
        await admin.topics.reset_cursor_to_time(topic, subscription, time_ms)
    else:
        raise click.UsageError("Either --time or --messageId has to be provided to reset cursor")


@_topic_command("skip")
@_subscription
@click.option("-n", "--count", type=click.IntRange(min=0), required=True, help="How many messages.")
async def skip(admin: AdminClient, topic: TopicName, subscription: str, count: int) -> None:
    """Acknowledge the next messages of a subscription."""
    await admin.topics.skip(topic, subscription, count)


def _clear_backlog_command(name: str) -> None:
    @_topic_command(name)
    @_subscription
    async def clear_backlog(admin: AdminClient, topic: TopicName, subscription: str) -> None:
        """Acknowledge the whole backlog of a subscription."""
        await admin.topics.skip_all(topic, subscription)


_clear_backlog_command("clear-backlog")
_clear_backlog_command("skip-all")
