"""Events of topic policies: brokers of both kinds report changes in the topic ``__change_events`` of a namespace.

The last event of a topic is the truth, and the policy records, which our broker reads everywhere, follow it. Each
broker follows the events of the namespaces it has topics of; it reads them to their end before it loads the first
topic. A record holds the position of its event and never goes back to an earlier one, so several brokers can follow the
same events. A record without a position was never reported, and is reported once.

A change of policies reads to the end, writes an event, and then changes the record.
Source: docs/reference/cluster-protocol.md#topic-policies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import Committer, Records
from interpulse.broker.ownership.own_access import OwnCredentialsRefused, as_this_broker
from interpulse.broker.topics.change_events.event_codec import (
    EVENT_SCHEMA,
    decode_policies,
    encode_policies,
    event_key,
    parse_event_key,
)
from interpulse.model.changes import Decision
from interpulse.model.errors import (
    InvalidTopicName,
    MetadataError,
    NamespaceNotFound,
    OperationTimeout,
    PulsarError,
    ServiceNotReady,
)
from interpulse.model.ids import EARLIEST, MessageId, Position
from interpulse.model.names import CHANGE_EVENTS, NON_PERSISTENT, PERSISTENT, NamespaceName, TopicName
from interpulse.model.policies.policy_documents import TopicPolicies, TopicPolicyRecord
from interpulse.rules.policy_changes import decide_reported_policies
from interpulse.storage.api import MetadataStore

if TYPE_CHECKING:
    from interpulse.client.client import Client
    from interpulse.client.consuming.reader import Reader
    from interpulse.client.messages import Message

log = logging.getLogger(__name__)

_MESSAGE_MS_MAX: Final = 5_000

Levels = dict[tuple[TopicName, bool], tuple[TopicPolicies | None, Position]]
"""The latest event of a topic with its position, for this cluster (False) and for all clusters (True)."""

_READ_SECONDS_MAX: Final = 30.0
_RETRY_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
_LEAVE_SECONDS: Final = 60.0
_DELETION_SECONDS_MAX: Final = 5.0
_REPORT_RETRY_SECONDS: Final = (1.0, 5.0, 30.0, 120.0)


async def read_levels(client: Client, reader: Reader, message: Message | None = None) -> tuple[Levels, Position]:
    """Return the events from ``message`` on, up to the present end of the topic, and the position of the last message.

    ``client`` is asked for the schemas of messages. Unreadable messages are logged and left out.
    """
    levels: Levels = {}
    upto = EARLIEST
    while message is not None or await reader.has_message_available():
        if message is None:
            try:
                message = await reader.read_next(_MESSAGE_MS_MAX)
            except OperationTimeout:  # the last message was removed by compaction
                break
        upto = max(upto, message.id.position)
        await _take(client, message, levels)
        message = None
    return levels, upto


async def _take(client: Client, message: Message, levels: Levels) -> None:
    try:
        topic, everywhere = parse_event_key(message.key or "")
        policies: TopicPolicies | None = None
        if message.content:
            decoded = decode_policies(message.content, await _definition(client, message))
            if decoded is None:
                return
            policies, for_all = decoded
            everywhere |= for_all
        levels[topic, everywhere] = policies, message.id.position
    except (InvalidTopicName, MetadataError) as error:
        log.error("change event invalid topic=%s id=%s key=%s error=%s", message.topic, message.id, message.key, error)


async def _definition(client: Client, message: Message) -> bytes:
    if message.schema_version is None:
        return EVENT_SCHEMA.definition
    schema = await client.get_schema(str(TopicName.parse(message.topic).base), message.schema_version)
    if schema is None:
        raise MetadataError(f"its schema version {message.schema_version.hex()} does not exist")
    return schema.schema.definition


class _Follower:
    def __init__(self) -> None:
        self.task: asyncio.Task[None]
        self.caught_up = False
        self.answered = asyncio.Event()
        """Set once the follower has caught up, or once waiting is useless because this broker is refused."""


class ChangeEvents:
    """Followers and writers of the events of all namespaces. Call `close` at the end."""

    def __init__(
        self,
        store: MetadataStore,
        versions: Callable[[NamespaceName], Awaitable[Mapping[str, int]]],
        open_client: Callable[[], Client],
        *,
        cluster: str,
        loaded: Collection[TopicName],
    ) -> None:
        """Create the events.

        ``versions`` returns the versions of an existing namespace for commits, or raises NamespaceNotFound.
        ``open_client`` opens a client of this cluster. ``loaded`` is a live view of the topics of this broker.
        """
        self._store = store
        self._committer = Committer(store)
        self._versions = versions
        self._open_client = open_client
        self._client: Client | None = None
        self._cluster = cluster
        self._loaded = loaded
        self._followers: dict[NamespaceName, _Follower] = {}
        self._silent: set[NamespaceName] = set()
        """Namespaces without events and without policies to report."""
        self._problems: dict[NamespaceName, PulsarError] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._unwatch: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start watching for new topics of events, and for followers that are no longer needed."""
        self._unwatch = self._store.watch(keys.TOPIC_RECORDS, self._on_records_changed)
        self._spawn(self._leave_unused())

    async def close(self) -> None:
        """Stop following all events."""
        self._unwatch()
        tasks = [*(follower.task for follower in self._followers.values()), *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            with suppress(PulsarError):  # nothing is under way any more
                await self._client.close()

    # --- for policy records

    async def follow(self, namespace: NamespaceName) -> None:
        """Return once the records include all events so far; they follow from then on. Raise ServiceNotReady."""
        if namespace in self._silent:
            return
        follower = self._followers.get(namespace)
        if follower is None:
            if not await self._has_events(namespace) and not await self._unreported(namespace):
                self._silent.add(namespace)
                return
            follower = self._begin(namespace)
        with suppress(TimeoutError):
            async with asyncio.timeout(_READ_SECONDS_MAX):
                await follower.answered.wait()
        if not follower.caught_up:
            raise ServiceNotReady(
                f"Policies of topics of {namespace} are not read yet from {_events_of(namespace)}: "
                f"{self._problems.get(namespace, 'its owner does not answer')}"
            )

    async def refresh(self, namespace: NamespaceName) -> None:
        """Return once the records include all events before this call."""
        await self.follow(namespace)
        if await self._has_events(namespace):
            await self._read_to_end(namespace)

    async def report(self, name: TopicName, before: TopicPolicyRecord, after: TopicPolicyRecord) -> TopicPolicyRecord:
        """Publish the changes, and return ``after`` with the positions. Raise refusals of the events' owner."""
        reported = after
        for everywhere in (False, True):
            if before.level(everywhere=everywhere) != after.level(everywhere=everywhere):
                position = await self._publish(name, after.level(everywhere=everywhere), everywhere=everywhere)
                reported = reported.reported_at(position, everywhere=everywhere)
        self._silent.discard(name.namespace_name)
        if name.namespace_name not in self._followers:
            self._begin(name.namespace_name)
        return reported

    async def forget(self, name: TopicName, record: TopicPolicyRecord) -> None:
        """Report that the topic was deleted with these policies, again later if that fails."""
        try:
            async with asyncio.timeout(_DELETION_SECONDS_MAX):
                await self._report_deletion(name, record)
        except (PulsarError, TimeoutError) as error:
            log.warning("deletion of policies not reported yet topic=%s error=%s", name, error)
            self._spawn(self._retry_deletion(name, record))

    async def _retry_deletion(self, name: TopicName, record: TopicPolicyRecord) -> None:
        for seconds in _REPORT_RETRY_SECONDS:
            await asyncio.sleep(seconds)
            with suppress(PulsarError):
                await self._report_deletion(name, record)
                return
        log.error("policies of a deleted topic remain for the next topic of this name topic=%s", name)

    async def _report_deletion(self, name: TopicName, record: TopicPolicyRecord) -> None:
        """Report a deletion, unless policies were set since then for a new topic of that name."""
        newest = (await self._records(name.namespace_name)).get(name, TopicPolicyRecord())
        if newest.positions in ({}, record.positions) and await self._has_events(name.namespace_name):
            await self.report(name, record, TopicPolicyRecord())

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- following

    def _on_records_changed(self, key: str) -> None:
        """Follow a topic of events that another broker created, if this broker has topics of the namespace."""
        if not key.rstrip("0123456789").endswith((f"/{CHANGE_EVENTS}", f"/{CHANGE_EVENTS}-partition-")) and key != (
            keys.TOPIC_RECORDS
        ):
            return
        topic = keys.topic_of_record(key) if key != keys.TOPIC_RECORDS else None
        concerned = self._silent.copy() if topic is None else self._silent & {topic.namespace_name}
        self._silent -= concerned
        for namespace in sorted(concerned & {name.namespace_name for name in self._loaded}):
            self._begin(namespace)

    def _begin(self, namespace: NamespaceName) -> _Follower:
        follower = self._followers[namespace] = _Follower()
        follower.task = asyncio.get_running_loop().create_task(self._follow(namespace, follower))
        return follower

    async def _follow(self, namespace: NamespaceName, follower: _Follower) -> None:
        failures = 0
        try:
            while True:
                try:
                    if not await self._has_events(namespace) and not await self._unreported(namespace):
                        return
                    await self._follow_while_connected(namespace, follower)
                except NamespaceNotFound:
                    return
                except PulsarError as error:
                    self._problems[namespace] = error
                    if isinstance(error, OwnCredentialsRefused):
                        follower.answered.set()
                    log.warning("topic policies not followed namespace=%s error=%s", namespace, error)
                except Exception:
                    log.exception("topic policies not followed namespace=%s", namespace)
                failures = 0 if follower.caught_up else failures + 1
                await asyncio.sleep(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)])
        finally:
            follower.caught_up = True  # the waiting callers find no events
            follower.answered.set()
            self._problems.pop(namespace, None)
            if self._followers.get(namespace) is follower:
                del self._followers[namespace]

    async def _follow_while_connected(self, namespace: NamespaceName, follower: _Follower) -> None:
        if not await self._has_events(namespace):
            await self._report_missing(namespace)
        reader = await self._reader(namespace)
        try:
            levels, upto = await read_levels(self._cluster_client(), reader)
            await self._store_all(levels)
            await self._drop_compacted(namespace, levels, upto)
            await self._report_missing(namespace)
            follower.caught_up = True
            follower.answered.set()
            self._problems.pop(namespace, None)
            log.info("topic policies followed namespace=%s events=%d", namespace, len(levels))
            while True:
                message = await reader.read_next()
                levels, _ = await read_levels(self._cluster_client(), reader, message)
                await self._store_all(levels)
        finally:
            await reader.close()

    async def _read_to_end(self, namespace: NamespaceName) -> None:
        reader = await self._reader(namespace)
        try:
            levels, _ = await read_levels(self._cluster_client(), reader)
            await self._store_all(levels)
        finally:
            await reader.close()

    async def _reader(self, namespace: NamespaceName) -> Reader:
        events = _events_of(namespace)
        with as_this_broker(f"read {events}"):
            return await self._cluster_client().create_reader(
                str(events),
                EARLIEST,
                read_compacted=True,
                force_topic_creation=False,
                subscription_prefix="__system_reader",
            )

    async def _leave_unused(self) -> None:
        """Stop following namespaces that this broker no longer has topics of."""
        while True:
            await asyncio.sleep(_LEAVE_SECONDS)
            needed = {name.namespace_name for name in self._loaded if not name.is_system}
            for namespace in self._followers.keys() - needed:
                if self._followers[namespace].caught_up:
                    self._followers.pop(namespace).task.cancel()
            self._silent &= needed

    # --- records

    async def _has_events(self, namespace: NamespaceName) -> bool:
        topic = _events_of(namespace)
        return bool(await self._store.get_many([keys.topic_record(topic), keys.partitioned_topic(topic)]))

    async def _records(self, namespace: NamespaceName) -> dict[TopicName, TopicPolicyRecord]:
        records: dict[TopicName, TopicPolicyRecord] = {}
        for domain in (PERSISTENT, NON_PERSISTENT):
            parent = keys.all_topic_policies(namespace, domain)
            paths = [f"{parent}/{child}" for child in await self._store.children(parent)]
            for path, stored in (await self._store.get_many(paths)).items():
                topic = keys.topic_of_topic_policies(path)
                if topic is not None:
                    records[topic] = TopicPolicyRecord.load(stored.value)
        return records

    async def _unreported(self, namespace: NamespaceName) -> dict[TopicName, TopicPolicyRecord]:
        return {name: record for name, record in (await self._records(namespace)).items() if record.unreported}

    async def _report_missing(self, namespace: NamespaceName) -> None:
        """Report policies that have no event yet, such as those of a broker that was alone."""
        for name, record in (await self._unreported(namespace)).items():
            for everywhere in record.unreported:
                policies = record.level(everywhere=everywhere)
                position = await self._publish(name, policies, everywhere=everywhere)
                await self._store_level(name, policies, position, everywhere=everywhere)

    async def _drop_compacted(self, namespace: NamespaceName, levels: Levels, upto: Position) -> None:
        """Remove policies whose event has disappeared: compaction dropped it after their removal."""
        for name, record in (await self._records(namespace)).items():
            for everywhere in (False, True):
                position = record.position(everywhere=everywhere)
                if position is not None and position <= upto and (name, everywhere) not in levels:
                    await self._store_level(name, None, upto, everywhere=everywhere)

    async def _store_all(self, levels: Levels) -> None:
        for (name, everywhere), (policies, position) in levels.items():
            await self._store_level(name, policies, position, everywhere=everywhere)

    async def _store_level(
        self, name: TopicName, policies: TopicPolicies | None, position: Position, *, everywhere: bool
    ) -> None:
        key = keys.topic_policies(name)

        async def propose(records: Records) -> Decision[None]:
            stored = await records.get(key)
            record = TopicPolicyRecord.load(stored.value) if stored else None
            decision = decide_reported_policies(name, record, policies, position, everywhere=everywhere)
            if decision.changes:
                records.versions |= await self._versions(name.namespace_name)
            return decision

        await self._committer.decide(propose)

    # --- reporting

    async def _publish(self, name: TopicName, policies: TopicPolicies, *, everywhere: bool) -> Position:
        content = (
            encode_policies(name, policies, everywhere=everywhere, cluster=self._cluster)
            if policies.to_json()
            else None
        )
        topic = str(_events_of(name.namespace_name))
        with as_this_broker(f"report policies in {topic}"):
            producer = await self._cluster_client().create_producer(topic, schema=EVENT_SCHEMA, batching_enabled=False)
        try:
            receipt: MessageId = await producer.send(
                content,
                key=event_key(name, everywhere=everywhere),
                replication_clusters=() if everywhere else (self._cluster,),
            )
        finally:
            await producer.close()
        return receipt.position

    def _cluster_client(self) -> Client:
        if self._client is None:
            self._client = self._open_client()
        return self._client


def _events_of(namespace: NamespaceName) -> TopicName:
    return TopicName.of(PERSISTENT, namespace.tenant, namespace.local, CHANGE_EVENTS)
