"""Entries and messages as Spark rows, and back: schemas, columns, Arrow batches. No IO.

Entry mode has one row per broker entry, opaque. Message mode has one row per message: batches are decompressed and
taken apart. Only the columns that were asked for are decoded; in entry mode without a decoded column the metadata is
not even looked at.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from interpulse.model.errors import NotSupported
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.spark.options import OptionError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import unpack_batch
from interpulse.wire.compression import decompress
from interpulse.wire.frames import ParsedEntry
from interpulse.wire.ids import signed, unsigned

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ENTRY_WRITE_COLUMNS", "RowBuilder", "SourceEntry", "check_schema", "read_schema"]

_LONG, _INT, _BINARY, _TEXT, _TIME, _FLAG = (
    LongType(),
    IntegerType(),
    BinaryType(),
    StringType(),
    TimestampType(),
    BooleanType(),
)

INCLUDE_DEFAULT: Final = ("default",)
"""``includeColumns`` by default."""

ENTRY_WRITE_COLUMNS: Final = ("__topic", "__ledgerId", "__entryId", "__metadata", "__payload")
"""What the sink needs to write an entry; the fewer columns travel, the faster."""


class SourceEntry(Protocol):
    """One stored entry, taken apart: an ``Entry`` of the client."""

    @property
    def position(self) -> Position: ...

    @property
    def parsed(self) -> ParsedEntry: ...


class _Message(NamedTuple):
    """One message, or in entry mode one entry: ``single`` is its own metadata inside a batch."""

    topic: str
    partition: int
    ledger: int
    entry: int
    batch_index: int
    outer: pb.MessageMetadata
    single: pb.SingleMessageMetadata | None
    payload: bytes | memoryview
    broker: pb.BrokerEntryMetadata | None
    size: int


class _Column(NamedTuple):
    type: DataType
    value: Callable[[_Message], Any]


def _micros(milliseconds: int) -> int | None:
    return milliseconds * 1000 if milliseconds else None


def _own(message: _Message) -> pb.MessageMetadata | pb.SingleMessageMetadata:
    return message.single if message.single is not None else message.outer


def _key(message: _Message) -> bytes | None:
    own = _own(message)
    if own.null_partition_key or not own.HasField("partition_key"):
        return None
    return base64.b64decode(own.partition_key) if own.partition_key_b64_encoded else own.partition_key.encode()


def _ordering_key(message: _Message) -> bytes | None:
    own = _own(message)
    return own.ordering_key if own.HasField("ordering_key") else None


def _value(message: _Message) -> bytes | None:
    return None if _own(message).null_value else bytes(message.payload)


def _message_id(message: _Message) -> bytes:
    wire = pb.MessageIdData(ledgerId=unsigned(message.ledger), entryId=unsigned(message.entry))
    if message.partition >= 0:
        wire.partition = message.partition
    if message.batch_index >= 0:
        wire.batch_index = message.batch_index
    return wire.SerializeToString()


def _sequence_id(message: _Message) -> int:
    single = message.single
    if single is not None and single.HasField("sequence_id"):
        return signed(single.sequence_id)
    return signed(message.outer.sequence_id) + max(message.batch_index, 0)


def _index(message: _Message) -> int | None:
    if message.broker is None or not message.broker.HasField("index"):
        return None
    count = message.outer.num_messages_in_batch
    return message.broker.index - (count - 1 - message.batch_index if message.batch_index >= 0 else 0)


def _broker_time(message: _Message) -> int | None:
    if message.broker is None or not message.broker.HasField("broker_timestamp"):
        return None
    return _micros(message.broker.broker_timestamp)


_SHARED: Final[dict[str, _Column]] = {
    "__topic": _Column(_TEXT, lambda message: message.topic),
    "__partition": _Column(_INT, lambda message: message.partition if message.partition >= 0 else None),
    "__ledgerId": _Column(_LONG, lambda message: message.ledger),
    "__entryId": _Column(_LONG, lambda message: message.entry),
    "__publishTime": _Column(_TIME, lambda message: _micros(message.outer.publish_time)),
    "__producerName": _Column(_TEXT, lambda message: message.outer.producer_name),
    "__sequenceId": _Column(_LONG, _sequence_id),
    "__replicatedFrom": _Column(_TEXT, lambda message: message.outer.replicated_from or None),
    "__brokerPublishTime": _Column(_TIME, _broker_time),
    "__index": _Column(_LONG, _index),
    "__size": _Column(_INT, lambda message: message.size),
}

_MESSAGE_COLUMNS: Final[dict[str, _Column]] = {
    "value": _Column(_BINARY, _value),
    "__key": _Column(_BINARY, _key),
    "__topic": _SHARED["__topic"],
    "__messageId": _Column(_BINARY, _message_id),
    "__publishTime": _SHARED["__publishTime"],
    "__eventTime": _Column(_TIME, lambda message: _micros(_own(message).event_time)),
    "__messageProperties": _Column(
        MapType(_TEXT, _TEXT), lambda message: [(item.key, item.value) for item in _own(message).properties]
    ),
    **_SHARED,
    "__batchIndex": _Column(_INT, lambda message: message.batch_index if message.batch_index >= 0 else None),
    "__orderingKey": _Column(_BINARY, _ordering_key),
    "__schemaVersion": _Column(_BINARY, lambda message: message.outer.schema_version or None),
    "__deliverAt": _Column(_TIME, lambda message: _micros(message.outer.deliver_at_time)),
    "__encrypted": _Column(_FLAG, lambda message: bool(message.outer.encryption_keys)),
}
_MESSAGE_DEFAULT: Final = (
    "value",
    "__key",
    "__topic",
    "__messageId",
    "__publishTime",
    "__eventTime",
    "__messageProperties",
)

_ENTRY_COLUMNS: Final[dict[str, _Column]] = {
    **_SHARED,
    "__numMessages": _Column(_INT, lambda message: message.outer.num_messages_in_batch),
    "__metadata": _Column(_BINARY, lambda message: None),
    "__payload": _Column(_BINARY, lambda message: bytes(message.payload)),
    "__markerType": _Column(
        _INT, lambda message: message.outer.marker_type if message.outer.HasField("marker_type") else None
    ),
}
_ENTRY_DEFAULT: Final = (
    "__topic",
    "__ledgerId",
    "__entryId",
    "__numMessages",
    "__publishTime",
    "__metadata",
    "__payload",
)


def _columns_of(mode: str) -> tuple[dict[str, _Column], tuple[str, ...]]:
    return (_ENTRY_COLUMNS, _ENTRY_DEFAULT) if mode == "entry" else (_MESSAGE_COLUMNS, _MESSAGE_DEFAULT)


def read_schema(mode: str, include: Sequence[str]) -> StructType:
    """The Spark schema of a read. Raises OptionError for columns that do not exist.

    ``include``: column names in any letter case, or one of ``default``, ``all``, ``none`` (the value alone).
    """
    columns, default = _columns_of(mode)
    word = include[0].lower() if len(include) == 1 else ""
    if word == "default":
        names: Iterable[str] = default
    elif word == "all":
        names = [*default, *(name for name in columns if name not in default)]
    elif word == "none":
        names = ("__payload",) if mode == "entry" else ("value",)
    else:
        names = _named_columns(columns, include, mode)
    return StructType([StructField(name, columns[name].type, True) for name in names])


def _named_columns(columns: dict[str, _Column], include: Sequence[str], mode: str) -> list[str]:
    spelled = {name.lower(): name for name in columns}
    unknown = [name for name in include if name.lower() not in spelled]
    if unknown or not include:
        raise OptionError(
            f"includeColumns: no column {', '.join(unknown)} in {mode} mode; there are {', '.join(columns)}"
        )
    names = [spelled[name.lower()] for name in include]
    if mode != "entry" and "value" not in names:
        names.insert(0, "value")
    return names


def check_schema(schema: StructType, mode: str, include: Sequence[str]) -> None:
    """A schema given by the user must name known columns with their types; raises OptionError naming each problem."""
    columns, _ = _columns_of(mode)
    problems = []
    if tuple(include) != INCLUDE_DEFAULT and schema.names != read_schema(mode, include).names:
        problems.append("schema and includeColumns name different columns: give one of them")
    for item in schema.fields:
        column = columns.get(item.name)
        if column is None:
            problems.append(f"schema: no column {item.name} in {mode} mode; there are {', '.join(columns)}")
        elif column.type != item.dataType:
            problems.append(
                f"schema: column {item.name} is read as {_type_text(column.type)}, not {_type_text(item.dataType)}; "
                f"read it so and cast it afterwards"
            )
    if problems:
        raise OptionError("; ".join(problems))


def _type_text(kind: DataType) -> str:
    return kind.simpleString().upper()


@dataclass
class _Target:
    """One column being filled."""

    name: str
    values: list[Any]
    extract: Callable[[_Message], Any]


class RowBuilder:
    """Collects rows of one schema and gives them out as Arrow batches."""

    def __init__(self, schema: StructType, mode: str) -> None:
        self._schema = schema
        columns, _ = _columns_of(mode)
        self._targets = [_Target(item.name, [], columns[item.name].value) for item in schema.fields]
        self._by_name = {target.name: target.values for target in self._targets}
        self._entry_mode = mode == "entry"
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
        whole = _Message(
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
                self._append(message)

    def _append(self, message: _Message) -> None:
        for target in self._targets:
            target.values.append(target.extract(message))
        self.rows += 1
        self.bytes += len(message.payload) + 64

    def take(self) -> pa.RecordBatch:
        """The rows collected so far as one batch; starts anew."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self._schema, timezone="UTC")
        arrays = [_arrow_array(target.values, item.type) for target, item in zip(self._targets, schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        for target in self._targets:
            target.values.clear()
        self.rows = self.bytes = 0
        return batch


def _arrow_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def _messages_of(whole: _Message, *, is_batch: bool) -> Iterator[_Message]:
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
