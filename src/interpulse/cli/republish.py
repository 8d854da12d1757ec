"""Command ``republish``: publish the messages of a topic, such as dead letters, to another one without losing any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.messaging import messaging_options, run_with_client, warn_if_not_retained, web_service_option
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.cli.support.params import COUNT, TOPIC
from interpulse.model.errors import OperationTimeout
from interpulse.terminal.option_groups import option

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.messages import Message, OutgoingMessage
    from interpulse.client.producing.producer import Producer
    from interpulse.model.names import TopicName

_SUBSCRIPTION: Final = "interpulse-republish"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=TOPIC)
@click.argument("target", type=TOPIC)
@option(
    "-s --subscription-name subscription",
    "Subscription of SOURCE that remembers what was published; it begins at the first message.",
    default=_SUBSCRIPTION,
)
@option("-n --num-messages count", "At most so many; 0 = all.", COUNT, 0)
@option(
    "--idle-seconds", "End when SOURCE had no other message for this long.", click.FloatRange(min=0, min_open=True), 3
)
@web_service_option
@messaging_options
def republish(source: TopicName, target: TopicName, **flags: Any) -> None:
    """Publish the messages of SOURCE to TARGET.

    A message of SOURCE is acknowledged when the broker has stored its copy. If the command is interrupted, run it again
    to continue; at worst one message comes twice. Key, properties, event time and schema stay. Properties of dead
    letters about their past are removed, so that they are retried as often as new messages.

    Warns if TARGET has neither a subscription nor retention, provided its web service is known.
    """
    if source in (target, target.base) or target == source.base:
        raise click.UsageError(
            f"{source} and {target} are the same topic: what is published would come again, without end"
        )
    settings = ConnectionSettings.resolve(flags)
    count, idle_ms = flags["count"], int(flags["idle_seconds"] * 1000)

    async def copy(client: Client) -> None:
        consumer = await client.subscribe(
            str(source), flags["subscription"], initial_position="earliest", subscription_type="failover"
        )
        producers: dict[bytes | None, Producer] = {}
        done = 0
        while not count or done < count:
            try:
                message = await consumer.receive(timeout_ms=idle_ms)
            except OperationTimeout:
                break
            if message.schema_version not in producers:
                producers[message.schema_version] = await _producer(client, target, message)
                if len(producers) == 1:  # TARGET exists now, and no message of SOURCE is acknowledged yet
                    await warn_if_not_retained(settings, target)
            await producers[message.schema_version].send(_copied(message))
            consumer.acknowledge(message)
            done += 1
        click.echo(f"{done} messages of {source} were published to {target}")

    run_with_client(flags, copy)


async def _producer(client: Client, target: TopicName, message: Message) -> Producer:
    stored = await client.get_schema(message.topic, message.schema_version) if message.schema_version else None
    schema = None if stored is None else stored.schema
    timeout_ms = client.config.operation_timeout_ms
    return await client.create_producer(str(target), schema=schema, batching_enabled=False, send_timeout_ms=timeout_ms)


def _copied(message: Message) -> OutgoingMessage:
    from interpulse.client.consuming.dead_letters import LETTER_PROPERTIES
    from interpulse.client.messages import OutgoingMessage

    return OutgoingMessage(
        message.content,
        message.key_bytes if message.key_is_binary else message.key,
        {name: value for name, value in message.properties.items() if name not in LETTER_PROPERTIES},
        message.event_time_ms,
        message.ordering_key,
    )
