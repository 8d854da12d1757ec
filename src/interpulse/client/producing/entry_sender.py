"""The producer of ready-made entries, for replication, backup and Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from interpulse.client.closing import AsyncCloses
from interpulse.client.producing.send_queue import Permit, ProducerRequest, SendQueue
from interpulse.client.producing.unconfirmed import Outgoing, Receipt
from interpulse.client.session import Session
from interpulse.model.errors import InvalidRequest, PulsarError
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.wire.entries import build_entry
from interpulse.wire.frames import FRAME_OVERHEAD

__all__ = ["EntrySender"]

_COMMAND_ROOM: Final = 64
"""More than a SEND command and its length ever need."""


class EntrySender(AsyncCloses):
    """Stores ready-made entries under a producer name of the caller's and with the caller's sequence ids.

    Sends are pipelined: at most ``window_entries`` and ``window_bytes`` are without receipt. A lost connection is
    opened again under the same name and everything unconfirmed is sent again in order; the receipts of what had been
    stored before then say :attr:`Receipt.is_duplicate` (if the topic de-duplicates). Any entry that the broker fails to
    store ends the sender: no later entry is sent again, the caller decides. (Pulsar's brokers fail entries like that
    when they unload a topic; ours only closes its producers.) While another producer holds the name, opening and
    reconnecting wait up to ``takeover_timeout_ms`` and then fail with ProducerBusy; a session with ``outages``
    reconnects as long as those say. An entry without a receipt after
    ``send_timeout_ms`` (0: never) fails with OperationTimeout. ``permit`` is asked before entries are put on the wire,
    for the first time or again; what it raises then ends the sender. ``schema_of_topic``, instead of ``schema``: it
    opens with the schema that the topic has at that time, as Pulsar's ``AUTO_PRODUCE_BYTES`` does.
    """

    def __init__(
        self,
        session: Session,
        topic: TopicName,
        name: str,
        *,
        schema: SchemaInfo | None = None,
        schema_of_topic: bool = False,
        window_entries: int = 10_000,
        window_bytes: int = 64 * 1024 * 1024,
        takeover_timeout_ms: int = 60_000,
        send_timeout_ms: int = 0,
        properties: Mapping[str, str] | None = None,
        encrypted: bool = False,
        permit: Permit | None = None,
    ) -> None:
        outages = session.outages
        request = ProducerRequest(
            name=name,
            schema=schema,
            schema_of_topic=schema_of_topic,
            properties=properties or {},
            encrypted=encrypted,
            busy_timeout_ms=takeover_timeout_ms,
            reconnect_timeout_ms=takeover_timeout_ms if outages is None else outages.timeout_ms,
            waits_for_room=outages is not None and outages.waits_for_room,
            resend_after_error=False,
        )
        self._send_queue = SendQueue(session, topic, request, send_timeout_ms=send_timeout_ms, permit=permit)
        self._permit = permit
        self._window_entries = window_entries
        self._window_bytes = window_bytes

    async def open(self) -> None:
        """Register the producer. Raises the refusal of the broker."""
        await self._send_queue.open()

    @property
    def topic(self) -> TopicName:
        return self._send_queue.topic

    @property
    def name(self) -> str:
        return self._send_queue.name

    @property
    def last_sequence_id(self) -> int:
        """The highest sequence id that the broker had for this name at the last opening; -1 for none."""
        return self._send_queue.last_sequence_id

    @property
    def schema(self) -> SchemaInfo | None:
        """The schema of its last opening: the caller's, or the topic's."""
        return self._send_queue.schema

    @property
    def schema_version(self) -> bytes:
        """The version that the broker gave the schema, empty without one."""
        return self._send_queue.schema_version

    @property
    def message_bytes_max(self) -> int:
        """The largest message that the broker takes."""
        return self._send_queue.message_bytes_max

    @property
    def pending_count(self) -> int:
        """Entries without receipt."""
        return self._send_queue.pending_count

    @property
    def failure(self) -> PulsarError | None:
        """The reason why the sender accepts no more entries; None while it works."""
        return self._send_queue.failure

    async def send(
        self,
        metadata: bytes,
        payload: bytes | memoryview,
        *,
        sequence_id: int,
        highest_sequence_id: int = 0,
        num_messages: int = 1,
        is_chunk: bool = False,
    ) -> asyncio.Future[Receipt]:
        """Send one entry, waiting only for room in the window. The future has its receipt.

        ``metadata`` is a serialized MessageMetadata; its sequence ids must be those given here, because brokers rebuild
        their de-duplication state from it. Raises the failure that ended the sender; for an entry that is too
        large for the broker InvalidRequest, after which others can be sent.
        """
        return await self.send_entry(
            build_entry(metadata, payload),
            sequence_id=sequence_id,
            highest_sequence_id=highest_sequence_id,
            num_messages=num_messages,
            is_chunk=is_chunk,
        )

    async def send_entry(
        self,
        entry: bytes,
        *,
        sequence_id: int,
        highest_sequence_id: int = 0,
        num_messages: int = 1,
        is_chunk: bool = False,
    ) -> asyncio.Future[Receipt]:
        """Send an entry with its checksum, as ``entries.build_entry`` makes it; see :meth:`send`."""
        sending = self.send_run(
            [sequence_id], [num_messages], [entry], highest_sequence_id=highest_sequence_id, is_chunk=is_chunk
        )
        return (await sending)[0]

    async def send_run(
        self,
        sequence_ids: Sequence[int],
        counts: Sequence[int],
        entries: Sequence[bytes],
        *,
        highest_sequence_id: int | None = None,
        is_chunk: bool = False,
    ) -> list[asyncio.Future[Receipt]]:
        """Send entries that follow each other, with the message count of each; see :meth:`send_entry`.

        The futures have their receipts, in order. They leave in groups: a window that is full has room for many again
        before any is sent, because brokers take many at once for little more than one. Several entries are no chunks,
        and without ``highest_sequence_id`` those of several messages have their sequence id as the highest one too.
        """
        futures: list[asyncio.Future[Receipt]] = []
        start, end = 0, len(entries)
        while start < end:
            after, before_bytes, size = start, 0, 0
            while after < end and after - start < self._window_entries // 2 and size < self._window_bytes // 2:
                self._check_size(len(entries[after]))
                before_bytes = size
                size += len(entries[after])
                after += 1
            entries_max, bytes_max = self._window_entries - (after - start) + 1, self._window_bytes - before_bytes
            await self._send_queue.room(entries_max=entries_max, bytes_max=bytes_max)
            if self._permit is not None:
                await self._permit(sequence_ids[start])
            group = slice(start, after)
            outgoing = Outgoing(entries[group], sequence_ids[group], counts[group], highest_sequence_id, is_chunk)
            futures.append(self._send_queue.send(outgoing))
            start = after
        return futures

    def _check_size(self, size: int) -> None:
        """Brokers close the connection on a frame above their limit, and would on every resend."""
        if size > self.message_bytes_max + FRAME_OVERHEAD - _COMMAND_ROOM:
            raise InvalidRequest(
                f"an entry of {size} bytes is above the limit of {self.topic}: its broker takes messages of "
                f"{self.message_bytes_max} bytes (maxMessageSize)"
            )

    async def drain(self) -> None:
        """Return when everything sent so far has its receipt. Raises the first failure."""
        await self._send_queue.confirmed()
        if self._send_queue.failure is not None:
            raise self._send_queue.failure

    async def close(self) -> None:
        """Close the producer, which frees its name. Entries without receipt fail with AlreadyClosed."""
        await self._send_queue.close()
