"""Commands of ``topics`` for maintenance: unload, trim, truncate, terminate, compact."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from interpulse.cli.support.command_lists import topic_command
from interpulse.cli.support.running import CommandFailed
from interpulse.model.errors import NotAllowed
from interpulse.model.names import TopicName
from interpulse.terminal.output import print_text, print_value

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

UPKEEP_COMMANDS: list[click.Command] = []
"""Every command of this module."""

_ASK_AGAIN_SECONDS: Final = 1.0
_COMPACTION: Final = {
    "NOT_RUN": "Compaction has not been run for {topic} since broker startup",
    "RUNNING": "Compaction is currently running",
    "SUCCESS": "Compaction was a success",
}

_topic_command = partial(topic_command, UPKEEP_COMMANDS)


@_topic_command("unload")
async def unload_topic(admin: AdminClient, topic: TopicName) -> None:
    """Close a topic in its broker. The next client loads it again."""
    await admin.topics.unload(topic)


@_topic_command("trim-topic")
async def trim_topic(admin: AdminClient, topic: TopicName) -> None:
    """Delete messages that no subscription and no policy needs, immediately."""
    await admin.topics.trim(topic)


@_topic_command("truncate")
async def truncate_topic(admin: AdminClient, topic: TopicName) -> None:
    """Move every subscription to the end and delete the messages."""
    await admin.topics.truncate(topic)


@_topic_command("terminate")
async def terminate_topic(admin: AdminClient, topic: TopicName) -> None:
    """Terminate a topic, which then takes no more messages."""
    try:
        last = await admin.topics.terminate(topic)
    except NotAllowed as error:
        if topic.is_persistent:
            error.add_note("partitioned topics are terminated by topics partitioned-terminate")
        raise
    print_value({"lastMessageId": str(last)}, f"Topic successfully terminated at {last}")


@_topic_command("partitioned-terminate")
async def terminate_partitioned_topic(admin: AdminClient, topic: TopicName) -> None:
    """Terminate all partitions of a topic, which then take no more messages."""
    ends = {topic.partition(index): last for index, last in (await admin.topics.terminate_partitioned(topic)).items()}
    lines = [f"Topic {partition} successfully terminated at {last}" for partition, last in ends.items()]
    print_value({str(partition): str(last) for partition, last in ends.items()}, "\n".join(lines))


@_topic_command("compact")
async def compact_topic(admin: AdminClient, topic: TopicName) -> None:
    """Start the compaction of a topic. Readers of the compacted topic see the newest message of each key."""
    await admin.topics.compact(topic)
    print_text(f"Topic compaction requested for {topic}")


@_topic_command("compaction-status")
@click.option("-w", "--wait-complete", "awaited", is_flag=True, help="Wait until the compaction has ended.")
async def compaction_status(admin: AdminClient, topic: TopicName, awaited: bool) -> None:
    """Print the state of the compaction of a topic."""
    import asyncio

    found = await admin.topics.compaction_status(topic)
    while awaited and found["status"] == "RUNNING":
        await asyncio.sleep(_ASK_AGAIN_SECONDS)
        found = await admin.topics.compaction_status(topic)
    if found["status"] == "ERROR":
        raise CommandFailed(f"Error compacting {topic}: {found.get('lastError') or 'the broker gives no reason'}")
    print_value(found, _COMPACTION.get(found["status"], str(found["status"])).format(topic=topic))
