"""The source cluster over the binary protocol, as the driver's planner sees it. It never creates a topic.

Per topic-partition one consumer without permits is kept open: of the durable subscription if the options name one,
else a non-durable one. It costs the broker nothing while idle and answers for the last entry and for what is
acknowledged in one round trip.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from interpulse.client.consuming.entry_reader import EntryReader
from interpulse.client.session import Session
from interpulse.client.transport.backoff import Backoff, retry
from interpulse.client.transport.connection import Connection
from interpulse.clock import now_ms
from interpulse.model.errors import ConsumerBusy, OperationTimeout, PulsarError, TopicNotFound
from interpulse.model.ids import LATEST, Position
from interpulse.model.names import TopicName
from interpulse.spark.connection_options import admin_client
from interpulse.spark.process_client import process_portal, session_for
from interpulse.spark.reading.ledger_tables import ledger_tables
from interpulse.spark.reading.planner import Following, HeldBack, TopicEnd, WrittenBatch
from interpulse.spark.reading.read_options import SUBSCRIPTION, ReadOptions
from interpulse.spark.reading.splitting import Ledger
from interpulse.spark.reading.time_search import positions_before
from interpulse.spark.reading.topic_selection import CONCURRENT_MAX, selected_topics
from interpulse.spark.state_files import HELD_FILE, LAST_COMMIT_FILE, HeldRange, load_held
from interpulse.spark.throttle import Rate
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.ids import message_id_to_wire, position_from_wire

__all__ = ["BrokerSourceView"]

log = logging.getLogger(__name__)

_BUSY_TIMEOUT_MS: Final = 30_000
_PATIENCE_S: Final = 2.0


class _Cursor:
    """One consumer that never receives anything.

    Brokers of ours refuse one for a replication cursor that policies have not opened: SubscriptionNotFound. Their topic
    keeps its position, and goes on where its cursor stands when there is one again.
    """

    def __init__(self, session: Session, topic: TopicName, options: ReadOptions, *, earliest: bool) -> None:
        self.topic = topic
        self.acknowledged: Position | None = None
        self._session = session
        self._durable = options.predefined_subscription is not None
        self._name = options.predefined_subscription or f"{options.subscription_prefix}-{secrets.token_hex(5)}"
        self._earliest = earliest
        self._connection: Connection | None = None
        self._id = -1

    async def end(self) -> TopicEnd:
        """The last entry, and what the durable subscription has acknowledged. Raises TopicNotFound."""
        connection = self._connection or await self._open()
        consumer_id = self._id
        try:
            answer = await connection.request(lambda number: commands.get_last_message_id(number, consumer_id))
        except PulsarError:
            self._connection = None  # the next question opens another one
            connection.consumers.forget(consumer_id)
            raise
        response = answer.getLastMessageIdResponse
        acknowledged = None
        if self._durable and response.HasField("consumer_mark_delete_position"):
            acknowledged = position_from_wire(response.consumer_mark_delete_position)
        return TopicEnd(position_from_wire(response.last_message_id), acknowledged)

    async def _open(self) -> Connection:
        """After a crash the broker may hold the subscription for the old connection for a moment: wait for it."""

        def retriable(error: PulsarError) -> bool:
            return error.retriable or isinstance(error, ConsumerBusy)

        return await retry(self._attach, timeout_ms=_BUSY_TIMEOUT_MS, backoff=Backoff(100, 2_000), retriable=retriable)

    async def _attach(self) -> Connection:
        connection = await self._session.connect(self.topic)
        self._id = self._session.next_id()
        await connection.consumers.open(self._id, self, self._subscribe_frame)
        self._connection = connection
        self.acknowledged = None  # the last acknowledgement may not have arrived
        return connection

    def _subscribe_frame(self, request_id: int) -> bytes:
        earliest = pb.CommandSubscribe.Earliest if self._earliest else pb.CommandSubscribe.Latest
        return commands.subscribe(
            request_id,
            self._id,
            str(self.topic),
            self._name,
            durable=self._durable,
            start=None if self._durable else LATEST,
            initial_position=earliest,
            force_topic_creation=False,
        )

    def acknowledge(self, position: Position) -> None:
        """Advance the durable subscription, without waiting."""
        if self._connection is None or not self._durable or position.entry < 0 or position == self.acknowledged:
            return
        self._connection.write(commands.ack(self._id, [message_id_to_wire(position)], cumulative=True))
        self.acknowledged = position

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.consumers.close(self._id)

    # ---- Called by the connection

    def on_message(self, message: pb.CommandMessage, entry: memoryview) -> None:
        """Nothing was asked for, so nothing comes."""

    def on_disconnected(self, assigned_url: str | None) -> None:
        self._connection = None

    def on_active_change(self, active: bool) -> None: ...

    def on_end_of_topic(self) -> None: ...


class BrokerSourceView:
    """See :class:`interpulse.spark.reading.planner.SourceView`."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cursors: dict[str, _Cursor] = {}
        self._held: frozenset[str] = frozenset()
        self._file_seen: tuple[int, int] | None = None
        self._file_topics: tuple[str, ...] = ()
        self._first_ends_asked = False
        self._asking: dict[str, asyncio.Task[TopicEnd]] = {}
        self._unanswered: dict[str, str] = {}
        self._held_seen: tuple[int, int] | None = None
        self._held_ranges: dict[str, HeldRange] = {}
        self._rates: dict[str, Rate] = {}
        self._written_seen: tuple[int, int] | None = None
        self._written: WrittenBatch | None = None
        self._awaited: Sequence[str] = []

    # ---- Which topics

    def discover(self) -> tuple[str, ...]:
        if self._options.topics_file is not None:
            return self._listed(Path(self._options.topics_file))
        return process_portal().call(self._discover)

    def _listed(self, path: Path) -> tuple[str, ...]:
        """The job's list. Held topics stay selected, but their end is not asked for, so their positions stay."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return ()
        seen = (found.st_mtime_ns, found.st_ino)
        if seen != self._file_seen:
            body = json.loads(path.read_text(encoding="utf-8"))
            self._held = frozenset(body["held"])
            self._file_topics = (*body["topics"], *body["held"])
            self._rates = {topic: Rate(*rate) for topic, rate in body.get("rates", {}).items()}
            self._file_seen = seen
        return self._file_topics

    async def _discover(self) -> tuple[str, ...]:
        session = await self._session()
        bases = await selected_topics(session, self._options)
        slots = asyncio.Semaphore(CONCURRENT_MAX)

        async def names(topic: TopicName) -> list[str]:
            if topic.is_partition and not self._options.awaits_topics:
                return [str(topic)]
            try:
                async with slots:
                    count = await session.lookup.partitions(topic, create=False)
            except TopicNotFound:
                if not self._options.awaits_topics:
                    raise
                return []
            return [str(topic.partition(index)) for index in range(count)] if count else [str(topic)]

        found = await asyncio.gather(*(names(topic) for topic in bases))
        self._tell_awaited([str(topic) for topic, group in zip(bases, found, strict=True) if not group])
        return tuple(sorted({name for group in found for name in group}))

    def _tell_awaited(self, awaited: Sequence[str]) -> None:
        """Once, not at every discovery."""
        if awaited != self._awaited:
            log.warning("topics do not exist yet topics=%s", ", ".join(awaited) or "none any more")
        self._awaited = awaited

    # ---- Where they end

    def ends(self, topics: Iterable[str]) -> Mapping[str, TopicEnd]:
        names = [name for name in topics if name not in self._held]
        return process_portal().call(lambda: self._ends(names))

    async def _ends(self, names: Sequence[str]) -> dict[str, TopicEnd]:
        session = await self._session()
        for gone in [name for name in self._cursors if name not in names]:
            await self._cursors.pop(gone).close()
            if gone in self._asking:
                self._asking.pop(gone).cancel()
        # A subscription made at the start begins where the stream does; one of a topic found later at its first entry.
        options = self._options
        starts_late = options.starting_offsets in (None, LATEST) and options.starting_time is None
        earliest = self._first_ends_asked or not starts_late
        for name in names:
            if name not in self._cursors:
                self._cursors[name] = _Cursor(session, TopicName.parse(name), self._options, earliest=earliest)
        ends, failures = await self._asked(names)
        # Where to begin must be known of every topic, unless its subscription will say so whenever it can be asked.
        needed = not self._first_ends_asked and self._options.starting_offsets != SUBSCRIPTION
        if failures and (needed or len(failures) == len(names)):
            raise next(iter(failures.values()))
        self._first_ends_asked = True
        return ends

    async def _asked(self, names: Sequence[str]) -> tuple[dict[str, TopicEnd], dict[str, PulsarError]]:
        """The ends of topics, and why some are not known now: those keep their positions, and the others go on.

        A topic that gives no answer for a moment is asked in the background, so that the others do not wait for it.
        """
        started = {name: asyncio.create_task(self._cursors[name].end()) for name in names if name not in self._asking}
        self._asking |= started
        if started:
            await asyncio.wait(started.values(), timeout=_PATIENCE_S if self._first_ends_asked else None)
        ends: dict[str, TopicEnd] = {}
        failures: dict[str, PulsarError] = {}
        for name in names:
            try:
                ends[name] = self._answer(name)
            except TopicNotFound:
                log.info("topic no longer exists topic=%s", name)
            except PulsarError as error:
                failures[name] = error
        self._tell(failures)
        return ends, failures

    def _answer(self, name: str) -> TopicEnd:
        if not self._asking[name].done():
            raise OperationTimeout("the source gives no answer")
        return self._asking.pop(name).result()

    def _tell(self, failures: Mapping[str, PulsarError]) -> None:
        """Once, not at every poll."""
        reasons = {name: str(error) for name, error in failures.items()}
        for name in [name for name, reason in reasons.items() if self._unanswered.get(name) != reason]:
            log.warning("topic does not answer, its position stays topic=%s error=%s", name, reasons[name])
        self._unanswered = reasons

    def ledgers(self, topics: Sequence[str]) -> Mapping[str, Sequence[Ledger]]:
        options = self._options
        if options.admin_url is None or options.planner == "binary":
            return {}
        try:
            return process_portal().call(lambda: self._ledgers(str(options.admin_url), topics))
        except PulsarError as error:
            if options.planner == "admin":
                raise
            log.warning("the admin API does not tell how large topics are, planner=binary error=%s", error)
            return {}

    async def _ledgers(self, url: str, topics: Sequence[str]) -> dict[str, list[Ledger]]:
        options = self._options
        async with admin_client(url, options.access, options.admin_access, options.operation_timeout_ms) as admin:
            return await ledger_tables(admin, topics)

    def before(self, times: Mapping[str, int]) -> Mapping[str, Position]:
        return process_portal().call(lambda: self._before(times))

    async def _before(self, times: Mapping[str, int]) -> dict[str, Position]:
        return await positions_before(await self._session(), times, prefix=self._options.subscription_prefix)

    def following(self, topic: str, after: Position, upto: Position) -> Following | None:
        return process_portal().call(lambda: self._following(topic, after, upto))

    async def _following(self, topic: str, after: Position, upto: Position) -> Following | None:
        session = await self._session()
        reader = EntryReader(
            session,
            TopicName.parse(topic),
            after=after,
            upto=upto,
            buffer_bytes=64 * 1024,
            subscription_prefix=self._options.subscription_prefix,
            poll_timeout_ms=self._options.operation_timeout_ms,
        )
        async with reader:
            await reader.open()
            found = await reader.read_batch()
            return Following(found[0].position, len(found[0].raw)) if found else None

    def held(self) -> Mapping[str, HeldBack]:
        """What the job's sink put on hold: its file lies beside the list of topics."""
        if self._options.topics_file is None:
            return {}
        path = Path(self._options.topics_file).with_name(HELD_FILE)
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return {}
        seen = (found.st_mtime_ns, found.st_ino)
        if seen != self._held_seen:
            self._held_ranges, self._held_seen = load_held(path), seen
        now = now_ms()
        return {
            topic: HeldBack(item.after, item.attempts, item.retry_at_ms <= now)
            for topic, item in self._held_ranges.items()
        }

    # ---- How fast they may be copied

    def rates(self) -> Mapping[str, Rate]:
        return self._rates

    def written(self) -> WrittenBatch | None:
        """The job's sink writes it beside the list of topics; it is not read where nothing has a rate."""
        if not self._rates or self._options.topics_file is None:
            return None
        path = Path(self._options.topics_file).with_name(LAST_COMMIT_FILE)
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
        seen = (found.st_mtime_ns, found.st_ino)
        if seen != self._written_seen:
            body = json.loads(path.read_text(encoding="utf-8"))
            topics = {name: (entries, size) for name, (entries, _, size) in body.get("topics", {}).items()}
            self._written, self._written_seen = WrittenBatch(int(body["batchId"]), topics), seen
        return self._written

    # ---- The durable subscription

    def acknowledge(self, positions: Mapping[str, Position]) -> None:
        process_portal().call(lambda: self._acknowledge(positions))

    async def _acknowledge(self, positions: Mapping[str, Position]) -> None:
        for name, position in positions.items():
            cursor = self._cursors.get(name)
            if cursor is not None:
                cursor.acknowledge(position)

    def close(self) -> None:
        process_portal().call(self._close)

    async def _close(self) -> None:
        cursors, self._cursors = self._cursors, {}
        asking, self._asking = self._asking, {}
        for task in asking.values():
            task.cancel()
        await asyncio.gather(*(cursor.close() for cursor in cursors.values()))

    async def _session(self) -> Session:
        return await session_for(self._options.service_url, self._options.operation_timeout_ms, self._options.access)
