"""Copies of a topic as a replicator makes them, and altered ones: what `interpulse verify` is there to find."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from interpulse.client.client import Client
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import TopicName
from interpulse.replication.copy import EntryMarker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support.pipeline_turns import last_position


class Original(NamedTuple):
    """An entry of the source."""

    position: Position
    metadata: bytes
    payload: bytes


Alteration = Callable[[Sequence[Original]], Sequence[Original]]


async def copy_partition(
    source_url: str, target_url: str, source: str, target: str, *, cluster: str = "east", alter: Alteration = list
) -> None:
    """Write the entries of a topic-partition to another one, marked as copies from a cluster."""
    async with Client(source_url) as here, Client(target_url) as there:
        end = await last_position(here.session, TopicName.parse(source))
        originals: list[Original] = []
        async with await here.create_entry_reader(source, after=EARLIEST, upto=end) as reader:
            while entries := await reader.read_batch():
                parsed = [(entry.position, entry.parsed) for entry in entries]
                originals += [Original(at, each.metadata_bytes, bytes(each.payload)) for at, each in parsed]
        name = f"copies-{secrets.token_hex(4)}"
        marker = EntryMarker(name, cluster)
        async with await there.create_entry_sender(target, name) as sender:
            for number, (position, raw, payload) in enumerate(alter(originals)):
                metadata = pb.MessageMetadata.FromString(raw)
                marked = marker.mark(raw, metadata, position, number)
                await sender.send(marked, payload, sequence_id=number, num_messages=metadata.num_messages_in_batch)
            await sender.drain()
