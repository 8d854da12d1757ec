"""Command ``read``: print messages without a subscription, with the arguments and output of ``pulsar-client read``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.messaging import messaging_options
from interpulse.cli.receiving import ReceivingOptions, receiving_options
from interpulse.cli.support.params import MESSAGE_ID, TOPIC
from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.model.ids import MessageId
    from interpulse.model.names import TopicName


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("topic", type=TOPIC)
@option(
    "-m --start-message-id start", "Where reading begins: latest, earliest, or ledgerId:entryId.", MESSAGE_ID, "latest"
)
@flag("-i --start-message-id-inclusive included", "Read the message of -m too.")
@receiving_options
@messaging_options
def read(topic: TopicName, start: MessageId, included: bool, **flags: Any) -> None:
    """Print messages of TOPIC without leaving a subscription behind."""
    options = ReceivingOptions(flags)

    async def print_all(client: Client) -> None:
        reader = await client.create_reader(str(topic), start, start_included=included, **options.of_client)
        schemas = options.schemas(client)
        async for message in options.messages(reader.read_next):
            await options.printer.show(message, schemas)

    options.run(flags, print_all, "read")
