"""The storage of topic schemas: the seam, and the store of a broker alone.

One record per base topic, shared by its partitions and by both domains, is JSON at
``/schemas/<tenant>/<namespace>/<topic>``::

    {"versions": [{"version": 0, "type": "AVRO", "name": "", "schema": "<base64>", "properties": {..},
                   "timestamp": <ms>, "deleted": false}, ..]}
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from interpulse.broker import metadata_paths as keys
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schemas import SchemaVersion
from interpulse.storage.api import Delete, MetadataStore, Put


class History(NamedTuple):
    """The versions of a topic's schema, oldest first, and the version of the record that says so; None = no record."""

    versions: Sequence[SchemaVersion] = ()
    record_version: int | None = None


class SchemaStore(Protocol):
    """The seam to a store of schemas. All methods raise MetadataError or PersistenceError on failure."""

    async def read(self, topic: TopicName) -> History:
        """Return the stored history."""

    async def append(
        self, topic: TopicName, history: History, added: SchemaVersion, expect: Mapping[str, int | None]
    ) -> None:
        """Store one more version. Raise CommitConflict if the history or a record of ``expect`` has changed."""

    async def forget(self, topic: TopicName) -> None:
        """Erase the history."""


class RecordedSchemas:
    """A store with one record for all versions of a topic. See `SchemaStore`."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def read(self, topic: TopicName) -> History:
        stored = await self._store.get(keys.schema(topic))
        return History() if stored is None else History(_load(stored.value), stored.version)

    async def append(
        self, topic: TopicName, history: History, added: SchemaVersion, expect: Mapping[str, int | None]
    ) -> None:
        put = Put(keys.schema(topic), _dump([*history.versions, added]))
        await self._store.commit([put], {keys.schema(topic): history.record_version, **expect})

    async def forget(self, topic: TopicName) -> None:
        await self._store.commit([Delete(keys.schema(topic))])


def _dump(history: Sequence[SchemaVersion]) -> bytes:
    return json.dumps({"versions": [_version_to_json(entry) for entry in history]}).encode()


def _version_to_json(entry: SchemaVersion) -> dict[str, Any]:
    schema = entry.schema or SchemaInfo(SchemaType.NONE)
    return {
        "version": entry.version,
        "type": schema.type.name,
        "name": schema.name,
        "schema": base64.b64encode(schema.definition).decode("ascii"),
        "properties": dict(schema.properties),
        "timestamp": entry.created_ms,
        "deleted": entry.schema is None,
    }


def _load(raw: bytes) -> list[SchemaVersion]:
    return [_version_from_json(body) for body in json.loads(raw)["versions"]]


def _version_from_json(body: dict[str, Any]) -> SchemaVersion:
    schema = None
    if not body["deleted"]:
        definition = base64.b64decode(body["schema"])
        schema = SchemaInfo(SchemaType[body["type"]], definition, body["properties"], body["name"])
    return SchemaVersion(body["version"], schema, body["timestamp"])
