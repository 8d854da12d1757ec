"""Topics of one route: provisioned on the target, anchored, and listed for the source, or held.

The order matters: a topic-partition is listed for the source only after its target exists with the same shape, the
target de-duplicates, and the lane's starting state is recorded. A topic that is not ready is *held*: its position on
the source stays, and all others continue.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.lookup.lookup import store_schema
from interpulse.client.producing.entry_sender import EntrySender
from interpulse.client.session import Session
from interpulse.clock import now_ms
from interpulse.in_turns import concurrently
from interpulse.model.errors import AlreadyExists, PulsarError
from interpulse.model.ids import EARLIEST, LATEST, MessageId
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo
from interpulse.replication.connect import misnamed
from interpulse.replication.provision import (
    PartitionsDiffer,
    TopicHeld,
    TopicProvisioner,
    copy_schemas,
    create_namespace,
    describe_problem,
    partition_metadata,
)
from interpulse.spark.job.pipeline_config import ON_MISMATCH_EXPAND, ON_MISMATCH_FAIL
from interpulse.spark.job.routes.route import Emit, Route
from interpulse.spark.job.routes.route_policies import DispatchRates, GlobalPolicies
from interpulse.spark.job.selection import partitions_of
from interpulse.spark.job.start import Begin, first_message
from interpulse.spark.lanes import LaneState
from interpulse.spark.reading.throttle import Rate
from interpulse.spark.state_disk import write_atomically
from interpulse.spark.writing.broker_target import lane_start
from interpulse.spark.writing.target_topics import check_deduplicating, ensure_deduplication
from interpulse.wire.cursor_promise import REPLICATION_CURSORS

_HELD_FIRST_S: Final = 0.1
_HELD_MAX_S: Final = 60.0
_VERIFY_EVERY_S: Final = 10.0
_TAKEOVER_MS: Final = 5_000


class JobEnds(Exception):
    """Request of the file to end the job instead of holding a topic. The message gives the reason."""


@dataclass(frozen=True)
class TopicState:
    """State of one topic of the pipeline."""

    state: str = "PROVISIONING"
    since_ms: int = 0
    reason: str | None = None
    remedy: str | None = None
    partitions: int = 0
    counted: int = 0
    """Partitions of the source when the topic was last checked. A different count triggers another check."""
    provisioned: str | None = None
    retry_at: float = 0.0
    pause: float = _HELD_FIRST_S

    @property
    def is_ready(self) -> bool:
        return self.state == "REPLICATING"


class RouteTopics:
    """Topics of a route. ``states`` has the state of each selected topic."""

    def __init__(self, route: Route, source: AdminClient, emit: Emit) -> None:
        self.states: dict[TopicName, TopicState] = {}
        self._route = route
        self._source = source
        self._emit = emit
        self._listed = ""
        self._names_anchored: set[str] | None = None
        self._is_under_way = False
        self._changes: int | None = None
        self._is_named = False
        self._presence = TargetPresence(route.lane_name)
        other_direction_waits = route.config.source.cluster < route.remote
        self._policies = GlobalPolicies(source, route.policies_file, patience_s=30 if other_direction_waits else 90)
        self._rates = DispatchRates(source)
        self._target_admin: AdminClient | None = None
        self._target_session: Session | None = None

    @property
    def admin(self) -> AdminClient:
        """Admin client of the target."""
        if self._target_admin is None:
            self._target_admin = self._route.target.admin()
        return self._target_admin

    @property
    def session(self) -> Session:
        """Binary client of the target for the control side. Spark's workers have their own for data."""
        if self._target_session is None:
            self._target_session = self._route.target.session()
        return self._target_session

    @property
    def is_away(self) -> bool:
        """True if the target answered for no topic at the last attempt."""
        return bool(self.states) and all(state.state == "DISCONNECTED" for state in self.states.values())

    async def update(self, topics: Mapping[TopicName, int], changes: int | None, *, is_under_way: bool) -> None:
        """Provision new topics, hold those that do not fit, forget deselected ones, then update the source's list.

        ``topics`` have their partition counts. ``changes`` is the number of the changes on the source; rates and
        policies are read again after one. ``is_under_way`` means that entries were read before, so that the
        beginning of a topic that joins now was not skipped.
        """
        self._is_under_way = is_under_way
        gone = {topic: self.states.pop(topic) for topic in [*self.states] if topic not in topics}
        self._policies.forget(gone)
        await self._leave(gone)
        now = time.monotonic()
        due = [topic for topic, count in topics.items() if self._is_due(topic, count, now)]
        problem = await self._name_problem() if due else None
        unmapped = self._unmapped(topics)
        await concurrently(lambda topic: self._prepare(topic, topics[topic], problem or unmapped.get(topic)), due)
        must_read = changes is None or changes != self._changes or bool(due)
        self._changes = changes
        if self._route.config.select.from_policies and (must_read or self._rates.has_failed):
            await self._rates.refresh(topics)
        self._list_topics()
        if self._route.config.select.from_policies and (must_read or self._policies.must_repeat):
            await self._carry_policies()

    def _is_due(self, topic: TopicName, count: int, now: float) -> bool:
        state = self.states.get(topic)
        return state is None or state.retry_at <= now or state.counted != count

    async def _leave(self, gone: Mapping[TopicName, TopicState]) -> None:
        """Leave topics.

        Another topic may be written to the same target, and one without a target name was never written.
        """
        nameless = self._route.config.map.problems(gone)
        left = [name for topic, state in gone.items() if topic not in nameless for name in _names(topic, state)]
        if left:
            wanted = set(self._target_names(self.ready_partitions()))
            await self._presence.leave([name for name in self._target_names(left) if name not in wanted])

    def _unmapped(self, topics: Iterable[TopicName]) -> dict[TopicName, TopicHeld]:
        remedy = "change the rules of [map], or set merge = true there to write several topics to one, and start again"
        problems = self._route.config.map.problems(topics)
        return {topic: TopicHeld(str(topic), problem, remedy) for topic, problem in problems.items()}

    async def _name_problem(self) -> PulsarError | None:
        """Return why nothing is written to the cluster at all: it has another name, or cannot be reached."""
        if self._is_named:
            return None
        remote, target = self._route.remote, self._route.target
        try:
            problem = await misnamed(self.admin, remote, target.admin_url)
        except PulsarError as error:
            return error
        if problem is not None:
            remedy = f"register it under its own name (clusters create ...), and replicate to that instead of {remote}"
            return TopicHeld(remote, problem, remedy)
        self._is_named = True
        return None

    async def _prepare(self, topic: TopicName, count: int, problem: PulsarError | None) -> None:
        """Do everything that a topic needs before its first entry is planned. ``problem`` holds every topic."""
        # Also a topic that was never ready is listed by its partitions: the stream may have been reading them before.
        state = self.states.get(topic, TopicState(since_ms=now_ms(), partitions=count))
        before = replace(state, counted=count)
        try:
            if problem is not None:
                raise problem
            count, provisioned = await self._provision(topic, before)
            names = partitions_of(topic, count)
            if not before.is_ready or before.partitions != count:
                await self._open_cursors(names)
            await self._anchor(names)
            await self._presence.keep(self.session, self._target_names(names))
        except (PulsarError, ValueError) as error:
            self._hold(topic, before, error)
            if isinstance(error, PartitionsDiffer) and self._route.config.provision.on_mismatch == ON_MISMATCH_FAIL:
                raise JobEnds(f"[provision] on_mismatch = fail: {error}") from error
            return
        self.states[topic] = TopicState(
            state="REPLICATING",
            since_ms=before.since_ms if before.is_ready else now_ms(),
            partitions=count,
            counted=count,
            provisioned=provisioned or before.provisioned,
            retry_at=time.monotonic() + _VERIFY_EVERY_S,
        )
        if provisioned is not None:
            self._policies.forget([topic])
            self._emit("provisioned", topic=str(topic), what=provisioned)

    async def _provision(self, topic: TopicName, before: TopicState) -> tuple[int, str | None]:
        rules, there, created = self._route.config.provision, self._route.target_name(topic), None
        if rules.namespaces and not before.is_ready:
            namespace = there.namespace_name
            if await create_namespace(self._source, topic.namespace_name, self.admin, namespace):
                created = f"namespace {namespace} created: it was absent there"
        await ensure_deduplication(self.admin, there, may_enable=rules.ensure_deduplication)
        provisioner = TopicProvisioner(
            partial(partition_metadata, self._source),
            self.admin,
            creation_allowed=rules.create,
            expansion_allowed=rules.on_mismatch == ON_MISMATCH_EXPAND,
        )
        equal_before = self._equal_before(topic, before)
        count, change = await provisioner.ensure_topic(topic, equal_before=equal_before, there=there)
        if self._route.config.copy_schemas:
            first = TopicName.parse(partitions_of(there, count)[0])
            await copy_schemas(self._source, topic, lambda _, schema: self._register_schema(first, schema), there=there)
        if not before.is_ready:
            await check_deduplicating(self.admin, partitions_of(there, count))
        return count, "; ".join(filter(None, (created, change))) or None

    async def _carry_policies(self) -> None:
        """Carry policies. Messages continue if one is refused; the refusal stays in the topic's status."""
        held = {topic for topic, state in self.states.items() if not state.is_ready}
        namespaces = {topic.namespace_name for topic in self.states.keys() - held}
        if not namespaces:
            return
        refused = await self._policies.carry(namespaces, self.admin, held=held)
        for topic in self.states.keys() - held:
            refusal = refused.get(topic)
            problem = describe_problem(self._route.remote, refusal) if refusal is not None else None
            reason = problem and f"its policies for all clusters are not carried: {problem.reason}"
            self.states[topic] = replace(self.states[topic], reason=reason, remedy=problem and problem.remedy)

    async def _open_cursors(self, names: Sequence[str]) -> None:
        """Open cursors before Spark has started. Otherwise the source may delete the topic or new messages.

        A cursor whose lane has no anchor yet is set to ``start``, if that is a time or a position.
        """
        start = self._route.config.start
        for name in names:
            if start.needs_cursor(name) and name not in self._anchored_names():
                await self._put_cursor(name, start.of(name))
            else:
                is_late = start.of(name) == LATEST and not self._is_under_way
                await self._open_cursor(name, None if is_late else MessageId(*EARLIEST))

    async def _open_cursor(self, name: str, first: MessageId | None) -> bool:
        """Open a cursor. Return True if it did not exist before.

        On our brokers no consumer opens a replication cursor; the policies that list the cluster have done so.
        """
        if self._route.config.select.from_policies and self._route.cursor.startswith(REPLICATION_CURSORS):
            return False
        try:
            await self._source.topics.create_subscription(name, self._route.cursor, first)
        except AlreadyExists:
            return False
        return True

    async def _put_cursor(self, name: str, begin: Begin) -> None:
        first = await first_message(self._source, name, begin)
        if not await self._open_cursor(name, first):
            await self._source.topics.reset_cursor_to_message(name, self._route.cursor, first or MessageId(*LATEST))
        at = "latest" if first is None else "earliest" if first.position == EARLIEST else str(first.position)
        self._emit("begins", topic=name, at=at)

    async def _register_schema(self, topic: TopicName, schema: SchemaInfo) -> None:
        """Register a schema as the lane's producer, since the target decides what replicators may register.

        ``topic`` is one with entries: Pulsar finds no schema under the base name of a partitioned topic here.
        """
        connection = await self.session.connect(topic)
        await store_schema(connection, topic, schema, producer_name=self._route.lane_name)

    def _equal_before(self, topic: TopicName, before: TopicState) -> int | None:
        """Return the partition count from which a growing source expands the target, or None if it never does.

        With policies, the source cluster expands the others itself. If it did not, an operator asked it not to
        (``updateLocalTopicOnly``): the topic is held, as by Pulsar's replicators, until both are equal.
        """
        if self._route.config.select.from_policies:
            return None
        return before.partitions if before.is_ready else self._anchored(topic)

    def _anchored(self, topic: TopicName) -> int | None:
        """Return the partition count of both sides when the topic was last ready, also in an earlier run."""
        count = 0
        while str(topic.partition(count)) in self._anchored_names():
            count += 1
        return count or None

    def _hold(self, topic: TopicName, before: TopicState, error: Exception) -> None:
        problem = describe_problem(self._route.remote, error)
        since = before.since_ms if before.state == problem.state else now_ms()
        retry_at = time.monotonic() + before.pause * random.uniform(0.9, 1.0)
        self.states[topic] = replace(
            before, **problem._asdict(), since_ms=since, retry_at=retry_at, pause=min(before.pause * 2, _HELD_MAX_S)
        )
        if before.reason != problem.reason:
            self._emit(problem.state.lower(), topic=str(topic), reason=str(error), remedy=problem.remedy)

    async def _anchor(self, names: list[str]) -> None:
        """Record the positions of lanes before their first range, so that a retry of it can be read back."""
        states: dict[str, LaneState] = {}
        for name in names:
            if name not in self._anchored_names():
                (there,), lane = self._target_names([name]), self._route.lane_of(name)
                states[name] = await lane_start(self.session, there, lane, takeover_timeout_ms=_TAKEOVER_MS)
        if states:
            files = self._route.files
            files.write_anchors({**files.anchors(), **states})  # read again: others were recorded meanwhile
            self._anchored_names().update(states)

    def _anchored_names(self) -> set[str]:
        """Return the anchored names from memory. Only this job writes the file, which is long."""
        if self._names_anchored is None:
            self._names_anchored = set(self._route.files.anchors())
        return self._names_anchored

    def _target_names(self, names: Iterable[str]) -> list[str]:
        return [str(self._route.target_name(TopicName.parse(name))) for name in names]

    def _list_topics(self) -> None:
        active, held, rates = list[str](), list[str](), dict[str, Rate]()
        for topic, state in self.states.items():
            names, rate = _names(topic, state), self._rates.of(topic)
            (active if state.is_ready else held).extend(names)
            rates |= dict.fromkeys(names, rate) if rate is not None else {}
        text = json.dumps({"topics": sorted(active), "held": sorted(held), "rates": rates}, sort_keys=True)
        if text != self._listed:
            write_atomically(self._route.topics_file, text)
            self._listed = text

    def rate_of(self, topic: TopicName) -> Rate | None:
        """Return the rate of each partition of a topic, or None without a limit."""
        return self._rates.of(topic)

    def partitions(self) -> list[str]:
        """Return all selected topic-partitions."""
        return [name for topic, state in self.states.items() for name in _names(topic, state)]

    def ready_partitions(self) -> list[str]:
        """Return the topic-partitions that are copied."""
        return [name for topic, state in self.states.items() if state.is_ready for name in _names(topic, state)]

    async def close(self) -> None:
        """Close the connections to the target."""
        if self._target_admin is not None:
            await self._target_admin.close()
        if self._target_session is not None:
            await self._presence.close()
            await self._target_session.close()
        self._target_admin = self._target_session = None


def _names(topic: TopicName, state: TopicState) -> list[str]:
    return partitions_of(topic, state.partitions)


log = logging.getLogger(__name__)

_OPEN_MS: Final = 5_000


class TargetPresence:
    """Idle producers on the target; see the module. They reconnect by themselves. Call `close` at the end."""

    def __init__(self, lane_name: str) -> None:
        self._name = f"{lane_name}.{secrets.token_hex(4)}"  # does not wait until the one of an earlier run is gone
        self._senders: dict[str, EntrySender] = {}

    async def keep(self, session: Session, names: Collection[str]) -> None:
        """Stay connected to these topic-partitions. A refused one is retried with the next call.

        The lane of a topic-partition finds out whether it can be written.
        """
        closed = (name for name in names if name not in self._senders or self._senders[name].failure is not None)
        await concurrently(partial(self._open, session), closed)

    async def _open(self, session: Session, name: str) -> None:
        topic = TopicName.parse(name)
        sender = EntrySender(
            session, topic, self._name, schema_of_topic=True, takeover_timeout_ms=_OPEN_MS, encrypted=True
        )
        try:
            await sender.open()
        except PulsarError as refusal:
            log.info("target topic is not kept connected topic=%s reason=%s", name, refusal)
            return
        self._senders[name] = sender

    async def leave(self, names: Collection[str]) -> None:
        """Disconnect from these topic-partitions. A failure is logged and does not affect the others."""
        going = [self._senders.pop(name) for name in names if name in self._senders]
        ends = await asyncio.gather(*(sender.close() for sender in going), return_exceptions=True)
        for sender, end in zip(going, ends, strict=True):
            if end is not None:
                log.warning("target topic not left properly topic=%s", sender.topic, exc_info=end)

    async def close(self) -> None:
        await self.leave(list(self._senders))
