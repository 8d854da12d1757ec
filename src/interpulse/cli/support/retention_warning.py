"""Warning about messages for a topic that keeps none."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from interpulse.cli.support.running import open_admin
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from interpulse.terminal.option_groups import option

if TYPE_CHECKING:
    from interpulse.cli.support.connection.settings import ConnectionSettings

_WAITED_S: Final = 2.0

web_service_option = option(
    "--admin-url webServiceUrl", "Web service URL, for the warning about messages that are not kept."
)
"""Address of the web service, for commands that warn."""


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
