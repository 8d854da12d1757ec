"""Builder of rows from entries and messages: Arrow batches of the requested columns. No IO.

Entry mode has one row per broker entry, opaque. Message mode has one row per message: batches are decompressed and
parsed, column by column where many messages of batches follow each other. Only requested columns are decoded; in entry
mode without a decoded column the metadata is not parsed at all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import StructType

from interpulse.client.consuming.entry_reader import Entry
from interpulse.client.encryption.entries import Decryptor
from interpulse.client.encryption.key_reader import CryptoKeyReader
from interpulse.model.errors import CryptoError, NotSupported
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.spark.rows.columns import (
    ENTRY_WRITE_COLUMNS,
    Column,
    Layout,
    Message,
    key_of,
    value_of,
)
from interpulse.spark.rows.message_block import BlockRows, MessageBlock, arrow_array
from interpulse.spark.schemas.payload_decoder import Payload, PayloadDecoder, PayloadRun
from interpulse.wire.compression import decompress
from interpulse.wire.entries import ParsedEntry

_MESSAGES_MIN: Final = 32
"""Smallest number of messages, of batches behind each other, that are read column by column.

Arrow's calls cost as much as thirty messages one by one.
"""


@dataclass
class _Target:
    """One column under construction. ``values`` come after ``chunks``."""

    name: str
    column: Column
    type: pa.DataType
    values: list[Any] = field(default_factory=list)
    chunks: list[pa.Array] = field(default_factory=list)

    def add_chunk(self, chunk: pa.Array) -> None:
        if self.values:
            self.chunks.append(arrow_array(self.values, self.type))
            self.values = []
        self.chunks.append(chunk)

    def take(self) -> pa.Array:
        if self.values or not self.chunks:
            self.add_chunk(arrow_array([], self.type))
        chunks, self.chunks = self.chunks, []
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


class RowBuilder:
    """Collector of rows of one schema, which it returns as Arrow batches.

    ``decoder`` fills the columns that ``layout`` has for payloads; without it payloads are bytes. ``admits`` selects
    the messages that become rows. Without ``decryption`` encrypted messages stay as they are.
    """

    def __init__(
        self,
        schema: StructType,
        layout: Layout,
        decoder: PayloadDecoder | None = None,
        admits: Callable[[Message], bool] | None = None,
        decryption: Decryption | None = None,
    ) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        self._admits = admits
        self._decryption = decryption
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        columns = layout.metadata
        typed = () if layout.payload is None else layout.payload.names
        self._targets = [
            _Target(item.name, columns[item.name], self._arrow.field(item.name).type)
            for item in schema.fields
            if item.name not in typed
        ]
        self._by_name = {target.name: target for target in self._targets}
        self._decoder = decoder if any(item.name in typed for item in schema.fields) else None
        self._payloads: list[Payload | PayloadRun] = []
        self._blocks: list[MessageBlock] = []
        self._entry_mode = layout.mode == "entry"
        self._opaque = self._entry_mode and all(target.name in ENTRY_WRITE_COLUMNS for target in self._targets)
        self.rows = 0
        self.bytes = 0

    def add(self, topic: str, entries: Sequence[Entry]) -> None:
        """Append the rows of some entries of one topic-partition, in order.

        Raises NotSupported for entries that message mode cannot parse.
        """
        if self._opaque:
            self._add_opaque(topic, entries)
            return
        partition = TopicName.parse(topic).partition_index
        for source in entries:
            self._add_parsed(topic, partition, source)

    def _add_opaque(self, topic: str, entries: Sequence[Entry]) -> None:
        """Append the columns that replication asks for, column by column, in half the time of row by row."""
        parsed = [entry.parsed for entry in entries]
        fill: dict[str, Callable[[], Iterable[Any]]] = {
            "__topic": lambda: [topic] * len(entries),
            "__ledgerId": lambda: [entry.position.ledger for entry in entries],
            "__entryId": lambda: [entry.position.entry for entry in entries],
            "__metadata": lambda: [entry.metadata_bytes for entry in parsed],
            "__payload": lambda: [bytes(entry.payload) for entry in parsed],
        }
        for target in self._targets:
            target.values.extend(fill[target.name]())
        self.rows += len(entries)
        self.bytes += sum(len(entry.metadata_bytes) + len(entry.payload) for entry in parsed)

    def add_refusal(self, topic: str, after: Position, reason: str) -> None:
        """Append a row saying that nothing behind ``after`` could be read, in entry mode for a sink with ``isolate``.

        The row has no metadata, which every entry has, so it cannot be mistaken for one.
        """
        values = {
            "__topic": topic,
            "__ledgerId": after.ledger,
            "__entryId": after.entry + 1,
            "__metadata": b"",
            "__payload": reason.encode(),
        }
        for target in self._targets:
            target.values.append(values[target.name])
        self.rows += 1

    def _add_parsed(self, topic: str, partition: int, source: Entry) -> None:
        parsed = source.parsed
        is_sealed = bool(parsed.metadata.encryption_keys) and not self._entry_mode
        if is_sealed and self._decryption is not None and not self._decryption.admits(topic, source.position, parsed):
            return
        whole = Message(
            topic,
            partition,
            source.position.ledger,
            source.position.entry,
            -1,
            parsed.metadata,
            None,
            parsed.payload,
            parsed.broker_metadata,
            len(parsed.payload),
        )
        if self._entry_mode:
            self._append(whole)
            metadata = self._by_name.get("__metadata")
            if metadata is not None:
                metadata.values[-1] = parsed.metadata_bytes
                self.bytes += len(parsed.metadata_bytes)
        elif not parsed.metadata.HasField("marker_type"):
            self._add_messages(whole, source)

    def _add_messages(self, whole: Message, source: Entry) -> None:
        payload = _plain_payload(whole)
        if not source.parsed.is_batch or whole.outer.encryption_keys:
            messages = [whole._replace(payload=payload, size=len(payload))]
        else:
            block = MessageBlock(whole, *_batch_in(source, payload))
            if self._admits is None:
                count = block.message_count
                self._blocks.append(block)
                self.rows += count
                self.bytes += len(payload) + 64 * count
                return
            messages = block.messages()
        for message in messages:
            if self._admits is None or self._admits(message):
                self._append(message)

    def _append(self, message: Message) -> None:
        self._add_blocks()
        self._append_values(message)
        self.rows += 1
        self.bytes += len(message.payload) + 64

    def _append_values(self, message: Message) -> None:
        for target in self._targets:
            target.values.append(target.column.value(message))
        if self._decoder is not None:
            self._payloads.append(_payload(message))

    def _add_blocks(self) -> None:
        """Append the rows of the collected batches."""
        if not self._blocks:
            return
        blocks, self._blocks = self._blocks, []
        if sum(block.message_count for block in blocks) < _MESSAGES_MIN:
            for block in blocks:
                for message in block.messages():
                    self._append_values(message)
            return
        rows = BlockRows(blocks)
        for target in self._targets:
            target.add_chunk(rows.column(target.name, target.column, target.type))
        if self._decoder is not None:
            self._payloads.extend(_payload_runs(blocks, rows, with_keys=self._decoder.needs_keys))

    def take(self) -> pa.RecordBatch:
        """Return the collected rows as one batch and start a new one."""
        self._add_blocks()
        arrays = dict(self._decoder.arrays(self._payloads)) if self._decoder is not None else {}
        arrays |= {target.name: target.take() for target in self._targets}
        batch = pa.RecordBatch.from_arrays([arrays[name] for name in self._arrow.names], schema=self._arrow)
        self._payloads.clear()
        self.rows = self.bytes = 0
        return batch


def _batch_in(source: Entry, payload: bytes | memoryview) -> tuple[bytes, int]:
    """Return bytes that end with the batch, and its start, without a copy if the entry arrived that way."""
    if isinstance(payload, bytes):
        return payload, 0
    if source.parsed.was_encrypted:
        return bytes(payload), 0
    return source.raw, len(source.raw) - len(payload)


def _payload(message: Message) -> Payload:
    return Payload(
        message.topic,
        (message.ledger, message.entry, message.batch_index),
        message.outer.schema_version,
        value_of(message),
        key_of(message),
    )


def _payload_runs(blocks: Sequence[MessageBlock], rows: BlockRows, *, with_keys: bool) -> Iterator[PayloadRun]:
    start = 0
    for block, count in zip(blocks, rows.counts, strict=True):
        whole = block.whole
        indexes, values = rows.indexes[start : start + count], rows.payloads.slice(start, count)
        keys = rows.keys.slice(start, count).to_pylist() if with_keys else None
        yield PayloadRun(whole.topic, (whole.ledger, whole.entry), whole.outer.schema_version, indexes, values, keys)
        start += count


def _plain_payload(whole: Message) -> bytes | memoryview:
    """Decompress a payload unless it is encrypted. Raise NotSupported for a piece of a chunked message."""
    metadata = whole.outer
    if metadata.encryption_keys:
        return whole.payload
    if metadata.num_chunks_from_msg > 1:
        raise NotSupported(
            f"entry {whole.ledger}:{whole.entry} of {whole.topic} is a piece of a chunked message; "
            f"message mode cannot join them yet, mode=entry copies them as they are"
        )
    if metadata.compression:
        return decompress(metadata.compression, whole.payload, metadata.uncompressed_size)
    return whole.payload


_log = logging.getLogger(__name__)


class Decryption:
    """Decryption of the entries of one task. ``action`` says what happens to entries that cannot be decrypted.

    "fail" raises CryptoError, "discard" leaves them out, "consume" leaves them as they are. None means "fail" with a
    ``key_reader``, else "consume".
    """

    def __init__(self, key_reader: CryptoKeyReader | None, action: str | None) -> None:
        self._key_reader = key_reader
        self._action = action or ("consume" if key_reader is None else "fail")
        self._decryptors: dict[str, Decryptor] = {}

    def admits(self, topic: str, position: Position, entry: ParsedEntry) -> bool:
        """Decrypt the entry in place if possible. Return True if it becomes rows."""
        decryptor = self._decryptors.get(topic)
        if decryptor is None:
            decryptor = self._decryptors[topic] = Decryptor(topic, self._key_reader)
        problem = decryptor.open(entry)
        if problem is None or self._action == "consume":
            return True
        if self._action == "discard":
            _log.warning("encrypted entry discarded topic=%s position=%s error=%s", topic, position, problem)
            return False
        raise CryptoError(
            f"entry {position}: {problem}; give encryptionPrivateKey, or cryptoFailureAction=discard or consume"
        ) from problem
