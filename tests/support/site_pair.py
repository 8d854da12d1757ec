"""Two clusters with the same topic, and copies from the first one to the second, as a replicator makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interpulse.client import Client
from interpulse.model.ids import EARLIEST, Position
from interpulse.replication.copy import EntryMarker
from interpulse.testing.broker import InProcessBroker

TOPIC = "persistent://public/default/orders"
_LANE = "pulsar.repl.east-->west"


class SitePair:
    """Brokers ``east`` and ``west``. The ledgers of the topic have lower numbers on west."""

    def __init__(self, directory: Path, east_settings: dict[str, bool | int | str]) -> None:
        self.east = InProcessBroker(directory / "east", {"clusterName": "east", **east_settings})
        self.west = InProcessBroker(directory / "west", {"clusterName": "west"})
        self._copied = EARLIEST

    async def raise_ledgers(self) -> None:
        """Give the topic ledgers on east with numbers that it never gets on west."""
        async with Client(self.east.service_url) as client:
            for _ in range(5):
                async with await client.create_producer(TOPIC):
                    pass
                await asyncio.to_thread(self.east.admin.topics.unload, TOPIC)
        self.east.admin.topics.create_subscription(TOPIC, "unused")
        self.west.admin.topics.create(TOPIC)

    async def copy(self, upto: Position, *, marked: bool = True) -> None:
        """Copy what was published on east up to a position. Without ``marked``, copies do not name their source."""
        marker = EntryMarker(_LANE, "east")
        async with Client(self.east.service_url) as source, Client(self.west.service_url) as target:
            sender = await target.create_entry_sender(TOPIC, _LANE)
            reader = await source.create_entry_reader(TOPIC, after=self._copied, upto=upto)
            async with sender, reader:
                async for entry in reader:
                    number = entry.position.ledger << 28 | entry.position.entry
                    parsed = entry.parsed
                    raw = parsed.metadata_bytes
                    if marked:
                        raw = marker.mark(raw, parsed.metadata, entry.position, number)
                    await sender.send(
                        raw, parsed.payload, sequence_id=number, num_messages=parsed.metadata.num_messages_in_batch
                    )
                await sender.drain()
        self._copied = upto


@contextmanager
def site_pair(directory: Path, east_settings: dict[str, bool | int | str] | None = None) -> Iterator[SitePair]:
    """Start both brokers. Either may be stopped earlier."""
    pair = SitePair(directory, east_settings or {})
    with pair.east, pair.west:
        yield pair
