"""Source entries that a topic-partition of the target holds, read from the marks that replicators leave."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final, NamedTuple

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.session import Session
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.copy import source_positions
from interpulse.spark.writing.broker_target import last_position
from interpulse.wire import pulsar_api_pb2 as pb

_TAILS: Final = (100, 10_000, None)
"""Numbers of last entries to look at, None for all: others may have published behind the last copy."""
_BUFFER_BYTES: Final = 1 << 20


class CopiedEntry(NamedTuple):
    """A replicated entry, with its positions here and on its original cluster."""

    there: Position
    source: Position
    origin: str
    producer: str


async def last_copied(
    session: Session,
    topic: TopicName,
    is_wanted: Callable[[CopiedEntry], bool],
    *,
    tails: Sequence[int | None] = _TAILS,
) -> Position | None:
    """Return the source position of the last matching entry, or None if the end of the topic has none.

    Raises TopicNotFound.
    """
    end = await last_position(session, topic)
    if end.entry < 0:
        return None
    for tail in tails:
        after = EARLIEST if tail is None else Position(end.ledger, max(-1, end.entry - tail))
        matching = [entry.source async for entry in copied_entries(session, topic, after, end) if is_wanted(entry)]
        if matching:
            return max(matching)
    return None


async def copied_entries(
    session: Session, topic: TopicName, after: Position, upto: Position, *, buffer_bytes: int = _BUFFER_BYTES
) -> AsyncGenerator[CopiedEntry]:
    """Yield the entries of ``(after, upto]`` that name their origin: our copies, and those of Pulsar 4 and later."""
    async with EntryReader(
        session, topic, after=after, upto=upto, buffer_bytes=buffer_bytes, subscription_prefix="interpulse-lag"
    ) as reader:
        await reader.open()
        async for entry in reader:
            copied = _copied(entry.position, entry.parsed.metadata)
            if copied is not None:
                yield copied


def _copied(there: Position, metadata: pb.MessageMetadata) -> CopiedEntry | None:
    positions = source_positions(metadata)
    if not positions:
        return None
    return CopiedEntry(there, positions[-1], metadata.replicated_from, metadata.producer_name)
