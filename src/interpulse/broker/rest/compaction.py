"""REST calls about compaction: start it and get its status."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.http.at_owner import at_owner, by_partition
from interpulse.broker.rest.http.call import DONE, TOPIC_PATH, Answer, Call, Route, answer_json
from interpulse.broker.rest.http.opening import open_each, open_persistent
from interpulse.broker.rest.http.required_permissions import on_topic
from interpulse.model.errors import Conflict, OperationNotAllowed, TopicNotFound
from interpulse.model.permissions import TopicOperation


async def compact(call: Call) -> Answer:
    """Start compacting the topic or all its partitions. Raise Conflict if one is being compacted already.

    A compacted copy needs space beside the original, so compaction is refused while the disk is full.
    """
    _check_stored(call)
    disk_space = call.context.instruments.disk_space
    if disk_space is not None:
        disk_space.check()
    conflicts: list[Conflict] = []
    async for opened in open_each(call):
        topic = await open_persistent(call, opened.name)
        try:
            topic.compaction.begin()
        except Conflict as conflict:
            conflicts.append(conflict)
    if conflicts:
        raise conflicts[0]
    return DONE


async def status(call: Call) -> Answer:
    """Return the status of the compaction. As in Pulsar, a partitioned topic has none of its own."""
    _check_stored(call)
    topic = call.topic
    if await call.context.lifecycle.partitions(topic, create=False):
        raise TopicNotFound(f"Topic {topic} not found: it is partitioned, ask for the status of its partitions")
    return answer_json((await open_persistent(call, topic)).compaction.shown())


def _check_stored(call: Call) -> None:
    if not call.topic.is_persistent:
        raise OperationNotAllowed("A non-persistent topic cannot be compacted: it keeps no messages")


_PATH: Final = f"{TOPIC_PATH}/compaction"

ROUTES: Final = (
    at_owner(Route("PUT", _PATH, compact, on_topic(TopicOperation.COMPACT)), by_partition),
    at_owner(Route("GET", _PATH, status, on_topic(TopicOperation.COMPACT))),
)
