"""Entries and messages as rows: Arrow batches of the columns that were asked for. No IO.

Entry mode has one row per broker entry, opaque. Message mode has one row per message: batches are decompressed and
taken apart. Only the columns that were asked for are decoded; in entry mode without a decoded column the metadata is
not even looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.types import StructType

from interpulse.model.errors import NotSupported
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.spark.rows.columns import ENTRY_WRITE_COLUMNS, Layout, Message, key_of, value_of
from interpulse.spark.schemas.payload_decoder import Payload
from interpulse.wire.batches import unpack_batch
from interpulse.wire.compression import decompress
from interpulse.wire.entries import ParsedEntry

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PayloadColumns", "RowBuilder", "SourceEntry"]


class SourceEntry(Protocol):
    """One stored entry, taken apart: an ``Entry`` of the client."""

    @property
    def position(self) -> Position: ...

    @property
    def parsed(self) -> ParsedEntry: ...


@dataclass
class _Target:
    """One column being filled."""

    name: str
    values: list[Any]
    extract: Callable[[Message], Any]


class PayloadColumns(Protocol):
    """Makes columns of payloads: a ``PayloadDecoder``."""

    def arrays(self, payloads: Sequence[Payload]) -> Mapping[str, pa.Array]:
        """The columns by name, a row for each payload."""


class RowBuilder:
    """Collects rows of one schema and gives them out as Arrow batches.

    ``decoder`` fills the columns that ``layout`` has for payloads; without it payloads are bytes. ``admits`` says which
    messages become rows, without it all.
    """

    def __init__(
        self,
        schema: StructType,
        layout: Layout,
        decoder: PayloadColumns | None = None,
        admits: Callable[[Message], bool] | None = None,
    ) -> None:
        self._admits = admits
        self._schema = schema
        columns = layout.metadata
        typed = () if layout.payload is None else layout.payload.names
        self._targets = [
            _Target(item.name, [], columns[item.name].value) for item in schema.fields if item.name not in typed
        ]
        self._by_name = {target.name: target.values for target in self._targets}
        self._decoder = decoder if any(item.name in typed for item in schema.fields) else None
        self._payloads: list[Payload] = []
        self._entry_mode = layout.mode == "entry"
        self._opaque = self._entry_mode and all(target.name in ENTRY_WRITE_COLUMNS for target in self._targets)
        self.rows = 0
        self.bytes = 0

    def add(self, topic: str, entries: Sequence[SourceEntry]) -> None:
        """Append the rows of some entries of one topic-partition, in order.

        Raises NotSupported for what message mode cannot take apart.
        """
        if self._opaque:
            self._add_opaque(topic, entries)
            return
        partition = TopicName.parse(topic).partition_index
        for source in entries:
            self._add_parsed(topic, partition, source)

    def _add_opaque(self, topic: str, entries: Sequence[SourceEntry]) -> None:
        """The columns that replication asks for, column by column: half the time of row by row."""
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
        """In entry mode for a sink with ``isolate``: nothing behind ``after`` could be read. No entry lacks metadata,
        so this row cannot be taken for one."""
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

    def _add_parsed(self, topic: str, partition: int, source: SourceEntry) -> None:
        parsed = source.parsed
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
                metadata[-1] = parsed.metadata_bytes
                self.bytes += len(parsed.metadata_bytes)
        elif not parsed.metadata.HasField("marker_type"):
            for message in _messages_of(whole, is_batch=parsed.is_batch):
                if self._admits is None or self._admits(message):
                    self._append(message)

    def _append(self, message: Message) -> None:
        for target in self._targets:
            target.values.append(target.extract(message))
        if self._decoder is not None:
            self._payloads.append(_payload(message))
        self.rows += 1
        self.bytes += len(message.payload) + 64

    def take(self) -> pa.RecordBatch:
        """The rows collected so far as one batch; starts anew."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self._schema, timezone="UTC")
        arrays = dict(self._decoder.arrays(self._payloads)) if self._decoder is not None else {}
        arrays |= {target.name: _arrow_array(target.values, schema.field(target.name).type) for target in self._targets}
        batch = pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
        for target in self._targets:
            target.values.clear()
        self._payloads.clear()
        self.rows = self.bytes = 0
        return batch


def _payload(message: Message) -> Payload:
    place = f"{message.ledger}:{message.entry}" + (f":{message.batch_index}" if message.batch_index >= 0 else "")
    return Payload(message.topic, place, message.outer.schema_version, value_of(message), key_of(message))


def _arrow_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def _messages_of(whole: Message, *, is_batch: bool) -> Iterator[Message]:
    metadata = whole.outer
    if metadata.encryption_keys:
        yield whole
        return
    if metadata.num_chunks_from_msg > 1:
        raise NotSupported(
            f"entry {whole.ledger}:{whole.entry} of {whole.topic} is a piece of a chunked message; "
            f"message mode cannot join them yet, mode=entry copies them as they are"
        )
    payload = whole.payload
    if metadata.compression:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
    if not is_batch:
        yield whole._replace(payload=payload, size=len(payload))
        return
    for index, item in enumerate(unpack_batch(payload, metadata.num_messages_in_batch)):
        if not item.metadata.compacted_out:
            yield whole._replace(batch_index=index, single=item.metadata, payload=item.payload, size=len(item.payload))
