"""Parts shared by ``consume`` and ``read``: their options, and the output of messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.message_printer import MessagePrinter, SchemaReader
from interpulse.cli.messaging import Pace, chunk_options, key_reader, run_with_client
from interpulse.cli.support.params import AMOUNT, COUNT
from interpulse.terminal.option_groups import flag, option, option_group

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.messages import Message

_QUEUE_SIZE: Final = 1000
_CHUNKED_MAX: Final = 10

receiving_options = option_group(
    option("-n --num-messages count", "Number of messages; 0 = unlimited.", COUNT, 1),
    option("-r --rate", "Messages per second; 0 = without pause.", AMOUNT, 0),
    option("-q --queue-size", "Messages fetched ahead; 0 = the default, 1000.", COUNT, 0),
    option(
        "-st --schema-type",
        "Whether contents are printed as they are, or as values of the topic's schema.",
        click.Choice(["bytes", "auto_consume"]),
        "bytes",
    ),
    flag("--hex hexadecimal", "Print contents in hexadecimal."),
    flag("--hide-content", "Print the number of messages only."),
    option("-o --output form", "Print one JSON object per message and line instead.", click.Choice(["json"])),
    flag("-mp --print-metadata", "Print ids, times and origin too."),
    chunk_options,
    option(
        "-ca --crypto-failure-action crypto_failure_action",
        "What becomes of messages that cannot be decrypted: stop, leave out, or print them as they are.",
        click.Choice(["FAIL", "DISCARD", "CONSUME"], case_sensitive=False),
        "FAIL",
    ),
    option(
        "-ekv --encryption-key-value key_value",
        "The private key of encrypted messages: a PEM file, also as file:///path, or data:application/x-pem-file;"
        "base64,KEY, which others may see.",
        metavar="FILE",
    ),
    option("-pm --pool-messages pooled", None, click.BOOL, hidden=True),
)
"""Options that pulsar-client has for both."""


class ReceivingOptions:
    """Parsed options of a receiving command."""

    def __init__(self, flags: dict[str, Any]) -> None:
        """Remove the options from ``flags``. Raise CommandFailed for keys without their dependencies."""
        key_value = flags.pop("key_value")
        if flags.pop("pooled") is not None:
            click.echo("-pm has no effect here: there is no pool of messages", err=True)
        self._count: int = flags.pop("count")
        self._pace = Pace(flags.pop("rate"))
        self._by_schema = flags.pop("schema_type") == "auto_consume"
        self.printer = MessagePrinter(
            flags.pop("hexadecimal"),
            flags.pop("hide_content"),
            flags.pop("print_metadata"),
            flags.pop("form") == "json",
        )
        self.oldest_chunks_acknowledged: bool = flags.pop("oldest_chunks_acknowledged")
        self.of_client: dict[str, Any] = {
            "receiver_queue_size": flags.pop("queue_size") or _QUEUE_SIZE,
            "chunked_messages_max": flags.pop("chunked_max") or _CHUNKED_MAX,
            "crypto_failure_action": flags.pop("crypto_failure_action").lower(),
            "crypto_key_reader": None if key_value is None else key_reader(private=key_value),
        }
        """Settings of the consumer or reader."""

    async def messages(self, receive: Callable[[], Awaitable[Message]]) -> AsyncIterator[Message]:
        """Yield the requested number of messages at the requested rate. Print each before taking the next."""
        while not self._count or self.printer.count < self._count:
            await self._pace.wait()
            yield await receive()

    def schemas(self, client: Client) -> SchemaReader | None:
        """Return the schemas for the printer, or None to print contents as they are."""
        return SchemaReader(client) if self._by_schema else None

    def run(self, flags: dict[str, Any], call: Callable[[Client], Coroutine[Any, Any, None]], done: str) -> None:
        """Run ``call`` with an open client, and print how many messages were ``done``."""

        async def counted(client: Client) -> None:
            try:
                await call(client)
            finally:
                click.echo(f"{self.printer.count} messages successfully {done}", err=True)

        try:
            run_with_client(flags, counted)
        except KeyboardInterrupt:
            if self._count:  # without a count, this is how it ends
                raise
