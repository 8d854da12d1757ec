"""Rows passed to the sink: the columns it accepts, and their conversion to messages. No IO."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from interpulse.client.encryption.entries import Encryptor
from interpulse.model.errors import InvalidRequest
from interpulse.model.schemas import SchemaType
from interpulse.spark.options.option import OptionError
from interpulse.spark.rows.columns import BINARY, ENTRY_WRITE_COLUMNS, INT, LONG, TEXT, TIME, Layout
from interpulse.spark.schemas.payload_columns import schema_of_columns
from interpulse.spark.writing.broker_target import StoredEntry
from interpulse.spark.writing.lane_writer import EntryRows
from interpulse.spark.writing.write_options import WriteOptions
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import pack_batch, unpack_batch
from interpulse.wire.compression import compress, decompress
from interpulse.wire.entries import build_entry
from interpulse.wire.ids import signed, unsigned

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_ENTRY_TYPES: Final[dict[str, tuple[Any, ...]]] = {
    "__topic": (TEXT,),
    "__ledgerId": (LONG,),
    "__entryId": (LONG,),
    "__metadata": (BINARY,),
    "__payload": (BINARY,),
}
_MESSAGE_TYPES: Final[dict[str, tuple[Any, ...]]] = {
    "value": (BINARY, TEXT),
    "__topic": (TEXT,),
    "__key": (BINARY, TEXT),
    "__eventTime": (TIME, LONG),
    "__messageProperties": (MapType(TEXT, TEXT),),
    "__orderingKey": (BINARY,),
    "__partition": (INT,),
    "__deliverAt": (TIME, LONG),
    "__replicateTo": (ArrayType(TEXT),),
}
ROW_COLUMNS: Final = tuple(_MESSAGE_TYPES)
"""Columns of rows of messages."""
_NUMBERED_TYPES: Final[dict[str, tuple[Any, ...]]] = {"__producerName": (TEXT,), "__sequenceId": (LONG,)}
"""Columns for ``dedup=column``."""
_READ_ONLY: Final = (Layout().metadata.keys() | {"__numMessages", "__markerType"}) - _MESSAGE_TYPES.keys()
"""Columns of rows that were read, which brokers assign again."""
_REMEDIES: Final = {
    "value": ": cast one column to it, or make it of several, for example with to_json(struct(*))",
    "__topic": ": set the option topic, or say in this column where each row goes",
    "__sequenceId": ": a BIGINT that rises per producer, from which dedup=column knows a row that comes again",
}


def record_columns(options: WriteOptions, schema: StructType) -> StructType | None:
    """Return the columns that a schema encodes. Return None if ``value`` is the payload."""
    payload = [item for item in schema.fields if not item.name.startswith("__")]
    is_plain = [item.name for item in payload] == ["value"] and payload[0].dataType in _MESSAGE_TYPES["value"]
    as_bytes = options.value_schema == "raw" or options.column_style == "kafka"
    if options.mode == "entry" or as_bytes or not payload or is_plain:
        return None
    return StructType(payload)


def check_write_schema(options: WriteOptions, schema: StructType) -> None:
    """Check that all columns are accepted and all required ones exist. Raises OptionError that lists the problems."""
    schema = with_own_types(schema) if options.column_style == "kafka" else schema
    types = {item.name: item.dataType for item in schema.fields}
    numbered = options.dedup == "column"
    accepted = _ENTRY_TYPES if options.mode == "entry" else _MESSAGE_TYPES | (_NUMBERED_TYPES if numbered else {})
    needed = set(ENTRY_WRITE_COLUMNS) if options.mode == "entry" else {"value"}
    if numbered:
        needed.add("__sequenceId")
    record = record_columns(options, schema)
    if record is not None:
        schema_of_columns(record, SchemaType.AVRO)  # refuses columns that no schema has
        accepted = {name: allowed for name, allowed in accepted.items() if name != "value"}
        needed.discard("value")
        types = {name: kind for name, kind in types.items() if name not in record.names}
    if options.topic is not None:
        needed.discard("__topic")
    elif "__topic" not in types:
        needed.add("__topic")
    problems = [f"column {name} is missing{_REMEDIES.get(name, '')}" for name in sorted(needed - set(types))]
    unknown = [name for name in types if name not in accepted and name not in _READ_ONLY]
    if unknown:
        problems.append(f"columns {', '.join(unknown)} are not understood; there are {', '.join(accepted)}")
    for name, kind in types.items():
        allowed = accepted.get(name, (kind,))
        if not any(_same_type(kind, one) for one in allowed):
            wanted = " or ".join(one.simpleString().upper() for one in allowed)
            problems.append(f"column {name} is {kind.simpleString().upper()}, not {wanted}{_REMEDIES.get(name, '')}")
    if problems:
        raise OptionError("; ".join(problems))
    if options.mode == "message" and (ignored := sorted(_READ_ONLY & set(types) - set(accepted))):
        log.warning("columns are not written, brokers assign them again columns=%s", ", ".join(ignored))


def _same_type(kind: Any, allowed: Any) -> bool:
    if isinstance(allowed, MapType):
        return isinstance(kind, MapType) and kind.keyType == allowed.keyType and kind.valueType == allowed.valueType
    if isinstance(allowed, ArrayType):
        return isinstance(kind, ArrayType) and kind.elementType == allowed.elementType
    return bool(kind == allowed)


def entry_rows(batch: pa.RecordBatch, topic: str | None) -> EntryRows:
    """Return the columns of an Arrow batch of entry mode."""
    return EntryRows(
        [topic] * batch.num_rows if topic is not None else batch.column("__topic").to_pylist(),
        batch.column("__ledgerId").to_pylist(),
        batch.column("__entryId").to_pylist(),
        batch.column("__metadata").to_pylist(),
        batch.column("__payload").to_pylist(),
    )


class OutgoingMessage(NamedTuple):
    """One message to publish. ``is_text`` marks a value that was a STRING; a STRING key stays a string.

    ``row`` holds the columns that the topic's schema still has to encode.
    """

    topic: str
    partition: int | None
    value: bytes | None
    is_text: bool
    key: bytes | None
    key_is_text: bool
    event_time_ms: int
    properties: Mapping[str, str]
    ordering_key: bytes | None
    deliver_at_ms: int
    row: Mapping[str, Any] | None = None
    producer_name: str | None = None
    sequence_id: int | None = None
    replicate_to: tuple[str, ...] = ()

    @property
    def travels_alone(self) -> bool:
        """Return True if the message needs its own entry.

        An entry states some fields once for all of its messages.
        """
        return bool(self.deliver_at_ms or self.replicate_to)


def outgoing_messages(
    batch: pa.RecordBatch, topic: str | None, record: StructType | None = None, *, numbered: bool = False
) -> list[OutgoingMessage]:
    """Return the messages of an Arrow batch. ``record``: the columns to encode; ``numbered``: with ids set by the user.

    Raises InvalidRequest for a row without a topic, with a property that has no value or is repeated, or with a cluster
    without a name.
    """
    import pyarrow as pa

    count = batch.num_rows
    names = set(batch.schema.names)

    def column(name: str) -> list[Any]:
        if name not in names or (record is not None and name == "value"):
            return [None] * count
        values = batch.column(name)
        if pa.types.is_timestamp(values.type):
            micros = values.cast(pa.timestamp("us", tz=values.type.tz)).cast(pa.int64()).to_pylist()
            return [None if time is None else time // 1000 for time in micros]
        return list(values.to_pylist())

    key_is_text = "__key" in names and pa.types.is_string(batch.schema.field("__key").type)
    read = [*_MESSAGE_TYPES, *(_NUMBERED_TYPES if numbered else ())]
    columns = [column(name) for name in read]
    rows = (dict(zip(read, row, strict=True)) for row in zip(*columns, strict=True))
    messages = [_outgoing(row, topic, key_is_text) for row in rows]
    if record is None:
        return messages
    records = batch.select(record.names).to_pylist()
    return [message._replace(row=row) for message, row in zip(messages, records, strict=True)]


def _outgoing(row: Mapping[str, Any], topic: str | None, key_is_text: bool) -> OutgoingMessage:
    target = topic or row["__topic"]
    if not target:
        raise InvalidRequest("a row has no topic: set the option topic or fill the column __topic")
    key = row["__key"]
    clusters = row["__replicateTo"] or ()
    if not all(clusters):
        raise InvalidRequest(f"column __replicateTo: {clusters} names a cluster without a name")
    return OutgoingMessage(
        topic=target,
        partition=row["__partition"],
        value=_as_bytes(row["value"]),
        is_text=isinstance(row["value"], str),
        key=_as_bytes(key),
        key_is_text=key_is_text,
        event_time_ms=row["__eventTime"] or 0,
        properties=_properties(row["__messageProperties"] or ()),
        ordering_key=row["__orderingKey"],
        deliver_at_ms=row["__deliverAt"] or 0,
        producer_name=row.get("__producerName"),
        sequence_id=row.get("__sequenceId"),
        replicate_to=tuple(clusters),
    )


def _properties(pairs: Iterable[tuple[str | None, str | None]]) -> dict[str, str]:
    properties: dict[str, str] = {}
    for name, value in pairs:
        if name is None or value is None or name in properties:
            raise InvalidRequest(f"column __messageProperties (headers): {_property_problem(name, value)}")
        properties[name] = value
    return properties


def _property_problem(name: str | None, value: str | None) -> str:
    if name is None:
        return "the name of a property is null: leave it out, for example with map_filter"
    if value is None:
        return f"property {name} is null: leave it out, for example with map_filter, or write an empty string"
    return f"property {name} comes twice, and messages keep one of each name: rename one, or join the values"


def _as_bytes(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def build_messages(
    messages: Sequence[OutgoingMessage],
    *,
    producer_name: str,
    ids: Sequence[int],
    publish_time_ms: int,
    batched: bool,
    codec: pb.CompressionType.ValueType,
    schema_version: bytes = b"",
    encryptor: Encryptor | None = None,
) -> bytes:
    """Return one entry of messages with rising sequence ids. Without ``batched`` it holds a single message."""
    first = messages[0]
    metadata = _metadata(producer_name, ids, publish_time_ms, schema_version, batched=batched)
    payload: bytes
    if batched:
        payload = pack_batch(_singles(messages, ids))
        if first.key is not None:
            _set_key(metadata, first)
    else:
        payload = first.value or b""
        _describe(metadata, first)
        if first.deliver_at_ms:
            metadata.deliver_at_time = first.deliver_at_ms
        metadata.replicate_to.extend(first.replicate_to)
    return _sealed(metadata, payload, codec, encryptor)


def build_packed(
    payload: bytes | memoryview,
    *,
    producer_name: str,
    ids: Sequence[int],
    publish_time_ms: int,
    codec: pb.CompressionType.ValueType,
    schema_version: bytes = b"",
    encryptor: Encryptor | None = None,
) -> bytes:
    """Return one entry of packed messages, none of which has a key."""
    metadata = _metadata(producer_name, ids, publish_time_ms, schema_version, batched=True)
    return _sealed(metadata, payload, codec, encryptor)


def _metadata(
    producer_name: str, ids: Sequence[int], publish_time_ms: int, schema_version: bytes, *, batched: bool
) -> pb.MessageMetadata:
    metadata = pb.MessageMetadata(producer_name=producer_name, sequence_id=ids[0], publish_time=publish_time_ms)
    if schema_version:
        metadata.schema_version = schema_version
    if batched:
        metadata.num_messages_in_batch = len(ids)
        metadata.highest_sequence_id = ids[-1]
    return metadata


def _sealed(
    metadata: pb.MessageMetadata,
    payload: bytes | memoryview,
    codec: pb.CompressionType.ValueType,
    encryptor: Encryptor | None,
) -> bytes:
    """Return the entry, compressed and encrypted."""
    if codec != pb.NONE:
        metadata.compression = codec
        metadata.uncompressed_size = len(payload)
        payload = compress(codec, bytes(payload))
    if encryptor is not None:
        payload = encryptor.seal(metadata, bytes(payload))
    return build_entry(metadata.SerializeToString(), payload)


def _singles(
    messages: Sequence[OutgoingMessage], ids: Sequence[int]
) -> Iterable[tuple[pb.SingleMessageMetadata, bytes]]:
    for message, number in zip(messages, ids, strict=True):
        single = pb.SingleMessageMetadata(payload_size=0, sequence_id=number)
        _describe(single, message)
        yield single, message.value or b""


def _describe(target: pb.MessageMetadata | pb.SingleMessageMetadata, message: OutgoingMessage) -> None:
    _set_key(target, message)
    if message.value is None:
        target.null_value = True
    if message.event_time_ms:
        target.event_time = unsigned(message.event_time_ms)
    if message.ordering_key is not None:
        target.ordering_key = message.ordering_key
    for name, value in message.properties.items():
        target.properties.add(key=name, value=value)


def _set_key(target: pb.MessageMetadata | pb.SingleMessageMetadata, message: OutgoingMessage) -> None:
    if message.key is None:
        return
    if message.key_is_text:
        target.partition_key = message.key.decode()
    else:
        target.partition_key = base64.b64encode(message.key).decode()
        target.partition_key_b64_encoded = True


def stored_messages(entry: StoredEntry) -> list[OutgoingMessage]:
    """Return the messages of an entry with their sequence ids, the inverse of :func:`build_messages`."""
    assert entry.parsed is not None, "read with its payload"
    metadata = entry.parsed.metadata
    payload: bytes | memoryview = entry.parsed.payload
    if metadata.compression != pb.NONE:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
    if not metadata.HasField("num_messages_in_batch"):
        alone = _stored(metadata, payload)
        clusters = tuple(metadata.replicate_to)
        return [alone._replace(deliver_at_ms=metadata.deliver_at_time, replicate_to=clusters)]
    return [_stored(single, value) for single, value in unpack_batch(payload, metadata.num_messages_in_batch)]


def _stored(source: pb.MessageMetadata | pb.SingleMessageMetadata, value: bytes | memoryview) -> OutgoingMessage:
    key = None
    if source.HasField("partition_key"):
        text = source.partition_key
        key = base64.b64decode(text) if source.partition_key_b64_encoded else text.encode()
    return OutgoingMessage(
        topic="",
        partition=None,
        value=None if source.null_value else bytes(value),
        is_text=False,
        key=key,
        key_is_text=key is not None and not source.partition_key_b64_encoded,
        event_time_ms=signed(source.event_time),
        properties={pair.key: pair.value for pair in source.properties},
        ordering_key=source.ordering_key if source.HasField("ordering_key") else None,
        deliver_at_ms=0,
        sequence_id=signed(source.sequence_id),
    )


_NAMES_OF_KAFKA: Final = {
    "key": "__key",
    "value": "value",
    "topic": "__topic",
    "partition": "__partition",
    "headers": "__messageProperties",
    "offset": "__index",
    "timestamp": "__publishTime",
    "timestampType": "timestampType",
}
"""Our names of Kafka columns. The last three exist in rows that were read; brokers assign them again."""

_KAFKA_ONLY: Final = frozenset({"timestampType"})


def with_own_types(schema: StructType) -> StructType:
    """Rename the columns for the sink's checks. Others stay as they are, for the sink to refuse."""
    return StructType(
        [
            StructField(_NAMES_OF_KAFKA.get(item.name, item.name), _own_type(item.name, item.dataType))
            for item in schema.fields
            if item.name not in _KAFKA_ONLY
        ]
    )


def _own_type(name: str, kind: DataType) -> DataType:
    if name == "headers" and isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        types = [(item.name, item.dataType) for item in kind.elementType.fields]
        if types == [("key", TEXT), ("value", BINARY)]:
            return MapType(TEXT, TEXT)
    return kind


def with_own_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rename the columns of rows. Raises InvalidRequest for headers that are no text, because properties are text."""
    import pyarrow as pa

    columns = {}
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if name not in _KAFKA_ONLY:
            columns[_NAMES_OF_KAFKA[name]] = _properties_of_headers(values) if name == "headers" else values
    return pa.RecordBatch.from_pydict(columns)


def _properties_of_headers(headers: pa.ListArray) -> pa.MapArray:
    import pyarrow as pa

    try:
        texts = headers.values.field("value").cast(pa.string())
    except pa.ArrowInvalid as error:
        raise InvalidRequest(f"column headers: properties of messages are text, a header is none ({error})") from None
    return pa.MapArray.from_arrays(headers.offsets, headers.values.field("key"), texts.fill_null(""))
