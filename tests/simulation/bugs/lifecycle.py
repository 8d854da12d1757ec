"""Bugs of the life of topics, which S3 must find."""

from __future__ import annotations

from typing import Any

from interpulse.broker import metadata_paths as keys
from interpulse.broker.committer import Records
from interpulse.broker.topics.deletion import Deletion
from interpulse.broker.topics.lifecycle import TopicLifecycle
from interpulse.broker.topics.topic_reading import Reading, TopicReader
from interpulse.model.changes import CreateTopicRecord, Decision, SetPartitionCount
from interpulse.model.names import TopicName
from interpulse.rules import topics
from interpulse.rules.topic_view import Part, TopicView


def partition_deleted_meanwhile_left_out() -> None:
    """151: a partition that is deleted between the read and the commit of a creation is missing behind it.

    A partition is deleted, and its deletion is answered; then the topic is expanded, and has all partitions but that.
    """
    read = TopicReader.read

    async def trusting(self: TopicReader, name: TopicName, *parts: Part) -> Reading:
        reading = await read(self, name, *parts)
        for index in reading.stored:
            reading.versions.pop(keys.topic_record(name.partition(index)), None)  # type: ignore[attr-defined]
        return reading

    TopicReader.read = trusting  # type: ignore[method-assign]


def deletion_leaves_the_partition_metadata() -> None:
    """152: a partitioned topic is deleted with its partitions, and its metadata stay.

    The deletion is answered, and the topic still has its partition count.
    """
    decide = topics.decide_delete_partitioned
    topics.decide_delete_partitioned = lambda view: Decision(decide(view).answer)


def refused_creation_leaves_partitions() -> None:
    """153: the partitions are created before the name is checked.

    A topic of one partition is created again with three. That is refused, and two partitions are stored beyond it.
    """
    create = TopicLifecycle.create_partitioned

    async def hasty(self: TopicLifecycle, name: TopicName, partitions: int, **options: Any) -> None:
        async def propose(records: Records) -> Decision[None]:
            names = [name.partition(index) for index in range(partitions)]
            stored = await records.get_many([keys.topic_record(each) for each in names])
            absent = [each for each in names if keys.topic_record(each) not in stored]
            return Decision(None, tuple(map(CreateTopicRecord, absent)))

        await self._committer.decide(propose)
        await create(self, name, partitions, **options)

    TopicLifecycle.create_partitioned = hasty  # type: ignore[method-assign]


def question_creates_the_topic() -> None:
    """154: a question for the partition count creates the topic, whatever its flag says (PIP-344).

    A client asks for a topic that does not exist, without creating it, and the next one finds it.
    """
    decide = topics.decide_partitions_for_operator

    def creating(view: TopicView, *, create: bool) -> Any:
        return decide(view, create=True)

    topics.decide_partitions_for_operator = creating


def expansion_in_two_commits() -> None:
    """155: an expansion stores the new count first, and then the partitions.

    The broker dies between the two commits: the topic has its new count, and the new partitions do not exist.
    """

    async def expand(self: TopicLifecycle, name: TopicName, partitions: int, *, force: bool = False) -> None:
        async def propose(records: Records) -> Decision[None]:
            reading = await self._read(records, name, topics.decide_expand)
            decided = topics.decide_expand(reading.view, partitions, force=force).changes
            return Decision(None, tuple(change for change in decided if isinstance(change, SetPartitionCount)))

        await self._committer.decide(propose)
        await self.create_missed_partitions(name)

    TopicLifecycle.expand = expand  # type: ignore[method-assign]


def topic_deleted_twice() -> None:
    """156: requests that delete one topic at the same time all report success."""
    topic = Deletion.topic

    async def at_once(self: Deletion, name: TopicName, *, force: bool) -> None:
        self._deleting.pop(name, None)
        await topic(self, name, force=force)

    Deletion.topic = at_once  # type: ignore[method-assign]
