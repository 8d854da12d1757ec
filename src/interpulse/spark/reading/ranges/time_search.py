"""Search for the first messages of a topic from a time on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from interpulse.client.consuming.reader import Reader, ReaderConfig
from interpulse.client.session import Session
from interpulse.model.ids import Position
from interpulse.model.names import TopicName

_CONCURRENT_MAX: Final = 64


async def positions_before(
    session: Session, times: Mapping[str, int], *, prefix: str, read_compacted: bool = False
) -> dict[str, Position]:
    """Return the position before the first message published at or after a time (ms since 1970), by topic-partition.

    Topic-partitions without such a message are left out. The broker searches, as when a consumer seeks by time.
    """
    slots = asyncio.Semaphore(_CONCURRENT_MAX)

    async def search(name: str, time_ms: int) -> Position | None:
        async with slots:
            return await _before(session, TopicName.parse(name), time_ms, prefix, read_compacted)

    positions = await asyncio.gather(*(search(name, time_ms) for name, time_ms in times.items()))
    return {name: position for name, position in zip(times, positions, strict=True) if position is not None}


async def _before(
    session: Session, topic: TopicName, time_ms: int, prefix: str, read_compacted: bool
) -> Position | None:
    config = ReaderConfig(
        force_topic_creation=False,
        receiver_queue_size=1,
        subscription_prefix=prefix,
        read_compacted=read_compacted,
        crypto_failure_action="consume",
        auto_update_partitions=False,
    )
    async with Reader(session, [topic], config) as reader:
        await reader.open()
        await reader.seek(time_ms)
        if not await reader.has_message_available():
            return None
        first = (await reader.read_next(session.config.operation_timeout_ms)).id
    place = first.first_chunk or first.position
    return Position(place.ledger, place.entry - 1)
