"""Parts shared by commands that send or receive: options, an open client, a steady rate, keys, a warning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.admin.admin import connection_options
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.cli.support.params import COUNT
from interpulse.cli.support.running import UNUSABLE, CommandFailed, failure, open_admin
from interpulse.model.errors import PulsarError
from interpulse.model.extras import pip_install
from interpulse.model.names import TopicName
from interpulse.terminal.option_groups import Decorator, flag, option, option_group

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.encryption.key_reader import DefaultCryptoKeyReader

_WAITED_S: Final = 2.0
"""Time for the web service to answer before a warning."""

messaging_options = option_group(
    option("--url brokerServiceUrl", "Service URL, pulsar://localhost:6650 unless configured."),
    option("--listener-name", "Name of the advertised listener of the brokers."),
    option(
        "--timeout timeout_seconds",
        "Seconds to wait for the cluster at the start, and for the receipt of each message that is sent.",
        click.FloatRange(min=0, min_open=True),
        30,
    ),
    connection_options,
)
"""Options for the address, the timeout and the credentials."""

SUBSCRIPTION_TYPES: Final = {
    "Exclusive": "exclusive",
    "Shared": "shared",
    "Failover": "failover",
    "Key_Shared": "key-shared",
}
"""Subscription types of the client by their names in pulsar-client."""


def type_option(short: str) -> Decorator:
    """Return the option ``subscription_type``, one of `SUBSCRIPTION_TYPES`; ``short`` is its short form."""
    types = click.Choice(list(SUBSCRIPTION_TYPES), case_sensitive=False)
    return option(f"{short} --subscription-type", "Type of the subscription.", types, "Exclusive")


def start_option(short: str) -> Decorator:
    """Return the option ``position``, Latest or Earliest; ``short`` is its short form."""
    positions = click.Choice(["Latest", "Earliest"], case_sensitive=False)
    return option(f"{short} --subscription-position position", "Start of a new subscription.", positions, "Latest")


replicated_option = flag("-rs --replicated", "Have the position replicated to other clusters.")

chunk_options = option_group(
    option(
        "-mc --max_chunked_msg chunked_max",
        "Messages in chunks that may be incomplete at a time; 0 = the default, 10.",
        COUNT,
        0,
    ),
    flag(
        "-ac --auto_ack_chunk_q_full oldest_chunks_acknowledged",
        "Acknowledge the chunks of the oldest message when there are more of them.",
    ),
)
"""Options for chunked messages."""


web_service_option = option(
    "--admin-url webServiceUrl", "Web service URL, for the warning about messages that are not kept."
)
"""Address of the web service, for commands that warn."""


def run_with_client(flags: dict[str, Any], call: Callable[[Client], Coroutine[Any, Any, None]]) -> ConnectionSettings:
    """Run ``call`` with an open client. A failure becomes one line and an exit code."""
    timeout_ms = int(flags["timeout_seconds"] * 1000)
    settings = ConnectionSettings.resolve(flags)

    async def opened() -> None:
        async with open_client(settings, timeout_ms, flags["listener_name"]) as client:
            await call(client)

    try:
        asyncio.run(opened())
    except PulsarError as error:
        raise failure(error) from error
    return settings


def open_client(settings: ConnectionSettings, timeout_ms: int, listener_name: str | None) -> Client:
    """Open a client that reports when it loses its cluster. The caller closes it. Raise UsageError for bad settings."""
    from interpulse.client.client import Client
    from interpulse.client.outages import Outages

    try:
        if settings.service_url.startswith("http"):
            from interpulse.client.transport.web_urls import parse_web_urls

            parse_web_urls(settings.service_url)
        return Client(
            settings.service_url,
            credentials=settings.credentials(),
            tls=settings.tls(),
            operation_timeout_ms=timeout_ms,
            lookup_timeout_ms=timeout_ms,
            listener_name=listener_name,
            outages=Outages(settings.service_url),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


class Pace:
    """Limiter to ``rate`` events per second, evenly spaced; 0 means no limit."""

    def __init__(self, rate: float) -> None:
        self._interval = 1 / rate if rate > 0 else 0.0
        self._next = 0.0

    async def wait(self) -> None:
        if not self._interval:
            return
        now = asyncio.get_running_loop().time()
        self._next = max(self._next, now)
        if self._next > now:
            await asyncio.sleep(self._next - now)
        self._next += self._interval


def key_reader(*, public: str | None = None, private: str | None = None) -> DefaultCryptoKeyReader:
    """Return the reader of the key of -ekv, for any key name. Raise CommandFailed if a dependency is missing."""
    if find_spec("cryptography") is None:
        raise CommandFailed(f"-ekv needs cryptography as well: {pip_install('encryption')}", UNUSABLE)
    from interpulse.client.encryption.key_reader import DefaultCryptoKeyReader

    return DefaultCryptoKeyReader(public, private)


async def warn_if_not_retained(settings: ConnectionSettings, topic: TopicName) -> None:
    """Warn if the topic has neither a subscription nor retention, if its web service answers in time."""
    web_url = settings.paired_admin_url
    if web_url is None or not topic.is_persistent:
        return
    with suppress(PulsarError, click.UsageError, TimeoutError):
        async with asyncio.timeout(_WAITED_S):
            not_retained = await _is_not_retained(settings, web_url, topic)
        if not_retained:
            click.echo(
                f"Warning: {topic} has neither a subscription nor retention: its messages can be deleted at any "
                "moment, and the topic with them a minute after the last client has disconnected. Create a "
                f"subscription first (interpulse-admin topics create-subscription {topic} -s NAME), or set retention.",
                err=True,
            )


async def _is_not_retained(settings: ConnectionSettings, web_url: str, topic: TopicName) -> bool:
    async with open_admin(settings, web_url) as admin:
        if await admin.topics.subscriptions(topic):
            return False
        retention = await admin.topic_policies.get(topic, "retention", applied=True)
        return retention is None or not (retention.time_minutes and retention.size_mb)
