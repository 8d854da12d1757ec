"""Finding and repairing topics whose records disagree, through the admin API alone.

Works against our own broker and against Apache Pulsar: the lists of a namespace, one question for each partitioned
topic whose count the lists do not tell, and the calls that `interpulse.rules.topic_diagnosis` names. While there are
many topics, others have their turn on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, TypeVar

from interpulse.client.admin.admin_client import AdminClient
from interpulse.in_turns import in_turns, sorted_in_turns
from interpulse.model.changes import (
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    SetPartitionCount,
)
from interpulse.model.errors import InvalidTopicName, PulsarError, TopicNotFound, UnknownError
from interpulse.model.names import Domain, NamespaceName, TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.topic_diagnosis import (
    CreateMissedPartitions,
    Disagreement,
    Finding,
    NamespaceTopics,
    Repair,
    diagnose,
)

__all__ = ["Attempt", "Contents", "Examination", "TopicDoctor", "Treatment"]

A = TypeVar("A")
Progress = Callable[[int, int], None]
"""Told how many partitioned topics have been asked about, or findings repaired, and how many there are."""

_QUESTIONS_AT_ONCE = 32
_REPAIRS_AT_ONCE = 8
_UNKNOWN_COUNT = PartitionedTopicMetadata(0)


@dataclass(frozen=True, slots=True)
class Examination:
    """The topics found in one namespace. ``unreadable`` are listed names that are not names of topics.

    ``unanswered`` are partitioned topics whose metadata the cluster cannot tell: nothing is concluded about them.
    """

    namespace: NamespaceName
    topics: NamespaceTopics
    findings: tuple[Finding, ...] = ()
    unreadable: tuple[str, ...] = ()
    unanswered: Mapping[TopicName, PulsarError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call that was made, and why it failed if it did."""

    call: Repair
    error: PulsarError | None = None


@dataclass(frozen=True, slots=True)
class Treatment:
    """The calls in their order, and what is found after them."""

    attempts: tuple[Attempt, ...]
    left: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of one topic, None where that cannot be known.

    ``backlogs`` are messages not consumed, by subscription. A topic that is refused cannot be loaded. Of such a topic
    the cluster knows what was written down when its ledgers were closed, and ``exact`` is False.
    """

    topic: TopicName
    entries: int | None = None
    bytes: int | None = None
    backlogs: Mapping[str, int | None] = field(default_factory=dict)
    exact: bool = False


class TopicDoctor:
    """Looks at the topics of one cluster, of these domains, for disagreements other than the ignored ones."""

    def __init__(
        self, admin: AdminClient, *, domains: Collection[Domain], ignored: Collection[Disagreement] = ()
    ) -> None:
        self._admin = admin
        self._domains = domains
        self._ignored = ignored
        self._questions = asyncio.Semaphore(_QUESTIONS_AT_ONCE)
        self._repairs = asyncio.Semaphore(_REPAIRS_AT_ONCE)

    async def examine(
        self,
        namespace: NamespaceName,
        *,
        only: Collection[TopicName] | None = None,
        progress: Progress = lambda done, total: None,
    ) -> Examination:
        """Find what disagrees in a namespace, of ``only`` these base names if given. Raises NamespaceNotFound.

        The lists are not read at one moment, so a topic that is just being created or deleted can look broken: what
        is found is looked at a second time.
        """
        first = await self._read(namespace, only, progress)
        if not first.findings:
            return first
        seen = {(each.topic, each.kind) for each in first.findings}
        second = await self._read(namespace, {topic for topic, _ in seen})
        return replace(first, findings=tuple(each for each in second.findings if (each.topic, each.kind) in seen))

    async def treat(
        self, found: Examination, deletions: Iterable[Repair] = (), *, progress: Progress = lambda done, total: None
    ) -> Treatment:
        """Make the chosen deletions, then every repair that loses nothing, and look again."""
        suspects = {finding.topic for finding in found.findings}
        attempts = [await self._attempt(call) for call in deletions]
        present = await self._read(found.namespace, suspects) if attempts else found
        attempts += await self._repair_all(present.findings, progress)
        left = await self._read(found.namespace, suspects)
        return Treatment(tuple(attempts), left.findings)

    async def contents(self, topics: Mapping[TopicName, bool]) -> dict[TopicName, Contents]:
        """The losses with these topics, each with whether brokers refuse to open it.

        Non-persistent topics keep nothing. Opening a refused one would only raise alarms.
        """
        stored = [name for name in topics if name.is_persistent]
        found = await _together(self._contents(name, refused=topics[name]) for name in stored)
        return dict(zip(stored, found, strict=True))

    async def _repair_all(self, findings: Sequence[Finding], progress: Progress) -> list[Attempt]:
        """The findings of one topic one after the other, several topics at once."""
        done = 0

        async def repair(of_topic: list[Finding]) -> list[Attempt]:
            nonlocal done
            async with self._repairs:
                attempts = [attempt for finding in of_topic for attempt in await self._repair(finding)]
            done += len(of_topic)
            progress(done, len(findings))
            return attempts

        by_topic = [list(group) for _, group in groupby(findings, key=lambda finding: finding.topic)]
        return [attempt for attempts in await _together(map(repair, by_topic)) for attempt in attempts]

    async def _repair(self, finding: Finding) -> list[Attempt]:
        """The repairs of one finding in their order, up to the first that fails."""
        attempts: list[Attempt] = []
        for call in finding.repairs:
            attempts.append(await self._attempt(call))
            if attempts[-1].error:
                break
        return attempts

    async def _attempt(self, call: Repair) -> Attempt:
        try:
            await self._apply(call)
        except PulsarError as error:
            return Attempt(call, error)
        return Attempt(call)

    async def _apply(self, call: Repair) -> None:
        topics = self._admin.topics
        if isinstance(call, CreatePartitionedMetadata):
            await topics.create_partitioned(call.topic, call.partitions)
        elif isinstance(call, SetPartitionCount):
            await topics.expand(call.topic, call.partitions, force=True)
        elif isinstance(call, CreateMissedPartitions):
            await topics.create_missed_partitions(call.topic)
        elif isinstance(call, CreateTopicRecord):
            await topics.create(call.topic)
        elif isinstance(call, DeletePartitionedMetadata):
            await topics.delete_partitioned(call.topic)
        else:
            await topics.delete(call.topic, force=call.force)

    async def _contents(self, name: TopicName, *, refused: bool) -> Contents:
        topics = self._admin.topics
        async with self._questions:
            try:
                if refused:
                    return _recorded_contents(name, await topics.internal_info(name))
                ledgers = await topics.internal_stats(name)
                return _exact_contents(name, ledgers, await topics.stats(name, precise_backlog=True))
            except PulsarError:  # the question is an extra: what was found is told without it
                return Contents(name)

    async def _read(
        self,
        namespace: NamespaceName,
        only: Collection[TopicName] | None,
        progress: Progress = lambda done, total: None,
    ) -> Examination:
        lists: list[Awaitable[Any]] = [
            self._admin.topics.list(namespace, domains=self._domains, system_included=True),
            self._admin.topics.partition_counts(namespace, domains=self._domains, system_included=True),
        ]
        present_texts, counts = await _together(lists)
        present, unreadable = await _names(present_texts, only)
        partitioned, unreadable_too = await _names(counts, only)
        answers = await self._metadata(await sorted_in_turns(partitioned, key=str), counts, progress)
        unanswered = {name: answer for name, answer in answers.items() if isinstance(answer, PulsarError)}
        metadata = {
            name: _UNKNOWN_COUNT if isinstance(answer, PulsarError) else answer for name, answer in answers.items()
        }
        topics = NamespaceTopics(present, metadata)
        findings = tuple(finding for finding in await _diagnosed(topics) if finding.kind not in self._ignored)
        return Examination(namespace, topics, findings, (*unreadable, *unreadable_too), unanswered)

    async def _metadata(
        self, names: Sequence[TopicName], counts: Mapping[str, int | None], progress: Progress
    ) -> dict[TopicName, PartitionedTopicMetadata | PulsarError]:
        """Asked for each topic without a known count: of a real broker all, of ours those that are being deleted.

        What the cluster cannot tell of one topic is its answer.
        """
        answers: dict[TopicName, PartitionedTopicMetadata | PulsarError] = {}
        asked: list[TopicName] = []
        async for some in in_turns(names):
            for name in some:
                count = counts.get(str(name))
                if count is None:
                    asked.append(name)
                else:
                    answers[name] = PartitionedTopicMetadata(count)
        done = len(answers)

        async def ask(name: TopicName) -> PartitionedTopicMetadata | PulsarError:
            nonlocal done
            answer: PartitionedTopicMetadata | PulsarError
            async with self._questions:
                try:
                    answer = await self._admin.topics.partitioned_metadata(name)
                except TopicNotFound:  # gone since it was listed, or a name that cannot be asked about
                    answer = _UNKNOWN_COUNT
                except UnknownError as error:
                    answer = error
            done += 1
            progress(done, len(names))
            return answer

        if done:
            progress(done, len(names))
        return answers | dict(zip(asked, await _together(map(ask, asked)), strict=True))


async def _together(calls: Iterable[Awaitable[A]]) -> list[A]:
    """All answers, or the first failure; then the others are given up."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _names(texts: Iterable[str], only: Collection[TopicName] | None) -> tuple[frozenset[TopicName], list[str]]:
    """The listed names that were asked for, and the texts that are no names of topics."""
    names, unreadable = set(), []
    async for some in in_turns(texts):
        for text in some:
            try:
                name = TopicName.parse(text)
            except InvalidTopicName:
                unreadable.append(text)
                continue
            if only is None or name.base in only or name in only:
                names.add(name)
    return frozenset(names), unreadable


async def _diagnosed(topics: NamespaceTopics) -> list[Finding]:
    """As `diagnose`, of some base names after the others: no finding is about two of them."""
    by_base: dict[TopicName, set[TopicName]] = {base: set() for base in topics.metadata}
    async for some in in_turns(topics.present):
        for name in some:
            if name.is_partition:
                by_base.setdefault(name.base, set()).add(name)
    findings: list[Finding] = []
    async for bases in in_turns(await sorted_in_turns(by_base, key=str)):
        present = {name for base in bases for name in by_base[base]} | {
            base for base in bases if base in topics.present
        }
        metadata = {base: topics.metadata[base] for base in bases if base in topics.metadata}
        findings += diagnose(NamespaceTopics(frozenset(present), metadata))
    return findings


def _exact_contents(name: TopicName, ledgers: Mapping[str, Any], stats: Mapping[str, Any]) -> Contents:
    backlogs = {text: int(each.get("msgBacklog", 0)) for text, each in stats.get("subscriptions", {}).items()}
    entries, size = int(ledgers.get("numberOfEntries", 0)), int(ledgers.get("totalSize", 0))
    return Contents(name, entries, size, backlogs, exact=True)


def _recorded_contents(name: TopicName, info: Mapping[str, Any]) -> Contents:
    """From the metadata of the ledgers; one that was not closed has no counts there, and cursors no backlog."""
    if "ledgers" not in info:  # of a partitioned topic the answer is about its partitions
        return Contents(name)
    entries = sum(int(ledger.get("entries", 0)) for ledger in info["ledgers"])
    size = sum(int(ledger.get("size", 0)) for ledger in info["ledgers"])
    return Contents(name, entries, size, dict.fromkeys(info.get("cursors", {})))
