"""Versions of the source's schemas on the target."""

from __future__ import annotations

from interpulse.client.lookup.topic_schemas import store_schema
from interpulse.client.session import Session
from interpulse.model.errors import MetadataError
from interpulse.model.names import TopicName
from interpulse.spark.topic_map import TopicMap


class TargetSchemas:
    """Registers each schema on the target for its first entry, and caches the target's version."""

    def __init__(self, target: Session, source: Session | None, topic_map: TopicMap | None = None) -> None:
        """Set the clusters. Without a source, versions have no meaning here, so entries are written without one.

        ``topic_map`` maps names of source topics to names on the target.
        """
        self._target = target
        self._map = topic_map or TopicMap()
        self._source = source
        self._versions: dict[tuple[TopicName, bytes], bytes] = {}

    async def version(self, topic: str, version: bytes, *, producer_name: str | None) -> bytes | None:
        """Return the target's version for one of the source. Raises IncompatibleSchema."""
        if self._source is None:
            return None
        name = TopicName.parse(topic)
        key = (name.base, version)
        if key not in self._versions:
            self._versions[key] = await self._translated(self._source, name, version, producer_name)
        return self._versions[key]

    async def _translated(self, source: Session, name: TopicName, version: bytes, producer_name: str | None) -> bytes:
        """Register the schema under the name of the entry's own partition.

        Pulsar finds no topic under the name of a partitioned topic here.
        """
        found = await source.lookup.schema(name.base, version)
        if found is None:
            raise MetadataError(
                f"{name.base}: the source does not know schema version {version.hex()} of its own entries"
            )
        there = self._map.target(name)
        connection = await self._target.connect(there)
        return await store_schema(connection, there, found.schema, producer_name=producer_name)
