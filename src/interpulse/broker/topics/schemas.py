"""The schemas of topics: registered by decisions, checked and handed out; and the store of a standalone broker."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import Committer, Records
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.instruments import SchemaMeter
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.topic_policies import stored_policies
from interpulse.clock import Clock
from interpulse.model.changes import AppendSchema, Change, Decision
from interpulse.model.errors import IncompatibleSchema, SchemaNotFound
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.model.topics import Requester
from interpulse.rules.effective_policies import effective_policies, namespace_level
from interpulse.rules.schemas import (
    SchemaVersion,
    check_compatibility,
    check_consumer_schema,
    decide_delete_schema,
    decide_registration,
    find_equal,
    live_versions,
)
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
    """A store with one record for all versions of a topic. See `SchemaStore`.

    One record per base topic, shared by its partitions and by both domains, is JSON at
    ``/schemas/<tenant>/<namespace>/<topic>``::

        {"versions": [{"version": 0, "type": "AVRO", "name": "", "schema": "<base64>", "properties": {..},
                       "timestamp": <ms>, "deleted": false}, ..]}
    """

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def read(self, topic: TopicName) -> History:
        stored = await self._store.get(keys.schema(topic))
        if stored is None:
            return History()
        return History([_version_from_json(body) for body in json.loads(stored.value)["versions"]], stored.version)

    async def append(
        self, topic: TopicName, history: History, added: SchemaVersion, expect: Mapping[str, int | None]
    ) -> None:
        versions = [_version_to_json(version) for version in (*history.versions, added)]
        put = Put(keys.schema(topic), json.dumps({"versions": versions}).encode())
        await self._store.commit([put], {keys.schema(topic): history.record_version, **expect})

    async def forget(self, topic: TopicName) -> None:
        await self._store.commit([Delete(keys.schema(topic))])


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


def _version_from_json(body: dict[str, Any]) -> SchemaVersion:
    schema = None
    if not body["deleted"]:
        definition = base64.b64decode(body["schema"])
        schema = SchemaInfo(SchemaType[body["type"]], definition, body["properties"], body["name"])
    return SchemaVersion(body["version"], schema, body["timestamp"])


class Schemas:
    """Registers, checks and hands out the schemas of topics."""

    def __init__(
        self,
        store: MetadataStore,
        policies: Namespaces,
        settings: Callable[[], BrokerConfig],
        clock: Clock,
        schema_store: SchemaStore | None = None,
    ) -> None:
        """Create the schemas; ``settings`` is read each time, because the auto-update switch may change."""
        self.meters: defaultdict[str, SchemaMeter] = defaultdict(SchemaMeter)
        """Counts and times of operations on schemas, by namespace."""
        self._store = store
        self._committer = Committer(store)
        self._policies = policies
        self._settings = settings
        self._clock = clock
        self._schemas = schema_store or RecordedSchemas(store)

    async def register(self, topic: TopicName, schema: SchemaInfo, *, by: Requester) -> int:
        """Return the version of ``schema``, which is stored if the topic does not have it; raises IncompatibleSchema.

        The switches for automatic updates bind clients and replicators, not administrators.
        """
        policies = await self._policies.get_policies(topic.namespace_name)
        strategy = await self.strategy(topic)
        may_update = by is Requester.ADMIN or self._may_update(topic, policies, by)
        meter = self._meter(topic)

        def rule(history: Sequence[SchemaVersion]) -> Decision[int]:
            now_ms = self._clock.now_ms()
            try:
                decision = decide_registration(
                    topic, history, schema, strategy=strategy, may_update=may_update, now_ms=now_ms
                )
            except IncompatibleSchema:
                meter.incompatible += 1
                raise
            meter.compatible += bool(decision.changes)
            return decision

        return await self._decide(topic, rule, meter.puts.timed)

    async def check(self, topic: TopicName, schema: SchemaInfo) -> str:
        """Return the strategy under which ``schema`` could be registered; raises IncompatibleSchema if it could not.

        The switches for automatic updates do not count.
        """
        strategy = await self.strategy(topic)
        check_compatibility((await self._read(topic)).versions, schema, strategy=strategy)
        return strategy

    async def strategy(self, topic: TopicName) -> str:
        """Return the rule by which a new schema must fit the earlier ones; raises NamespaceNotFound."""
        if topic.is_system:
            return self._settings().system_topic_schema_compatibility_strategy
        return str((await self._in_force(topic)).schema_compatibility_strategy)

    async def admit_producer(self, topic: TopicName, schema: SchemaInfo | None, *, by: Requester) -> int | None:
        """Return the version that a new producer writes with, None without schema; raises IncompatibleSchema."""
        if schema is not None:
            return await self.register(topic, schema, by=by)
        if topic.is_system or not await self.has_schema(topic):
            return None
        if (await self._in_force(topic)).schema_validation_enforced:
            raise IncompatibleSchema(
                "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException: "
                f"Producers cannot connect or send message without a schema to topics with a schema: {topic.base}"
            )
        return None

    async def admit_consumer(self, topic: TopicName, schema: SchemaInfo, *, topic_active: bool) -> None:
        """Check a consumer's schema against the topic's, or make it the first one. Raise IncompatibleSchema.

        ``topic_active`` if the topic holds messages, or another client produces or consumes; then a consumer cannot
        define the first schema.
        """
        history = (await self._read(topic)).versions
        if live_versions(history):
            check_consumer_schema(history, schema, strategy=await self.strategy(topic))
        elif topic_active:
            raise IncompatibleSchema(
                "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException: Failed to add schema "
                f"to an active topic with empty(BYTES) schema: new schema type {schema.type.name}"
            )
        else:
            await self.register(topic, schema, by=Requester.CLIENT)

    async def get(self, topic: TopicName, version: int | None = None) -> tuple[SchemaInfo, int]:
        """Return the latest schema, or the one of ``version``; raises SchemaNotFound."""
        history = (await self._read(topic)).versions
        live = live_versions(history)
        wanted = live[-1:] if version is None else [entry for entry in live if entry.version == version]
        if not wanted or wanted[0].schema is None:
            raise SchemaNotFound("Topic not found or no-schema")
        return wanted[0].schema, wanted[0].version

    async def has_schema(self, topic: TopicName) -> bool:
        """Return True if the topic has a schema now."""
        return bool(live_versions((await self._read(topic)).versions))

    async def versions(self, topic: TopicName) -> Sequence[SchemaVersion]:
        """Return the whole history with its deletion markers, oldest first."""
        return (await self._read(topic)).versions

    async def version_of(self, topic: TopicName, schema: SchemaInfo) -> int | None:
        """Return the version under which exactly this schema is registered, or None."""
        return find_equal((await self._read(topic)).versions, schema)

    async def delete(self, topic: TopicName, *, force: bool = False) -> int:
        """Hide the history behind a deletion marker and return its version; ``force`` erases it and returns -1."""
        if force:
            with self._meter(topic).deletions.timed():
                await self._schemas.forget(topic)
            return -1

        def rule(history: Sequence[SchemaVersion]) -> Decision[int]:
            return decide_delete_schema(topic, history, now_ms=self._clock.now_ms())

        return await self._decide(topic, rule, self._meter(topic).deletions.timed)

    async def _in_force(self, topic: TopicName) -> TopicPolicies:
        """Return the effective policies about schemas: the topic's over its namespace's over the broker's."""
        settings = self._settings()
        broker = TopicPolicies(
            schema_compatibility_strategy=settings.schema_compatibility_strategy,
            schema_validation_enforced=settings.is_schema_validation_enforced,
        )
        namespace = await self._policies.get_policies(topic.namespace_name)
        own = await stored_policies(self._store, topic)
        return effective_policies(own, namespace_level(namespace, cluster=""), broker)

    def _may_update(self, topic: TopicName, policies: NamespacePolicies, by: Requester) -> bool:
        if topic.is_system:
            return True
        allowed = policies.allow_auto_update_schema
        if self._settings().is_allow_auto_update_schema_enabled if allowed is None else allowed:
            return True
        return by is Requester.REPLICATOR and policies.allow_auto_update_schema_with_replicator

    async def _decide(
        self,
        topic: TopicName,
        rule: Callable[[Sequence[SchemaVersion]], Decision[int]],
        timed: Callable[[], AbstractContextManager[None]],
    ) -> int:
        """Append the version that the rule decides on; its store commits it, within ``timed``."""
        history = History()

        async def propose(records: Records) -> Decision[int]:
            nonlocal history
            history = await self._read(topic)
            decision = rule(history.versions)
            if decision.changes:
                records.versions |= await self._policies.expected_versions(topic.namespace_name)
                records.claim = timed()
            return decision

        async def commit(decided: Sequence[Change], records: Records) -> None:
            for change in decided:
                assert isinstance(change, AppendSchema)
                added = SchemaVersion(change.version, change.schema, change.created_ms)
                await self._schemas.append(topic, history, added, records.versions)

        return (await self._committer.decide(propose, commit=commit)).answer

    async def _read(self, topic: TopicName) -> History:
        with self._meter(topic).gets.timed():
            return await self._schemas.read(topic)

    def _meter(self, topic: TopicName) -> SchemaMeter:
        return self.meters[str(topic.namespace_name)]
