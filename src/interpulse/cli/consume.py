"""Command ``consume``: receive and print messages, with the arguments and the output of ``pulsar-client consume``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.messaging import SUBSCRIPTION_TYPES, messaging_options, replicated_option, start_option, type_option
from interpulse.cli.receiving import ReceivingOptions, receiving_options
from interpulse.cli.support.params import COUNT
from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import TopicName
from interpulse.terminal.option_groups import flag, option, option_group

if TYPE_CHECKING:
    from interpulse.client.client import Client

_SUBSCRIPTION: Final = "interpulse-consume"

_subscription_options = option_group(
    option("-s --subscription-name subscription", "Name of the subscription.", default=_SUBSCRIPTION),
    type_option("-t"),
    option(
        "-m --subscription-mode mode",
        "Whether the subscription outlives its consumers.",
        click.Choice(["Durable", "NonDurable"], case_sensitive=False),
        "Durable",
    ),
    start_option("-p"),
    option(
        "-stp --start-timestamp",
        "Begin with messages published then, in ms since 1970; 0 = where the subscription is.",
        COUNT,
        0,
    ),
    option("-etp --end-timestamp", "End before a message published later than then.", COUNT),
    replicated_option,
    flag("--regex", "TOPIC is a pattern: tenant/namespace/regex; it includes topics that are created later."),
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("topic")
@_subscription_options
@receiving_options
@messaging_options
def consume(
    topic: str,
    subscription: str,
    subscription_type: str,
    mode: str,
    position: str,
    start_timestamp: int,
    end_timestamp: int | None,
    replicated: bool,
    regex: bool,
    **flags: Any,
) -> None:
    """Receive messages from TOPIC, print and acknowledge them."""
    if end_timestamp is not None and end_timestamp < start_timestamp:
        raise click.UsageError("end timestamp should larger than start timestamp.")
    options = ReceivingOptions(flags)
    wanted = _pattern(topic) if regex else _checked(topic)
    settings = options.of_client | {
        "subscription_type": SUBSCRIPTION_TYPES[subscription_type],
        "durable": mode == "Durable",
        "initial_position": position.lower(),
        "replicate_subscription_state": replicated,
        "oldest_chunks_acknowledged": options.oldest_chunks_acknowledged,
    }

    async def receive(client: Client) -> None:
        consumer = await client.subscribe(wanted, subscription, **settings)
        if not consumer.topics:
            click.echo(f"no topic matches {topic} so far", err=True)
        if start_timestamp:
            await consumer.seek(start_timestamp)
        schemas = options.schemas(client)
        async for message in options.messages(consumer.receive):
            if end_timestamp is not None and message.publish_time_ms > end_timestamp:
                break
            await options.printer.show(message, schemas)
            consumer.acknowledge(message)

    options.run(flags, receive, "consumed")


def _checked(topic: str) -> str:
    try:
        return str(TopicName.parse(topic))
    except InvalidTopicName as error:
        raise click.UsageError(str(error)) from error


def _pattern(text: str) -> re.Pattern[str]:
    from interpulse.client.consuming.topic_discovery import TopicsPattern

    try:
        pattern = re.compile(text)
        TopicsPattern.of(pattern)
    except re.error as error:
        raise click.UsageError(f"{text!r} is not a regular expression: {error}") from error
    except InvalidTopicName as error:
        raise click.UsageError(str(error)) from error
    return pattern
