"""Columns of a query, chosen on the driver, and the builders that fill them on executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, StructField, StructType

from interpulse.model.schemas import SchemaInfo
from interpulse.spark.options.option import OptionError
from interpulse.spark.reading.read_options import ReadOptions
from interpulse.spark.rows.columns import Layout, check_schema, read_schema
from interpulse.spark.schemas.payload_columns import check_same_schemas, payload_fields

if TYPE_CHECKING:
    from interpulse.spark.rows.columns import Message
    from interpulse.spark.rows.row_builder import Decryption, RowBuilder
    from interpulse.spark.schemas.payload_decoder import SchemaOfVersion


@dataclass(frozen=True)
class ReadColumns:
    """Columns of one query. ``topic_schema`` is the schema of its payloads, or None for bytes."""

    wanted: StructType
    layout: Layout
    topic_schema: SchemaInfo | None = None
    corrupt_column: str | None = None

    def builder(
        self,
        schema_of: SchemaOfVersion,
        admits: Callable[[Message], bool] | None = None,
        decryption: Decryption | None = None,
    ) -> RowBuilder:
        """Return a builder of rows.

        ``schema_of`` asks the cluster for a schema, ``admits`` selects the messages to read.
        """
        from interpulse.spark.rows.row_builder import RowBuilder
        from interpulse.spark.schemas.payload_decoder import PayloadDecoder

        decoder = None
        if self.topic_schema is not None:
            decoder = PayloadDecoder(self.topic_schema, self.wanted, schema_of, corrupt_column=self.corrupt_column)
        return RowBuilder(self.wanted, self.layout, decoder, admits, decryption)


def schema_of_query(options: ReadOptions, schemas: Mapping[str, SchemaInfo | None]) -> StructType:
    """Return the columns of a read without a user schema. ``schemas`` are by topic, empty if bytes are read.

    Raises OptionError.
    """
    return read_schema(_layout(options, check_same_schemas(schemas)), options.included)


def columns_of_query(options: ReadOptions, wanted: StructType, schemas: Mapping[str, SchemaInfo | None]) -> ReadColumns:
    """Return the columns that Spark wants: those of :func:`schema_of_query`, or of the user's schema.

    ``value BINARY`` means the payload as it is, unless the topics' schema has such a column. Raises OptionError.
    """
    bytes_wanted = _bytes_wanted(options, wanted)
    try:
        schema = check_same_schemas(schemas)
        layout = _layout(options, schema)
    except OptionError:
        if not bytes_wanted:
            raise
        schema, layout = None, _layout(options, None)
    if bytes_wanted and layout.types.get("value") != BinaryType():
        layout = _layout(options, None)
    check_schema(wanted, layout, options.included)
    if layout.payload is None:
        return ReadColumns(wanted, layout)
    permissive = options.parse_mode == "permissive"
    column = options.corrupt_column if options.corrupt_column in wanted.names else ""
    return ReadColumns(wanted, layout, schema, column if permissive else None)


def _bytes_wanted(options: ReadOptions, wanted: StructType) -> bool:
    payload = [item for item in wanted.fields if not item.name.startswith("__")]
    return options.is_typed and [(item.name, item.dataType) for item in payload] in ([], [("value", BinaryType())])


def _layout(options: ReadOptions, schema: SchemaInfo | None) -> Layout:
    payload = payload_fields(schema)
    if payload is not None and options.parse_mode == "permissive":
        if options.corrupt_column in payload.names:
            raise OptionError(
                f"columnNameOfCorruptRecord={options.corrupt_column} is a field of the topic's schema: name another"
            )
        payload = StructType([*payload.fields, StructField(options.corrupt_column, BinaryType(), True)])
    return Layout(options.mode, options.column_style, payload)
