"""Columns of rows: their names, their types, and the part of a message that each shows.

Message mode has three kinds: columns of the payload (``value``, or those of the topic's schema), and columns of the
metadata in Pulsar's style or in the style of Spark's Kafka source. Entry mode has its own.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql.types import (
    ArrayType,
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

from interpulse.model.errors import InvalidRequest
from interpulse.model.names import TopicName
from interpulse.spark.options.option import OptionError
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.batches import encoded
from interpulse.wire.ids import signed, unsigned

LONG, INT, FLAG, TIME = LongType(), IntegerType(), BooleanType(), TimestampType()
BINARY, TEXT = BinaryType(), StringType()

_INCLUDE_DEFAULT: Final = ("default",)

ENTRY_WRITE_COLUMNS: Final = ("__topic", "__ledgerId", "__entryId", "__metadata", "__payload")
"""Columns that the sink needs to write an entry. Fewer columns are faster."""


class Message(NamedTuple):
    """One message, or one entry in entry mode. ``single`` is the message's own metadata inside a batch."""

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


class Column(NamedTuple):
    """Type of a column, and its value in a message.

    ``of_entry`` is True if all messages of an entry share the value.
    """

    type: DataType
    value: Callable[[Message], Any]
    of_entry: bool = False


def micros_of(milliseconds: int) -> int | None:
    """Return a time of metadata in microseconds, or None for 0, which is unset. Times before 1970 have 2^64 added.

    Raises InvalidRequest for a time that no TIMESTAMP holds.
    """
    if not milliseconds:
        return None
    micros = signed(milliseconds) * 1000
    if not -(1 << 63) <= micros < 1 << 63:
        raise InvalidRequest(
            f"a message has the time {micros // 1000} ms in its metadata, which no TIMESTAMP holds: leave the columns "
            f"of times out with includeColumns"
        )
    return micros


def _own(message: Message) -> pb.MessageMetadata | pb.SingleMessageMetadata:
    return message.single if message.single is not None else message.outer


def key_of(message: Message) -> bytes | None:
    """Return the key of a message as bytes, in whichever field it is sent."""
    own = _own(message)
    if own.null_partition_key or not own.HasField("partition_key"):
        return None
    key = encoded(own.partition_key)
    return base64.b64decode(key) if own.partition_key_b64_encoded else key


def _ordering_key(message: Message) -> bytes | None:
    own = _own(message)
    return own.ordering_key if own.HasField("ordering_key") else None


def value_of(message: Message) -> bytes | None:
    """Return the payload, or None for a tombstone."""
    return None if _own(message).null_value else bytes(message.payload)


def message_id_of(message: Message) -> bytes:
    """Return the serialized id of a message, or of a whole entry."""
    wire = pb.MessageIdData(ledgerId=unsigned(message.ledger), entryId=unsigned(message.entry))
    if message.partition >= 0:
        wire.partition = message.partition
    if message.batch_index >= 0:
        wire.batch_index = message.batch_index
    return wire.SerializeToString()


def _sequence_id(message: Message) -> int:
    single = message.single
    if single is not None and single.HasField("sequence_id"):
        return signed(single.sequence_id)
    return signed(message.outer.sequence_id) + max(message.batch_index, 0)


def _broker_index(message: Message) -> int | None:
    """Return the broker's index of an entry, which is that of its last message."""
    return message.broker.index if message.broker is not None and message.broker.HasField("index") else None


def index_of_first(batch: Message) -> int | None:
    """Return the broker's index of the first message of a batch."""
    last = _broker_index(batch)
    return None if last is None else last - (batch.outer.num_messages_in_batch - 1)


def _index(message: Message) -> int | None:
    if message.batch_index < 0:
        return _broker_index(message)
    first = index_of_first(message)
    return None if first is None else first + message.batch_index


def _broker_time(message: Message) -> int | None:
    if message.broker is None or not message.broker.HasField("broker_timestamp"):
        return None
    return micros_of(message.broker.broker_timestamp)


_SHARED: Final[dict[str, Column]] = {
    "__topic": Column(TEXT, lambda message: message.topic, of_entry=True),
    "__partition": Column(INT, lambda message: message.partition if message.partition >= 0 else None, of_entry=True),
    "__ledgerId": Column(LONG, lambda message: message.ledger, of_entry=True),
    "__entryId": Column(LONG, lambda message: message.entry, of_entry=True),
    "__publishTime": Column(TIME, lambda message: micros_of(message.outer.publish_time), of_entry=True),
    "__producerName": Column(TEXT, lambda message: message.outer.producer_name, of_entry=True),
    "__sequenceId": Column(LONG, _sequence_id),
    "__replicatedFrom": Column(TEXT, lambda message: message.outer.replicated_from or None, of_entry=True),
    "__brokerPublishTime": Column(TIME, _broker_time, of_entry=True),
    "__index": Column(LONG, _index),
    "__size": Column(INT, lambda message: message.size),
}

_MESSAGE_COLUMNS: Final[dict[str, Column]] = {
    "__key": Column(BINARY, key_of),
    "__topic": _SHARED["__topic"],
    "__messageId": Column(BINARY, message_id_of),
    "__publishTime": _SHARED["__publishTime"],
    "__eventTime": Column(TIME, lambda message: micros_of(_own(message).event_time)),
    "__messageProperties": Column(
        MapType(TEXT, TEXT), lambda message: [(item.key, item.value) for item in _own(message).properties]
    ),
    **_SHARED,
    "__batchIndex": Column(INT, lambda message: message.batch_index if message.batch_index >= 0 else None),
    "__orderingKey": Column(BINARY, _ordering_key),
    "__schemaVersion": Column(BINARY, lambda message: message.outer.schema_version or None, of_entry=True),
    "__deliverAt": Column(TIME, lambda message: micros_of(message.outer.deliver_at_time), of_entry=True),
    "__encrypted": Column(FLAG, lambda message: bool(message.outer.encryption_keys), of_entry=True),
}
_MESSAGE_DEFAULT: Final = ("__key", "__topic", "__messageId", "__publishTime", "__eventTime", "__messageProperties")

_RAW: Final = {"value": Column(BINARY, value_of)}


def place_as_offset(message: Message) -> int:
    """Return ledger and entry as one ordering number, without the batch index."""
    return message.ledger << 32 | message.entry


def _kafka_offset(message: Message) -> int:
    """Return an ordering number: the broker's index, or else ledger and entry."""
    index = _index(message)
    return index if index is not None else place_as_offset(message)


_KAFKA_COLUMNS: Final[dict[str, Column]] = {
    "key": Column(BINARY, key_of),
    "value": _RAW["value"],
    "topic": Column(TEXT, lambda message: str(TopicName.parse(message.topic).base), of_entry=True),
    "partition": Column(INT, lambda message: max(message.partition, 0), of_entry=True),
    "offset": Column(LONG, _kafka_offset),
    "timestamp": Column(TIME, lambda message: micros_of(message.outer.publish_time) or 0, of_entry=True),
    "timestampType": Column(INT, lambda message: 0, of_entry=True),
    "headers": Column(
        ArrayType(StructType([StructField("key", TEXT), StructField("value", BINARY)])),
        lambda message: [{"key": item.key, "value": encoded(item.value)} for item in _own(message).properties] or None,
    ),
}
_KAFKA_DEFAULT: Final = tuple(name for name in _KAFKA_COLUMNS if name != "headers")

_ENTRY_COLUMNS: Final[dict[str, Column]] = {
    **_SHARED,
    "__numMessages": Column(INT, lambda message: message.outer.num_messages_in_batch),
    "__metadata": Column(BINARY, lambda message: None),
    "__payload": Column(BINARY, lambda message: bytes(message.payload)),
    "__markerType": Column(
        INT, lambda message: message.outer.marker_type if message.outer.HasField("marker_type") else None
    ),
}
_ENTRY_DEFAULT = ("__topic", "__ledgerId", "__entryId", "__numMessages", "__publishTime", "__metadata", "__payload")


class Layout(NamedTuple):
    """Columns of a read. ``style`` and ``payload`` are for message mode."""

    mode: str = "message"
    style: str = "pulsar"
    """``pulsar``, or ``kafka`` for the columns of Spark's Kafka source."""

    payload: StructType | None = None
    """Columns of the topic's schema; None for the payload as bytes."""

    @property
    def payload_names(self) -> list[str]:
        """Columns that ``includeColumns`` need not name."""
        if self.mode == "entry":
            return ["__payload"]
        return ["value"] if self.payload is None else list(self.payload.names)

    @property
    def metadata(self) -> Mapping[str, Column]:
        """Columns whose values are in a message, and its payload if that is bytes."""
        if self.mode == "entry":
            return _ENTRY_COLUMNS
        if self.style == "kafka":
            return _KAFKA_COLUMNS
        return _RAW | _MESSAGE_COLUMNS if self.payload is None else _MESSAGE_COLUMNS

    @property
    def types(self) -> dict[str, DataType]:
        """All columns with their types, those of the payload first."""
        payload = {} if self.payload is None else {item.name: item.dataType for item in self.payload.fields}
        return payload | {name: column.type for name, column in self.metadata.items()}

    @property
    def default(self) -> list[str]:
        """Columns of a read that names none."""
        if self.mode == "entry":
            return list(_ENTRY_DEFAULT)
        return list(_KAFKA_DEFAULT) if self.style == "kafka" else [*self.payload_names, *_MESSAGE_DEFAULT]


def read_schema(layout: Layout, include: Sequence[str]) -> StructType:
    """Return the Spark schema of a read. Raise OptionError for columns that do not exist.

    ``include`` has column names in any letter case, or one of ``default``, ``all``, ``none`` (the payload alone).
    """
    types = layout.types
    word = include[0].lower() if len(include) == 1 else ""
    if word == "default":
        names: Iterable[str] = layout.default
    elif word == "all":
        names = [*layout.default, *(name for name in types if name not in layout.default)]
    elif word == "none":
        names = layout.payload_names
    else:
        names = _named_columns(layout, include)
    if word != "none":
        _check_clashes(layout)
    payload = {} if layout.payload is None else {item.name: item for item in layout.payload.fields}
    return StructType([payload.get(name) or StructField(name, types[name], True) for name in names])


def _check_clashes(layout: Layout) -> None:
    names = [name for name in layout.payload_names if name.startswith("__") and layout.payload is not None]
    if names:
        raise OptionError(
            f"the topic's schema has fields {', '.join(names)}, and columns with such names hold metadata: read with "
            f"includeColumns=none, or with valueSchema=raw"
        )


def _named_columns(layout: Layout, include: Sequence[str]) -> list[str]:
    types = layout.types
    spelled = {name.lower(): name for name in types}
    unknown = [name for name in include if name.lower() not in spelled]
    if unknown or not include:
        raise OptionError(
            f"includeColumns: no column {', '.join(unknown)} in {layout.mode} mode; there are {', '.join(types)}"
        )
    names = [spelled[name.lower()] for name in include]
    if layout.mode != "entry" and layout.style == "pulsar" and not set(layout.payload_names) & set(names):
        names = [*layout.payload_names, *names]
    return names


def check_schema(schema: StructType, layout: Layout, include: Sequence[str]) -> None:
    """Check that a user's schema names known columns with their types. Raise OptionError with every problem."""
    types = layout.types
    problems = []
    if tuple(include) != _INCLUDE_DEFAULT and schema.names != read_schema(layout, include).names:
        problems.append("schema and includeColumns name different columns: give one of them")
    for item in schema.fields:
        kind = types.get(item.name)
        if kind is None:
            problems.append(f"schema: no column {item.name} in {layout.mode} mode; there are {', '.join(types)}")
        elif kind != item.dataType:
            problems.append(
                f"schema: column {item.name} is read as {_type_text(kind)}, not {_type_text(item.dataType)}; "
                f"read it so and cast it afterwards"
            )
    if problems:
        raise OptionError("; ".join(problems))


def _type_text(kind: DataType) -> str:
    return kind.simpleString().upper()
