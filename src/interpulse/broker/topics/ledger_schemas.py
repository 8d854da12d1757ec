"""The schemas of topics in a cluster: the record of a topic is a locator, which names a ledger for each version.

A version that was stored never changes, so it is read from its ledger once.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.topics.schemas import History
from interpulse.model.errors import MetadataError, PersistenceError
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.rules.schemas import SchemaVersion
from interpulse.storage.api import CommitConflict, Delete, MetadataStore, MetadataUnavailable, Put
from interpulse.storage.bookkeeper.client import BookKeeperClient
from interpulse.storage.bookkeeper.records import Quorum
from interpulse.storage.managed_ledger.schema_codec import (
    StoredSchema,
    VersionEntry,
    decode_locator,
    decode_schema,
    encode_locator,
    encode_schema,
)

log = logging.getLogger(__name__)

_SCHEMAS_KEPT: Final = 1000
_ENTRY_BYTES_MAX: Final = 1 << 30


class LedgerSchemas:
    """A locator for each topic, and a ledger for each version. See `SchemaStore`."""

    def __init__(self, store: MetadataStore, ledgers: BookKeeperClient, quorum: Quorum) -> None:
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
            schema = await self._schema(topic, place)
            versions.append(SchemaVersion(place.version, schema.schema, schema.created_ms))
        return History(versions, stored.version)

    async def append(
        self, topic: TopicName, history: History, added: SchemaVersion, expect: Mapping[str, int | None]
    ) -> None:
        key = keys.schema(topic)
        stored = await self._store.get(key)
        if (None if stored is None else stored.version) != history.record_version:
            raise CommitConflict(key)
        previous = b"" if stored is None else stored.value
        places = self._places(topic, previous) if previous else []
        entry, digest = encode_schema(topic.schema_id, added.schema, added.created_ms, places)
        custom = {"component": b"schema", "application": b"pulsar", "pulsar/schemaId": topic.schema_id.encode()}
        ledger = await self._ledgers.create(self._quorum, custom=custom)
        try:
            entry_id = await ledger.add(entry)
            await ledger.close()
            place = VersionEntry(added.version, Position(ledger.ledger_id, entry_id), digest)
            put = Put(key, encode_locator([*places, place], previous=previous))
            await self._store.commit([put], {key: history.record_version, **expect})
        except CommitConflict:
            await self._drop([ledger.ledger_id])
            raise

    async def forget(self, topic: TopicName) -> None:
        key = keys.schema(topic)
        stored = await self._store.get(key)
        if stored is not None:
            await self._store.commit([Delete(key)])
            await self._drop([place.position.ledger for place in self._places(topic, stored.value)])

    def _places(self, topic: TopicName, value: bytes) -> list[VersionEntry]:
        try:
            return decode_locator(value)
        except ValueError as error:
            raise MetadataUnavailable(f"the schemas of {topic.base} are invalid: {error}") from error

    async def _schema(self, topic: TopicName, place: VersionEntry) -> StoredSchema:
        schema = self._read.get(place.position)
        if schema is None:
            ledger = await self._ledgers.open(place.position.ledger)
            (entry,) = await ledger.read(place.position.entry, entries_max=1, bytes_max=_ENTRY_BYTES_MAX)
            try:
                schema = decode_schema(entry)
            except ValueError as error:
                problem = f"version {place.version} of the schema of {topic.base} is invalid: {error}"
                raise MetadataUnavailable(problem) from error
            self._read[place.position] = schema
            if len(self._read) > _SCHEMAS_KEPT:
                self._read.popitem(last=False)
        return schema

    async def _drop(self, ledger_ids: Sequence[int]) -> None:
        """Delete ledgers that no locator names. Failures are logged and the ledger stays."""
        for ledger_id in ledger_ids:
            try:
                await self._ledgers.delete(ledger_id)
            except (MetadataError, PersistenceError) as error:
                log.warning("schema ledger not deleted ledger=%d error=%s", ledger_id, error)
