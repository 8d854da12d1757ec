"""Producer of prebuilt entries, for replication, backup and Spark."""

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

_COMMAND_ROOM: Final = 64
"""Upper bound for the size of a SEND command with its length."""


class EntrySender(AsyncCloses):
    """Producer of prebuilt entries with the caller's producer name and sequence ids.

    Sends are pipelined: at most ``window_entries`` and ``window_bytes`` are without receipt. After a lost connection
    the sender reconnects under the same name and sends everything unconfirmed again, in order. If the topic
    de-duplicates, the receipts of entries stored before have :attr:`Receipt.is_duplicate`.

    An entry that the broker fails to store ends the sender, and no later entry is sent again. (Apache Pulsar fails
    entries like that when it unloads a topic; Interpulse only closes the producers.) An entry without a receipt after
    ``send_timeout_ms`` (0 = never) fails with OperationTimeout.

    While another producer holds the name, opening and reconnecting wait up to ``takeover_timeout_ms`` and then fail
    with ProducerBusy. In a session with ``outages``, these limit reconnecting.

    ``permit`` is called before entries are written, for the first time or again; its exception ends the sender.
    ``schema_of_topic`` replaces ``schema``: the sender opens with the topic's current schema, like Pulsar's
    ``AUTO_PRODUCE_BYTES``.
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
        """Register the producer. Raise the broker's refusal."""
        await self._send_queue.open()

    @property
    def topic(self) -> TopicName:
        return self._send_queue.topic

    @property
    def name(self) -> str:
        return self._send_queue.name

    @property
    def last_sequence_id(self) -> int:
        """Highest sequence id that the broker had for this name at the last opening; -1 for none."""
        return self._send_queue.last_sequence_id

    @property
    def schema(self) -> SchemaInfo | None:
        """Schema of the last opening: the caller's or the topic's."""
        return self._send_queue.schema

    @property
    def schema_version(self) -> bytes:
        """Version that the broker gave the schema, empty without one."""
        return self._send_queue.schema_version

    @property
    def message_bytes_max(self) -> int:
        """Maximum message size that the broker accepts."""
        return self._send_queue.message_bytes_max

    @property
    def pending_count(self) -> int:
        """Number of entries without receipt."""
        return self._send_queue.pending_count

    @property
    def failure(self) -> PulsarError | None:
        """Reason why the sender accepts no more entries; None while it works."""
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
        """Send one entry, waiting only for room in the window. Return a future with its receipt.

        ``metadata`` is a serialized MessageMetadata. Its sequence ids must equal the arguments, because brokers rebuild
        their de-duplication state from it. Raise the failure that ended the sender. Raise InvalidRequest for an entry
        that is too large for the broker; others can still be sent.
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
        """Send an entry with its checksum, as ``entries.build_entry`` builds it; see :meth:`send`."""
        sending = self.send_run(
            [sequence_id], [num_messages], [entry], highest_sequence_id=highest_sequence_id, is_chunk=is_chunk
        )
        return (await sending)[0]

    async def send_marker(self, sequence_id: int, entry: bytes) -> asyncio.Future[Receipt]:
        """Send a marker of a broker, which brokers do not de-duplicate; see :meth:`send_entry`.

        Its receipt has ``sequence_id``, which does not count as one of the producer. A lost connection may lose the
        marker: its receipt is empty then.
        """
        await self._send_queue.room(entries_max=self._window_entries, bytes_max=self._window_bytes)
        if self._permit is not None:
            await self._permit(sequence_id)
        return self._send_queue.send(Outgoing([entry], [sequence_id], [1], is_marker=True))

    async def send_run(
        self,
        sequence_ids: Sequence[int],
        counts: Sequence[int],
        entries: Sequence[bytes],
        *,
        highest_sequence_id: int | None = None,
        is_chunk: bool = False,
    ) -> list[asyncio.Future[Receipt]]:
        """Send consecutive entries, with the message count of each; see :meth:`send_entry`.

        Return futures with the receipts, in order. The entries are sent in groups: if the window is full, the sender
        waits for room for many, because brokers store many together for little more than one. Several entries must not
        be chunks. Without ``highest_sequence_id``, an entry of several messages has its sequence id as the highest one
        too.
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
        """Refuse an oversized entry. The broker would close the connection on its frame, and on every resend."""
        if size > self.message_bytes_max + FRAME_OVERHEAD - _COMMAND_ROOM:
            raise InvalidRequest(
                f"an entry of {size} bytes is above the limit of {self.topic}: its broker takes messages of "
                f"{self.message_bytes_max} bytes (maxMessageSize)"
            )

    async def drain(self) -> None:
        """Wait until everything sent so far has its receipt. Raise the first failure."""
        await self._send_queue.confirmed()
        if self._send_queue.failure is not None:
            raise self._send_queue.failure

    async def close(self) -> None:
        """Close the producer and release its name. Entries without receipt fail with AlreadyClosed."""
        await self._send_queue.close()
