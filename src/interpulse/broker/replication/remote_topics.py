"""The creation of replicated topics on the clusters they are replicated to (PIP-370, PIP-433).

One task for every pair of a topic and a remote cluster compares both sides and creates what is missing on the remote
side. It checks again after a long interval, or after a growing pause if something prevents replication. Existing topics
are never changed, on either side. The pairs follow the policies; operators see the reason that holds a pair back.

Remote clusters are spared: each gets few requests at a time, and many new pairs start one after another.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from interpulse.broker import metadata_paths as keys
from interpulse.broker.tenancy.cluster_links import ClusterLinks
from interpulse.broker.tenancy.namespaces import Namespaces
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.partition_records import stored_partitions
from interpulse.broker.topics.topic_policies import TopicPolicyRecords
from interpulse.client.transport.backoff import Backoff
from interpulse.clock import Clock
from interpulse.in_turns import Turn, in_turns, sorted_in_turns
from interpulse.model.errors import MetadataError, PulsarError
from interpulse.model.names import PERSISTENT, NamespaceName, TopicName
from interpulse.model.topics import TopicKind
from interpulse.replication.provision import Provisioned, ReplicationProblem, TopicProvisioner, describe_problem
from interpulse.rules.replication import effective_replication_clusters, remote_clusters
from interpulse.serving.address_events import Timer, later
from interpulse.storage.api import MetadataStore

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

log = logging.getLogger(__name__)

_GATHER_SECONDS: Final = 1.0
"""The delay before a line: when a cluster fails, its topics notice one after another."""
_PAUSE_SECONDS: Final = 60.0

_STORE_RETRY_SECONDS: Final = 1.0


class ThrottledLog:
    """A log of replication failures: one line per cluster and kind, for any number of topics.

    The status of a topic has its own failure; the log gives the number of topics, the first of them, and the remedy.
    `close` drops the lines that still wait.
    """

    def __init__(self, *, later: Callable[[float, Callable[[], None]], Timer] = later) -> None:
        self._later = later
        self._unreported: dict[tuple[str, str], dict[TopicName, ReplicationProblem]] = {}
        self._timers: dict[tuple[str, str], Timer] = {}

    def note(self, cluster: str, topic: TopicName, problem: ReplicationProblem) -> None:
        """Report a new failure of a topic; the line follows a little later, and includes failures until then."""
        kind = (cluster, problem.state)
        self._unreported.setdefault(kind, {})[topic] = problem
        if kind not in self._timers:
            self._timers[kind] = self._later(_GATHER_SECONDS, lambda: self._log_failures(kind))

    def _log_failures(self, kind: tuple[str, str]) -> None:
        unreported = self._unreported.pop(kind, None)
        if not unreported:
            del self._timers[kind]
            return
        first, problem = next(iter(unreported.items()))
        log.warning(
            "topics cannot be replicated cluster=%s state=%s topics=%d first=%s reason=%s remedy=%s",
            *kind,
            len(unreported),
            first,
            problem.reason,
            problem.remedy,
        )
        self._timers[kind] = self._later(_PAUSE_SECONDS, lambda: self._log_failures(kind))

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


class RemoteState(NamedTuple):
    """The state of one pair. Without a reason, the topic exists there or was not checked yet."""

    since_ms: int
    ready: bool = False
    state: str = "PROVISIONING"
    reason: str | None = None
    remedy: str | None = None
    retry_at_ms: int | None = None
    change: str | None = None
    """The objects that were created on the remote cluster."""


@dataclass(eq=False, slots=True)
class _Pair:
    """A base name and a cluster it is replicated to, its state, and the task that keeps it."""

    topic: TopicName
    cluster: str
    state: RemoteState
    woken: asyncio.Event
    task: asyncio.Task[None] | None = None


class RemoteTopics:
    """The tasks of all pairs. `start` once other clusters may be asked, `stop` before the storage is closed."""

    def __init__(
        self,
        store: MetadataStore,
        namespaces: Namespaces,
        lifecycle: TopicLifecycle,
        policies: TopicPolicyRecords,
        links: ClusterLinks,
        clock: Clock,
        *,
        creation_allowed: Callable[[], bool],
        recheck_seconds: float = 600.0,
    ) -> None:
        """Create the tasks' owner; ``creation_allowed`` is ``createTopicToRemoteClusterForReplication``."""
        self._store = store
        self._namespaces = namespaces
        self._lifecycle = lifecycle
        self._policies = policies
        self._links = links
        self._clock = clock
        self._creation_allowed = creation_allowed
        self._recheck_seconds = recheck_seconds
        self._pairs: dict[TopicName, dict[str, _Pair]] = {}
        self._away: dict[str, _Pair] = {}
        """The pair that last failed to reach each cluster. The other pairs of the cluster wait while it waits."""
        self._replicated: set[NamespaceName] = set()
        self._changed_namespaces: set[NamespaceName] = set()
        self._changed_topics: set[TopicName] = set()
        self._unsure = False
        """True if any record may have changed: at the start, and after the store lost its server."""
        self._changed = asyncio.Event()
        self._cancel_watches: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._problems = ThrottledLog()
        self.results: Counter[tuple[str, str]] = Counter()
        """Outcomes by cluster and result: ``created``, ``unchanged``, or the obstacle in lower case."""

    # --- life

    async def start(self) -> None:
        """Start following the policies. Returns before any other cluster is asked."""
        watched = (
            (keys.POLICIES, self._on_policies),
            (keys.TOPIC_POLICIES, self._on_topic_policies),
            (keys.PARTITIONED_TOPICS, self._on_partitions),
            (keys.TOPIC_RECORDS, self._on_record),
            (keys.CLUSTERS, self._on_cluster),
        )
        self._cancel_watches = [self._store.watch(f"{prefix}/", callback) for prefix, callback in watched]
        self._unsure = True
        self._changed.set()
        self._task = asyncio.create_task(self._follow(), name="remote topics")

    async def stop(self) -> None:
        """Stop all tasks. A request under way may still take effect on the other cluster."""
        for cancel in self._cancel_watches:
            cancel()
        tasks = [pair.task for pairs in self._pairs.values() for pair in pairs.values()]
        running = [task for task in (self._task, *tasks) if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._problems.close()

    def topics(self) -> list[TopicName]:
        """Return the base names of the replicated topics."""
        return list(self._pairs)

    def clusters_of(self, topic: TopicName) -> tuple[str, ...]:
        """Return the clusters that a base name is replicated to."""
        return tuple(self._pairs.get(topic, ()))

    def state(self, topic: TopicName, cluster: str) -> RemoteState | None:
        """Return the state of the topic on a cluster, None if it is not replicated there."""
        pair = self._pairs.get(topic.base, {}).get(cluster)
        if pair is None:
            return None
        is_looked_at = pair.state.ready or pair.state.reason is not None
        if is_looked_at or cluster not in self._away:
            return pair.state
        return self._away[cluster].state._replace(change=None)

    # --- changes

    def _on_policies(self, key: str) -> None:
        namespace = keys.namespace_of_policies_key(key)
        if namespace is not None:
            self._changed_namespaces.add(namespace)
            self._changed.set()
        elif key == f"{keys.POLICIES}/":
            self._unsure = True
            self._changed.set()

    def _on_topic_policies(self, key: str) -> None:
        topic = keys.topic_of_topic_policies(key)
        if topic is not None:
            self._topic_changed(topic)

    def _on_partitions(self, key: str) -> None:
        topic = keys.topic_of_partitioned_topic(key)
        if topic is None:
            return
        for pair in self._pairs.get(topic, {}).values():
            pair.woken.set()
        self._topic_changed(topic)

    def _on_record(self, key: str) -> None:
        """Note a changed record. Called for every stored cursor, so most keys are dismissed before parsing."""
        if not self._replicated:
            return
        parts = key.split("/", 6)
        if len(parts) != 6 or NamespaceName(parts[2], parts[3]) not in self._replicated:
            return
        topic = keys.topic_of_record(key)
        if topic is not None:
            self._topic_changed(topic)

    def _on_cluster(self, key: str) -> None:
        """Try pairs of a changed cluster again immediately. The prefix alone means all clusters."""
        changed = key.removeprefix(f"{keys.CLUSTERS}/")
        for cluster in [changed] if changed else list(self._away):
            self._away.pop(cluster, None)
        for pairs in self._pairs.values():
            for pair in pairs.values():
                if changed in ("", pair.cluster):
                    pair.woken.set()

    async def _all_namespaces(self) -> set[NamespaceName]:
        """Return the existing namespaces, and the namespaces that had pairs."""
        self._unsure = False
        namespaces = {topic.namespace_name async for some in in_turns(list(self._pairs)) for topic in some}
        try:
            for tenant in await self._store.children(keys.POLICIES):
                names = await self._store.children(keys.tenant(tenant))
                namespaces |= {NamespaceName(tenant, name) for name in names}
        except MetadataError:
            self._unsure = True
            raise
        return namespaces

    def _topic_changed(self, name: TopicName) -> None:
        if name.is_persistent:
            self._changed_topics.add(name.base)
            self._changed.set()

    # --- following

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            namespaces, self._changed_namespaces = self._changed_namespaces, set()
            topics, self._changed_topics = self._changed_topics, set()
            try:
                if self._unsure:
                    namespaces |= await self._all_namespaces()
                for namespace in sorted(namespaces, key=str):
                    topics |= await self._topics_of(namespace)
                turn = Turn()
                for topic in await sorted_in_turns(topics, key=str):
                    await self._follow_topic(topic)
                    await turn.give_way()
            except Exception as error:  # store errors, and bugs, must not end the loop
                bug = None if isinstance(error, PulsarError) else error
                log.error("replicated topics not read, will retry error=%s", error, exc_info=bug)
                self._changed_namespaces |= namespaces
                self._changed_topics |= topics
                self._changed.set()
                await asyncio.sleep(_STORE_RETRY_SECONDS)

    async def _topics_of(self, namespace: NamespaceName) -> set[TopicName]:
        """Return the topics that may be replicated now or were before."""
        pairs = in_turns(list(self._pairs))
        topics = {topic async for some in pairs for topic in some if topic.namespace_name == namespace}
        topics |= (await self._policies.replication_clusters(namespace)).keys()
        if not self._namespaces.remotes(await self._namespaces.find_policies(namespace)):
            self._replicated.discard(namespace)
            return topics
        self._replicated.add(namespace)
        stored = await self._lifecycle.list_topics(namespace, PERSISTENT, include_system=True)
        partitioned = await self._lifecycle.list_partitioned(namespace, PERSISTENT, include_system=True)
        async for some in in_turns(chain(partitioned, (name.base for name in stored))):
            topics.update(some)
        return topics

    async def _follow_topic(self, topic: TopicName) -> None:
        """Start the pairs that policies want, and end the others."""
        wanted, pairs = await self._remotes_of(topic), self._pairs.setdefault(topic, {})
        for cluster in [cluster for cluster in pairs if cluster not in wanted]:
            self._end(pairs.pop(cluster))
        for cluster in wanted:
            if cluster not in pairs:
                pair = _Pair(topic, cluster, RemoteState(self._clock.now_ms()), asyncio.Event())
                pair.task = asyncio.create_task(self._keep(pair), name=f"provisioning {topic} on {cluster}")
                pairs[cluster] = pair
        if not pairs:
            del self._pairs[topic]

    def _end(self, pair: _Pair) -> None:
        assert pair.task is not None, "a pair has a task once it is stored"
        pair.task.cancel()
        if self._away.get(pair.cluster) is pair:
            del self._away[pair.cluster]

    async def _remotes_of(self, topic: TopicName) -> tuple[str, ...]:
        """Return the clusters of a topic.

        System topics, such as ``__change_events``, are compared and created as well.

        Partitions that remain of a deleted topic are counted under its name.
        """
        if topic.is_transaction_internal:
            return ()
        is_absent = (await self._lifecycle.existence(topic)).kind is TopicKind.ABSENT
        if is_absent and not await stored_partitions(self._store, topic):
            return ()
        policies = await self._namespaces.find_policies(topic.namespace_name)
        if policies is None or policies.deleted:
            return ()
        clusters = effective_replication_clusters(await self._policies.find(topic), policies)
        return remote_clusters(self._namespaces.local_cluster, clusters)

    # --- one pair

    async def _keep(self, pair: _Pair) -> None:
        """Check the pair again and again, early after changes of its cluster or policies."""
        backoff = Backoff()
        await asyncio.sleep(self._links.delay(pair.cluster))
        while True:
            pair.woken.clear()
            try:
                self._note_ready(pair, await self._links.use(pair.cluster, lambda admin: self._ensure(pair, admin)))
                backoff.reset()
                pause = self._recheck_seconds * random.uniform(0.5, 1.0)
            except Exception as error:  # noqa: BLE001  # an unexpected one too is shown, and tried again
                pause = backoff.next_pause()
                self._note_problem(pair, error, pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await pair.woken.wait()

    async def _ensure(self, pair: _Pair, admin: AdminClient) -> Provisioned:
        provisioner = TopicProvisioner(self._lifecycle.existence, admin, creation_allowed=self._creation_allowed())
        return await provisioner.ensure_topic(pair.topic)

    def _note_ready(self, pair: _Pair, found: Provisioned) -> None:
        self.results[pair.cluster, "created" if found.change else "unchanged"] += 1
        before = pair.state
        since_ms = before.since_ms if before.ready else self._clock.now_ms()
        pair.state = RemoteState(since_ms, ready=True, change=found.change or before.change)
        self._away.pop(pair.cluster, None)
        if found.change:
            log.info("remote topic provisioned cluster=%s topic=%s what=%s", pair.cluster, pair.topic, found.change)

    def _note_problem(self, pair: _Pair, error: Exception, pause: float) -> None:
        before, problem, now_ms = pair.state, describe_problem(pair.cluster, error), self._clock.now_ms()
        self.results[pair.cluster, problem.state.lower()] += 1
        if before.reason != problem.reason:
            self._problems.note(pair.cluster, pair.topic, problem)
            if not isinstance(error, PulsarError):  # a bug
                log.error("topic not provisioned cluster=%s topic=%s", pair.cluster, pair.topic, exc_info=error)
        pair.state = RemoteState(
            before.since_ms if before.state == problem.state else now_ms,
            state=problem.state,
            reason=problem.reason,
            remedy=problem.remedy,
            retry_at_ms=now_ms + int(pause * 1000),
            change=before.change,
        )
        if problem.state == "DISCONNECTED":
            self._away[pair.cluster] = pair
        else:
            self._away.pop(pair.cluster, None)
