"""Rows with the columns of Spark's Kafka sink, renamed to the columns of our sink. No IO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from interpulse.model.errors import InvalidRequest

if TYPE_CHECKING:
    import pyarrow as pa

_OWN_NAMES: Final = {
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

_DROPPED: Final = frozenset({"timestampType"})


def with_own_types(schema: StructType) -> StructType:
    """Rename the columns for the sink's checks. Others stay as they are, for the sink to refuse."""
    from pyspark.sql.types import StructField

    return StructType(
        [
            StructField(_OWN_NAMES.get(item.name, item.name), _own_type(item.name, item.dataType))
            for item in schema.fields
            if item.name not in _DROPPED
        ]
    )


def _own_type(name: str, kind: DataType) -> DataType:
    if name == "headers" and isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        types = [(item.name, item.dataType) for item in kind.elementType.fields]
        if types == [("key", StringType()), ("value", BinaryType())]:
            return MapType(StringType(), StringType())
    return kind


def with_own_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rename the columns of rows. Raises InvalidRequest for headers that are no text, because properties are text."""
    import pyarrow as pa

    columns = {}
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if name not in _DROPPED:
            columns[_OWN_NAMES[name]] = _properties(values) if name == "headers" else values
    return pa.RecordBatch.from_pydict(columns)


def _properties(headers: pa.ListArray) -> pa.MapArray:
    import pyarrow as pa

    try:
        texts = headers.values.field("value").cast(pa.string())
    except pa.ArrowInvalid as error:
        raise InvalidRequest(f"column headers: properties of messages are text, a header is none ({error})") from None
    return pa.MapArray.from_arrays(headers.offsets, headers.values.field("key"), texts.fill_null(""))
