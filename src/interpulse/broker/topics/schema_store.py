"""Where the schemas of topics are kept: the seam to it, and its two sides.

A broker that is alone has one record per base topic, shared by its partitions and by both domains, as JSON at
``/schemas/<tenant>/<namespace>/<topic>``::

    {"versions": [{"version": 0, "type": "AVRO", "name": "", "schema": "<base64>", "properties": {..},
                   "timestamp": <ms>, "deleted": false}, ..]}

In a cluster the same key has a locator, which names a ledger for each version. A version that was stored never changes,
so it is read from its ledger once.
"""

from __future__ import annotations

import base64
import json
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from interpulse.broker import metadata_paths as keys
from interpulse.model.errors import MetadataError, PersistenceError
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.rules.schemas import SchemaVersion
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, MetadataUnavailable, Put
from interpulse.storage.bookkeeper.ledger_metadata import Quorum
from interpulse.storage.managed_ledger.schema_codec import (
    StoredSchema,
    VersionPlace,
    decode_locator,
    decode_schema,
    encode_locator,
    encode_schema,
)

__all__ = ["History", "LedgerSchemas", "RecordedSchemas", "SchemaLedgers", "SchemaStore"]

log = logging.getLogger(__name__)

_SCHEMAS_KEPT: Final = 1000
_ENTRY_BYTES_MAX: Final = 1 << 30


class History(NamedTuple):
    """The versions of a topic's schema, oldest first, and the version of the record that says so; None = no record."""

    versions: Sequence[SchemaVersion] = ()
    record_version: int | None = None


class SchemaStore(Protocol):
    """All methods raise MetadataError or PersistenceError if they cannot read or store."""

    async def read(self, topic: TopicName) -> History:
        """What is stored now."""

    async def append(
        self, topic: TopicName, history: History, added: SchemaVersion, expect: Mapping[str, int | None]
    ) -> None:
        """Store one more version. Raises CommitConflict if the history or what ``expect`` says is another by now."""

    async def forget(self, topic: TopicName) -> None:
        """Erase the history."""


class RecordedSchemas:
    """One record with all versions of a topic. See `SchemaStore`."""

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


class SchemaLedgers(Protocol):
    """The ledgers of a cluster, as schemas need them."""

    async def create(self, quorum: Quorum, *, custom: Mapping[str, bytes] | None = None) -> Any: ...

    async def open(self, ledger_id: int) -> Any: ...

    async def delete(self, ledger_id: int) -> None: ...


class LedgerSchemas:
    """A locator for each topic, and a ledger for each version. See `SchemaStore`."""

    def __init__(self, store: MetadataStore, ledgers: SchemaLedgers, quorum: Quorum) -> None:
        self._store = store
        self._ledgers = ledgers
        self._quorum = quorum
        self._read: OrderedDict[Position, StoredSchema] = OrderedDict()

    async def read(self, topic: TopicName) -> History:
        stored = await self._store.get(keys.schema(topic))
        if stored is None:
            return History()
        versions = []
        for place in self._places(topic, stored.value):
            found = await self._schema(topic, place)
            versions.append(SchemaVersion(place.version, found.schema, found.created_ms))
        return History(versions, stored.version)

    async def append(
        self, topic: TopicName, history: History, added: SchemaVersion, expect: Mapping[str, int | None]
    ) -> None:
        key = keys.schema(topic)
        stored = await self._store.get(key)
        if (None if stored is None else stored.version) != history.record_version:
            raise CommitConflict(key)
        kept = b"" if stored is None else stored.value
        places = self._places(topic, kept) if kept else []
        entry, digest = encode_schema(topic.schema_id, added.schema, added.created_ms, places)
        ledger = await self._ledgers.create(self._quorum, custom=_custom(topic))
        try:
            entry_id = await ledger.add(entry)
            await ledger.close()
            place = VersionPlace(added.version, Position(ledger.ledger_id, entry_id), digest)
            put = Put(key, encode_locator([*places, place], kept=kept))
            await self._store.commit([put], {key: history.record_version, **expect})
        except CommitConflict:
            await self._drop([ledger.ledger_id])
            raise

    async def forget(self, topic: TopicName) -> None:
        key = keys.schema(topic)
        stored = await self._store.get(key)
        if stored is not None:
            await self._store.commit([Delete(key)])
            await self._drop([each.position.ledger for each in self._places(topic, stored.value)])

    def _places(self, topic: TopicName, value: bytes) -> list[VersionPlace]:
        try:
            return decode_locator(value)
        except ValueError as error:
            raise MetadataUnavailable(f"the schemas of {topic.base} cannot be understood: {error}") from error

    async def _schema(self, topic: TopicName, place: VersionPlace) -> StoredSchema:
        found = self._read.get(place.position)
        if found is None:
            ledger = await self._ledgers.open(place.position.ledger)
            (entry,) = await ledger.read(place.position.entry, entries_max=1, bytes_max=_ENTRY_BYTES_MAX)
            try:
                found = decode_schema(entry)
            except ValueError as error:
                problem = f"version {place.version} of the schema of {topic.base} cannot be understood: {error}"
                raise MetadataUnavailable(problem) from error
            self._read[place.position] = found
            if len(self._read) > _SCHEMAS_KEPT:
                self._read.popitem(last=False)
        return found

    async def _drop(self, ledger_ids: Sequence[int]) -> None:
        """Ledgers that no locator names; one that cannot be deleted stays."""
        for ledger_id in ledger_ids:
            try:
                await self._ledgers.delete(ledger_id)
            except (MetadataError, PersistenceError) as error:
                log.warning("ledger of a schema stays ledger=%d error=%s", ledger_id, error)


def _custom(topic: TopicName) -> dict[str, bytes]:
    """What the ledger is for, as operators' tools show it."""
    return {"component": b"schema", "application": b"pulsar", "pulsar/schemaId": topic.schema_id.encode()}


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
