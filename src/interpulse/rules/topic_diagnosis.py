"""Topics that break the rule of PIP-414, and the changes that repair each.

A topic that is refused because its records disagree remains refused until an operator acts. `diagnose` finds every such
topic, and topics that were left half created or half deleted, from names and partition counts alone. Repairs without
data loss are separate from deletions, which only an operator may choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice, pairwise
from typing import Final

from interpulse.model.changes import (
    CreateMissedPartitions,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    DeleteTopic,
    SetPartitionCount,
    TopicAdminChange,
)
from interpulse.model.inventory import PLAIN, ListedKind, TopicRow
from interpulse.model.names import TopicName

PARTITIONS_CREATED_MAX: Final = 1000
"""Maximum number of partitions that a repair creates without a request.

One stray partition with a huge index must not create millions.
"""

_RUNS_SHOWN_MAX: Final = 10
_PARTITION_MARK: Final = "-partition-"


class Disagreement(Enum):
    """Kinds of disagreement between the records of a topic."""

    LOST_METADATA = "lost-metadata"
    ORPHAN_PARTITIONS = "orphan-partitions"
    BOTH_KINDS = "both-kinds"
    MISSING_PARTITIONS = "missing-partitions"
    UNFINISHED_DELETION = "unfinished-deletion"
    UNFINISHED_EXPANSION = "unfinished-expansion"


@dataclass(frozen=True, slots=True)
class Deletion:
    """Repair that deletes the contents of the ``lost`` topics. A broker does not open ``refused`` ones."""

    call: DeletePartitionedMetadata | DeleteTopic
    lost: tuple[TopicName, ...]
    outcome: str
    refused: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """Disagreement. ``repairs`` together resolve it without data loss; ``deletions`` are choices of the operator.

    The sentence names the fault and its effect on clients.
    """

    kind: Disagreement
    topic: TopicName
    sentence: str
    repairs: tuple[TopicAdminChange, ...] = ()
    deletions: tuple[Deletion, ...] = ()


def diagnose(row: TopicRow) -> list[Finding]:
    """Return all disagreements of one base name. Names that only look like partitions are separate topics.

    A count of 0 means that it could not be read, and allows no conclusion.
    """
    exempt = row.is_healthy or row.topic.namespace_name.is_heartbeat
    return [] if exempt else list(_judge(_Family(row)))


Run = tuple[int, int]
"""Partition indexes, both ends included. A count can be hostile, so gaps are never expanded."""


class _Family:
    """Base name with all records below it."""

    def __init__(self, row: TopicRow) -> None:
        self.base = row.topic
        indexes = row.indexes or ()
        self.is_partitioned = row.kind in (ListedKind.PARTITIONED, ListedKind.METADATA_ONLY)
        self.is_deleted = row.deleted
        self.count = row.partitions
        self.partitions = [index for index in indexes if index != PLAIN]
        self.covered = [index for index in self.partitions if index < self.count]
        self.orphans = [index for index in self.partitions if index >= self.count]
        self.plain_present = PLAIN in indexes

    def partition(self, index: int) -> TopicName:
        """Return the name of a partition.

        `TopicName.partition` leaves a base that ends like this partition unchanged, but ``t-partition-1`` has a
        partition 1 too.
        """
        base = self.base
        return TopicName(base.domain, base.tenant, base.namespace, f"{base.local_name}{_PARTITION_MARK}{index}")

    @property
    def gaps(self) -> list[Run]:
        """Runs of missing partitions. Non-persistent partitions are present only in use, so none is ever missing."""
        if not self.base.is_persistent:
            return []
        edges = [-1, *self.covered, self.count]
        return [(left + 1, right - 1) for left, right in pairwise(edges) if right - left > 1]

    @property
    def present_word(self) -> str:
        return "stored" if self.base.is_persistent else "loaded"

    def deletions(self, indices: Iterable[int]) -> tuple[Deletion, ...]:
        """Return one choice per partition, because the operator may want to retain some of them."""
        names = map(self.partition, indices)
        return tuple(Deletion(DeleteTopic(name), (name,), "the other partitions stay") for name in names)

    def may_cover(self, partitions: int) -> bool:
        """Return True if it may become a partitioned topic of this many partitions without a request."""
        return partitions - len(self.partitions) <= PARTITIONS_CREATED_MAX


def _judge(family: _Family) -> Iterator[Finding]:
    if not family.is_partitioned:
        if family.orphans:
            yield _lost_metadata(family)
    elif family.base.is_partition:  # no request creates, expands or deletes a partitioned topic of such a name
        if family.orphans and family.count:
            yield _stuck_orphans(family)
    elif family.is_deleted:
        yield _unfinished_deletion(family)
    elif family.count:
        if family.plain_present:
            yield _both_kinds(family)
        if family.gaps:
            yield _missing_partitions(family)
        if family.orphans:
            yield _orphan_partitions(family)


def _lost_metadata(family: _Family) -> Finding:
    """Repair by creating the partitioned topic again, which adopts stored partitions with their entries."""
    base, partitions = family.base, family.orphans[-1] + 1
    sentence = (
        f"{_numbered(_runs(family.orphans))} of {base} {_is_or_are(family.orphans)} {family.present_word}, but its "
        f"partition metadata is lost, so that clients are refused"
    )
    deletions = family.deletions(family.orphans)
    repairs: tuple[TopicAdminChange, ...] = ()
    if family.plain_present and not base.is_partition:
        sentence += "; beside the plain topic of its name it cannot be created again"
        outcome = f"a partitioned topic of {_counted(partitions)} can be created again"
        deletions = (Deletion(DeleteTopic(base), (base,), outcome, refused=False), *deletions)
    elif not _may_be_partitioned(base):
        sentence += "; a partitioned topic of this name cannot be created"
    elif not family.may_cover(partitions):
        sentence += f"; {partitions} partitions are too many to be created unasked"
    else:
        repairs = (CreatePartitionedMetadata(base, partitions),)
    return Finding(Disagreement.LOST_METADATA, base, sentence, repairs, deletions)


def _may_be_partitioned(base: TopicName) -> bool:
    """Return True if ``create-partitioned-topic`` accepts the name."""
    marked = base.is_partition or (base.is_persistent and _PARTITION_MARK in base.encoded)
    return base.creatable and not marked


def _unfinished_deletion(family: _Family) -> Finding:
    """Repair by deleting again, which resumes. Partitions beyond the count would remain without metadata."""
    base = family.base
    left = f"{_are(family.covered)} still {family.present_word}" if family.covered else "no partition is left"
    sentence = f"the deletion of {base} was begun and not finished ({left}), so that clients are refused"
    if family.plain_present:
        sentence += "; the plain topic of the same name stays"
    if family.orphans:
        sentence += f"; {_numbered(_runs(family.orphans))}, beyond its count of {family.count}, would be left behind"
        return Finding(Disagreement.UNFINISHED_DELETION, base, sentence, deletions=family.deletions(family.orphans))
    return Finding(Disagreement.UNFINISHED_DELETION, base, sentence, (DeletePartitionedMetadata(base),))


def _both_kinds(family: _Family) -> Finding:
    """Offer both deletions, because only the operator knows which topic is intended."""
    base = family.base
    sentence = (
        f"{base} is a partitioned topic of {_counted(family.count)} and a plain topic at once: clients use the "
        f"partitions and cannot reach the plain topic"
    )
    covered = tuple(map(family.partition, family.covered))
    deletions = (
        Deletion(DeleteTopic(base, force=True), (base,), "the partitioned topic stays"),
        Deletion(DeletePartitionedMetadata(base), covered, "the plain topic stays", refused=False),
    )
    return Finding(Disagreement.BOTH_KINDS, base, sentence, deletions=deletions)


def _missing_partitions(family: _Family) -> Finding:
    """Treat a gap at the end, after partitions that are all stored, as an interrupted expansion."""
    base, gaps, count, covered = family.base, family.gaps, family.count, len(family.covered)
    if gaps == [(covered, count - 1)] and covered and not family.orphans:
        sentence = f"{base} counts {_counted(count)}, but of them only {_are(family.covered)} stored"
        return Finding(Disagreement.UNFINISHED_EXPANSION, base, sentence, (SetPartitionCount(base, count, force=True),))
    missing = sum(last - first + 1 for first, last in gaps)
    sentence = f"{_numbered(gaps)} of {base}, which counts {count}, {'is' if missing == 1 else 'are'} not stored"
    repairs: tuple[TopicAdminChange, ...] = (CreateMissedPartitions(base),)
    if _PARTITION_MARK in base.local_name:  # that call refuses such names
        indices = (index for first, last in gaps for index in range(first, last + 1))
        repairs = tuple(CreateTopicRecord(base.partition(index)) for index in islice(indices, PARTITIONS_CREATED_MAX))
    return Finding(Disagreement.MISSING_PARTITIONS, base, sentence, repairs)


def _orphan_partitions(family: _Family) -> Finding:
    """Repair by increasing the count to cover them, without data loss."""
    finding, partitions = _stuck_orphans(family), family.orphans[-1] + 1
    if not family.may_cover(partitions):
        return replace(
            finding, sentence=f"{finding.sentence}; {partitions} partitions are too many to be created unasked"
        )
    return replace(finding, repairs=(SetPartitionCount(family.base, partitions, force=True),))


def _stuck_orphans(family: _Family) -> Finding:
    sentence = (
        f"{family.base} has {_counted(family.count)}, but "
        f"{_are(family.orphans)} {family.present_word} as well, where clients are refused"
    )
    deletions = family.deletions(family.orphans)
    return Finding(Disagreement.ORPHAN_PARTITIONS, family.base, sentence, deletions=deletions)


# --- words ------------------------------------------------------------------------------------------------------------


def _runs(indices: Iterable[int]) -> list[Run]:
    """Return sorted indices as runs."""
    runs: list[Run] = []
    for index in indices:
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs


def _are(indices: Sequence[int]) -> str:
    """Return ``partition 7 is`` or ``partitions 0 to 2 and 7 are``."""
    return f"{_numbered(_runs(indices))} {_is_or_are(indices)}"


def _is_or_are(things: Sequence[object]) -> str:
    return "is" if len(things) == 1 else "are"


def _counted(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"


def _numbered(runs: Sequence[Run]) -> str:
    words = [str(first) if first == last else f"{first} to {last}" for first, last in runs[:_RUNS_SHOWN_MAX]]
    if len(runs) > _RUNS_SHOWN_MAX:
        words.append("more")
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    single = len(runs) == 1 and runs[0][0] == runs[0][1]
    return f"{'partition' if single else 'partitions'} {listed}"
