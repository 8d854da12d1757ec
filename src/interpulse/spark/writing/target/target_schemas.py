"""Which version a schema of the source cluster has on the cluster written to."""

from __future__ import annotations

from interpulse.client.lookup.topic_schemas import store_schema
from interpulse.client.session import Session
from interpulse.model.errors import MetadataError
from interpulse.model.names import TopicName
from interpulse.spark.topic_map import TopicMap

__all__ = ["TargetSchemas"]


class TargetSchemas:
    """Registers a schema on the target when one of its entries is met for the first time, and remembers its version."""

    def __init__(self, target: Session, source: Session | None, topic_map: TopicMap | None = None) -> None:
        """Without a source, versions cannot be told from each other: entries are written without one. ``topic_map``
        says what topics of the source are called on the target."""
        self._target = target
        self._map = topic_map or TopicMap()
        self._source = source
        self._versions: dict[tuple[TopicName, bytes], bytes] = {}

    async def version(self, topic: str, version: bytes, *, producer_name: str | None) -> bytes | None:
        """The version on the target for one of the source. Raises IncompatibleSchema."""
        if self._source is None:
            return None
        name = TopicName.parse(topic)
        key = (name.base, version)
        if key not in self._versions:
            self._versions[key] = await self._translated(self._source, name, version, producer_name)
        return self._versions[key]

    async def _translated(self, source: Session, name: TopicName, version: bytes, producer_name: str | None) -> bytes:
        """Stored on a topic that holds entries: Pulsar finds none of the name of a partitioned one here."""
        found = await source.lookup.schema(name.base, version)
        if found is None:
            raise MetadataError(
                f"{name.base}: the source does not know schema version {version.hex()} of its own entries"
            )
        there = self._map.target(name)
        connection = await self._target.connect(there)
        return await store_schema(connection, there, found.schema, producer_name=producer_name)
