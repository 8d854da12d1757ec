"""Detection and repair of topics whose records disagree, through the admin API only.

Works with Interpulse and with Apache Pulsar: it reads an inventory of the namespace with the exact count of every
partitioned topic, and makes the changes of `interpulse.rules.topic_diagnosis`. Other tasks run on the event loop
meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.in_turns import concurrently, in_turns, sorted_in_turns
from interpulse.model.changes import TopicAdminChange
from interpulse.model.errors import PulsarError, TopicNotFound, UnknownError
from interpulse.model.inventory import TopicRow
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.replication.change_forms import request_of
from interpulse.replication.inventory import AdminReading, read_topics
from interpulse.rules.inventory import with_count
from interpulse.rules.topic_diagnosis import Disagreement, Finding, diagnose

Progress = Callable[[int, int], None]
"""Callback for the number of partitioned topics read, or of findings repaired, and their total."""

_QUESTIONS_AT_ONCE: Final = 32
_REPAIRS_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Examination:
    """Disagreements in one namespace, of ``topics_count`` listed names.

    ``unreadable`` are listed names that are not topic names. ``unanswered`` are partitioned topics whose metadata the
    cluster cannot read: they are not diagnosed.
    """

    namespace: NamespaceName
    topics_count: int
    findings: tuple[Finding, ...] = ()
    unreadable: tuple[str, ...] = ()
    unanswered: Mapping[TopicName, PulsarError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Attempted change, with its error if it failed."""

    call: TopicAdminChange
    error: PulsarError | None = None


@dataclass(frozen=True, slots=True)
class Treatment:
    """Changes in order, and the remaining findings."""

    attempts: tuple[Attempt, ...]
    left: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of one topic; None if they cannot be read.

    ``backlogs`` are messages not consumed, by subscription. A refused topic cannot be loaded: its contents are those
    stored when its ledgers were closed, and ``exact`` is False.
    """

    topic: TopicName
    entries: int | None = None
    bytes: int | None = None
    backlogs: Mapping[str, int | None] = field(default_factory=dict)
    exact: bool = False


class TopicDoctor:
    """Doctor of one cluster's topics of these domains. It does not report the ignored disagreements."""

    def __init__(
        self, admin: AdminClient, *, domains: Collection[Domain], ignored: Collection[Disagreement] = ()
    ) -> None:
        self._admin = admin
        self._domains = tuple(domains)
        self._ignored = ignored
        self._questions = asyncio.Semaphore(_QUESTIONS_AT_ONCE)

    async def examine(
        self,
        namespace: NamespaceName,
        *,
        only: Collection[TopicName] | None = None,
        progress: Progress = lambda done, total: None,
    ) -> Examination:
        """Find the disagreements in a namespace, or of ``only`` these base names. Raise NamespaceNotFound.

        The lists are not read at one moment, so a topic that is being created or deleted can look broken: findings are
        checked a second time.
        """
        first = await self._read(namespace, only, progress)
        if not first.findings:
            return first
        seen = {(finding.topic, finding.kind) for finding in first.findings}
        second = await self._read(namespace, {topic for topic, _ in seen})
        confirmed = tuple(finding for finding in second.findings if (finding.topic, finding.kind) in seen)
        return replace(first, findings=confirmed)

    async def treat(
        self,
        examination: Examination,
        deletions: Iterable[TopicAdminChange] = (),
        *,
        progress: Progress = lambda done, total: None,
    ) -> Treatment:
        """Make the chosen deletions, then every repair without data loss, and examine the topics again."""
        suspects = {finding.topic for finding in examination.findings}
        attempts = [await self._attempt(call) for call in deletions]
        present = await self._read(examination.namespace, suspects) if attempts else examination
        attempts += await self._repair_all(present.findings, progress)
        left = await self._read(examination.namespace, suspects)
        return Treatment(tuple(attempts), left.findings)

    async def contents(self, topics: Mapping[TopicName, bool]) -> dict[TopicName, Contents]:
        """Return the contents of these topics. The values are True for topics that brokers refuse to open.

        Non-persistent topics store nothing. Opening a refused one would only raise alarms.
        """
        stored = [name for name in topics if name.is_persistent]
        contents = await concurrently(
            lambda name: self._contents(name, refused=topics[name]), stored, limit=_QUESTIONS_AT_ONCE
        )
        return dict(zip(stored, contents, strict=True))

    async def _repair_all(self, findings: Sequence[Finding], progress: Progress) -> list[Attempt]:
        """Repair the findings of one topic one after the other, and several topics concurrently."""
        done = 0

        async def repair(of_topic: list[Finding]) -> list[Attempt]:
            nonlocal done
            attempts = [attempt for finding in of_topic for attempt in await self._repair(finding)]
            done += len(of_topic)
            progress(done, len(findings))
            return attempts

        by_topic = [list(group) for _, group in groupby(findings, key=lambda finding: finding.topic)]
        groups = await concurrently(repair, by_topic, limit=_REPAIRS_AT_ONCE)
        return [attempt for attempts in groups for attempt in attempts]

    async def _repair(self, finding: Finding) -> list[Attempt]:
        """Try the repairs of one finding in order, up to the first that fails."""
        attempts: list[Attempt] = []
        for call in finding.repairs:
            attempts.append(await self._attempt(call))
            if attempts[-1].error:
                break
        return attempts

    async def _attempt(self, call: TopicAdminChange) -> Attempt:
        try:
            await self._admin.send(request_of(call, local_only=False))
        except PulsarError as error:
            return Attempt(call, error)
        return Attempt(call)

    async def _contents(self, name: TopicName, *, refused: bool) -> Contents:
        topics = self._admin.topics
        async with self._questions:
            try:
                if refused:
                    return _recorded_contents(name, await topics.internal_info(name))
                ledgers = await topics.internal_stats(name)
                return _exact_contents(name, ledgers, await topics.stats(name, precise_backlog=True))
            except PulsarError:  # contents are an extra: findings are reported without them
                return Contents(name)

    async def _read(
        self,
        namespace: NamespaceName,
        only: Collection[TopicName] | None,
        progress: Progress = lambda done, total: None,
    ) -> Examination:
        unreadable: list[str] = []
        unanswered: dict[TopicName, PulsarError] = {}

        def failed(row: TopicRow, error: PulsarError) -> TopicRow:
            """Skip a topic that was deleted, cannot be read, or has no readable metadata."""
            if isinstance(error, UnknownError):
                unanswered[row.topic] = error
            elif not isinstance(error, TopicNotFound):
                raise error
            return with_count(row, 0)

        rows = await read_topics(
            AdminReading(self._admin, unreadable=unreadable.append),
            namespace,
            failed=failed,
            stored_domains=self._domains,
            domains=self._domains,
            only=only,
            questions=self._questions,
            progress=progress,
        )
        names, findings = 0, list[Finding]()
        async for some in in_turns(rows.values()):
            names += sum(row.names_count for row in some)
            findings += (finding for row in some for finding in diagnose(row) if finding.kind not in self._ignored)
        ordered = await sorted_in_turns(findings, key=lambda finding: str(finding.topic))
        return Examination(namespace, names, tuple(ordered), tuple(unreadable), unanswered)


def _exact_contents(name: TopicName, ledgers: Mapping[str, Any], stats: Mapping[str, Any]) -> Contents:
    subscriptions = stats.get("subscriptions", {}).items()
    backlogs = {text: int(subscription.get("msgBacklog", 0)) for text, subscription in subscriptions}
    entries, size = int(ledgers.get("numberOfEntries", 0)), int(ledgers.get("totalSize", 0))
    return Contents(name, entries, size, backlogs, exact=True)


def _recorded_contents(name: TopicName, info: Mapping[str, Any]) -> Contents:
    """Sum the metadata of the ledgers. An open ledger has no counts, and cursors have no backlog."""
    if "ledgers" not in info:  # for a partitioned topic the answer is about its partitions
        return Contents(name)
    entries = sum(int(ledger.get("entries", 0)) for ledger in info["ledgers"])
    size = sum(int(ledger.get("size", 0)) for ledger in info["ledgers"])
    return Contents(name, entries, size, dict.fromkeys(info.get("cursors", {})))
