"""Schemas of rows by topic: the topic's own, or for a topic without one that of the columns."""

from __future__ import annotations

from pyspark.sql.types import StructType

from interpulse.client.session import Session
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.spark.processes.process_client import patiently
from interpulse.spark.schemas.payload_columns import schema_of_columns
from interpulse.spark.schemas.payload_encoder import RowEncoder


class RowEncoders:
    """Encoders by topic. The schema of a topic is requested for its first row, and cached for the task."""

    def __init__(self, session: Session, columns: StructType, record_type: SchemaType) -> None:
        """Set the columns. ``record_type`` is the type of a schema that the columns make."""
        self._session = session
        self.columns = columns
        self._record_type = record_type
        self._encoders: dict[TopicName, RowEncoder] = {}

    async def encoder(self, topic: str) -> RowEncoder:
        """Return the encoder of a topic. Raises IncompatibleSchema if the columns do not fit its schema."""
        base = TopicName.parse(topic).base
        encoder = self._encoders.get(base)
        if encoder is None:
            schema = await self._schema_of(base)
            encoder = self._encoders[base] = RowEncoder(str(base), schema, self.columns)
        return encoder

    async def _schema_of(self, topic: TopicName) -> SchemaInfo:
        found = await patiently(self._session, lambda: self._session.lookup.schema(topic))
        if found is None or found.schema.type is SchemaType.NONE:  # Pulsar answers a deleted schema with type NONE
            return schema_of_columns(self.columns, self._record_type)
        return found.schema
