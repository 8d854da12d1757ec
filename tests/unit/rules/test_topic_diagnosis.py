"""What the doctor knows: every state, its finding, and repairs that the rules of topics accept and that end it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.changes import (
    CreateMissedPartitions,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    DeleteTopic,
    SetPartitionCount,
    TopicAdminChange,
)
from interpulse.model.errors import TopicInconsistent
from interpulse.model.names import TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules import topics as operations
from interpulse.rules.inventory import TopicLists, with_count
from interpulse.rules.topic_diagnosis import PARTITIONS_CREATED_MAX, Disagreement, Finding
from interpulse.rules.topic_diagnosis import diagnose as diagnose_row
from interpulse.rules.topic_view import TopicView, check_consistency

X = TopicName.parse("persistent://t/n/x")
NP = TopicName.parse("non-persistent://t/n/x")


def topic(local_name: str) -> TopicName:
    return TopicName.of("persistent", "t", "n", local_name)


@dataclass(frozen=True)
class NamespaceTopics:
    """The records of a namespace. A metadata record of 0 partitions is one whose count could not be read."""

    present: frozenset[TopicName] = frozenset()
    metadata: Mapping[TopicName, PartitionedTopicMetadata] = field(default_factory=dict)


def diagnose(state: NamespaceTopics) -> list[Finding]:
    """The findings of all rows, by topic."""
    lists = TopicLists()
    lists.add_stored(state.present)
    lists.add_partitioned((name, None) for name in state.metadata)
    found: list[Finding] = []
    list(lists.join(lists.bases()))
    for _, row in sorted(lists.rows.items(), key=lambda item: str(item[0])):
        if (metadata := state.metadata.get(row.topic)) is not None:
            row = with_count(row, metadata.partitions, deleted=metadata.deleted)
        found += diagnose_row(row)
    return found


def topics(*present: str, counts: Mapping[str, int] | None = None, deleted: bool = False) -> NamespaceTopics:
    metadata = {topic(name): PartitionedTopicMetadata(count, deleted) for name, count in (counts or {}).items()}
    return NamespaceTopics(frozenset(map(topic, present)), metadata)


def partitions(*indices: int, of: str = "x") -> list[str]:
    return [f"{of}-partition-{index}" for index in indices]


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(topics(), id="6.3-nothing"),
        pytest.param(topics("x"), id="6.3-only-TR-x"),
        pytest.param(topics(*partitions(0, 1, 2), counts={"x": 3}), id="6.3-PM-3-all-TRs"),
        pytest.param(topics("x-partition-01"), id="2.2-leading-zero-is-a-plain-topic"),
        pytest.param(topics("x-partition-0-DLQ", "x-partition-0-sub-RETRY"), id="2.2-letter-topics-are-plain"),
        pytest.param(topics("x-partition-", "x-partition--1", "x-partition-abc"), id="2.2-no-numbers"),
        pytest.param(topics("x-partition-2147483648"), id="2.2-overflow-is-a-plain-topic"),
        pytest.param(
            topics("x-partition-01", *partitions(0), counts={"x": 1}), id="2.2-leading-zero-beside-the-partitions"
        ),
        pytest.param(topics(*partitions(0, 1, 2), "other", counts={"x": 3}), id="another-topic"),
        pytest.param(topics(*partitions(0), counts={"x": 0}), id="count-not-read"),
    ],
)
def test_diagnose_when_the_records_agree_then_finds_nothing(state: NamespaceTopics) -> None:
    assert diagnose(state) == []


RECREATE = CreatePartitionedMetadata(X, 1)
CASES = [
    pytest.param(
        topics(*partitions(0)), Disagreement.LOST_METADATA, (RECREATE,), partitions(0), id="6.3-PM-lost-TR-0-left"
    ),
    pytest.param(
        topics(*partitions(1, 4)),
        Disagreement.LOST_METADATA,
        (CreatePartitionedMetadata(X, 5),),
        partitions(1, 4),
        id="6.5-the-highest-index-gives-the-count",
    ),
    pytest.param(
        topics("x", *partitions(0)), Disagreement.LOST_METADATA, (), ["x", *partitions(0)], id="6.6-plain-in-the-way"
    ),
    pytest.param(
        topics(*partitions(999_999)), Disagreement.LOST_METADATA, (), partitions(999_999), id="too-many-to-be-created"
    ),
    pytest.param(
        topics(*partitions(0, 1, 2, 7), counts={"x": 3}),
        Disagreement.ORPHAN_PARTITIONS,
        (SetPartitionCount(X, 8, force=True),),
        partitions(7),
        id="6.3-PM-3-and-orphan-7",
    ),
    pytest.param(
        topics(*partitions(0, 1, 2, 3, 4), counts={"x": 3}),
        Disagreement.ORPHAN_PARTITIONS,
        (SetPartitionCount(X, 5, force=True),),
        partitions(3, 4),
        id="6.8-partitions-created-count-not-raised",
    ),
    pytest.param(
        topics(*partitions(0, 2**31 - 1), counts={"x": 1}),
        Disagreement.ORPHAN_PARTITIONS,
        (),
        partitions(2**31 - 1),
        id="orphan-too-far-away",
    ),
    pytest.param(
        topics("x", *partitions(0, 1, 2), counts={"x": 3}),
        Disagreement.BOTH_KINDS,
        (),
        ["x", "x"],
        id="6.3-PM-3-and-TR-x",
    ),
    pytest.param(
        topics(*partitions(0, 2), counts={"x": 3}),
        Disagreement.MISSING_PARTITIONS,
        (CreateMissedPartitions(X),),
        [],
        id="6.3-PM-3-TR-1-missing",
    ),
    pytest.param(
        topics(counts={"x": 2**31 - 1}),
        Disagreement.MISSING_PARTITIONS,
        (CreateMissedPartitions(X),),
        [],
        id="6.3-PM-alone",
    ),
    pytest.param(
        topics(*partitions(0), counts={"x": 3}),
        Disagreement.UNFINISHED_EXPANSION,
        (SetPartitionCount(X, 3, force=True),),
        [],
        id="6.8-count-raised-partitions-not-created",
    ),
    pytest.param(
        topics(*partitions(1), counts={"x": 3}, deleted=True),
        Disagreement.UNFINISHED_DELETION,
        (DeletePartitionedMetadata(X),),
        [],
        id="6.8-deletion-in-the-middle",
    ),
    pytest.param(
        topics("x", counts={"x": 3}, deleted=True),
        Disagreement.UNFINISHED_DELETION,
        (DeletePartitionedMetadata(X),),
        [],
        id="6.8-deletion-beside-a-plain-topic",
    ),
    pytest.param(
        topics(*partitions(0, 5), counts={"x": 3}, deleted=True),
        Disagreement.UNFINISHED_DELETION,
        (),
        partitions(5),
        id="6.8-deletion-would-leave-an-orphan",
    ),
]


@pytest.mark.parametrize(("state", "kind", "repairs", "deletable"), CASES)
def test_diagnose_when_the_records_disagree_then_finds_exactly_that(
    state: NamespaceTopics, kind: Disagreement, repairs: tuple[TopicAdminChange, ...], deletable: list[str]
) -> None:
    (finding,) = diagnose(state)
    assert (finding.kind, finding.topic, finding.repairs) == (kind, X, repairs)
    assert [deletion.call.topic for deletion in finding.deletions] == list(map(topic, deletable))
    assert str(X) in finding.sentence


def test_diagnose_when_the_name_holds_the_mark_then_only_calls_that_take_it_are_named() -> None:
    (lost,) = diagnose(topics("x-partition-0-partition-2", "x-partition-0", counts={"x": 1}))
    assert (lost.kind, lost.topic, lost.repairs) == (Disagreement.LOST_METADATA, topic("x-partition-0"), ())
    assert [each.call for each in lost.deletions] == [DeleteTopic(topic("x-partition-0-partition-2"))]
    (missing,) = diagnose(topics("x-partition-01-partition-1", counts={"x-partition-01": 2}))
    assert missing.repairs == (CreateTopicRecord(topic("x-partition-01-partition-0")),)


def test_diagnose_when_metadata_stands_under_the_name_of_a_partition_then_only_real_names_are_deleted() -> None:
    """Partition 1 of ``x-partition-1`` is called like the name itself, which is an innocent partition of ``x``."""
    state = topics("x-partition-1", "x-partition-1-partition-1", "x-partition-0", counts={"x": 2, "x-partition-1": 1})
    (orphan,) = diagnose(state)
    assert (orphan.kind, orphan.repairs) == (Disagreement.ORPHAN_PARTITIONS, ())
    assert [each.call for each in orphan.deletions] == [DeleteTopic(topic("x-partition-1-partition-1"))]
    assert diagnose(applied(state, orphan.deletions[0].call)) == []


def test_diagnose_when_non_persistent_then_unused_partitions_are_not_missing() -> None:
    metadata = {NP: PartitionedTopicMetadata(3)}
    assert diagnose(NamespaceTopics(frozenset(), metadata)) == []
    assert diagnose(NamespaceTopics(frozenset({NP.partition(1)}), metadata)) == []
    (lost,) = diagnose(NamespaceTopics(frozenset({NP.partition(1)})))
    assert (lost.kind, lost.repairs) == (Disagreement.LOST_METADATA, (CreatePartitionedMetadata(NP, 2),))
    (both,) = diagnose(NamespaceTopics(frozenset({NP}), metadata))
    assert both.kind is Disagreement.BOTH_KINDS


def test_diagnose_when_heartbeat_namespace_then_is_left_alone() -> None:
    name = TopicName.parse("persistent://pulsar/localhost:8080/healthcheck-partition-0")
    assert diagnose(NamespaceTopics(frozenset({name}))) == []


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (topics(*partitions(0)), "partition 0 of {x} is stored, but its partition metadata is lost, so that"),
        (
            topics(*partitions(0, 1, 2, 7), counts={"x": 1}),
            "{x} has 1 partition, but partitions 1 to 2 and 7 are stored as well, where clients are refused",
        ),
        (topics(*partitions(0, 2), counts={"x": 4}), "partitions 1 and 3 of {x}, which counts 4, are not stored"),
        (topics(*partitions(0), counts={"x": 2}), "{x} counts 2 partitions, but of them only partition 0 is stored"),
        (
            topics(counts={"x": 2}, deleted=True),
            "the deletion of {x} was begun and not finished (no partition is left)",
        ),
        (
            topics("x", *partitions(1), counts={"x": 2}, deleted=True),
            "the deletion of {x} was begun and not finished (partition 1 is still stored), so that clients are refused"
            "; the plain topic of the same name stays",
        ),
        (topics(*partitions(0, 2), counts={"x": 3}), "partition 1 of {x}, which counts 3, is not stored"),
        (topics(*partitions(0, 3), counts={"x": 4}), "partitions 1 to 2 of {x}, which counts 4, are not stored"),
        (
            topics("x", *partitions(1)),
            "partition 1 of {x} is stored, but its partition metadata is lost, so that clients are refused; "
            "beside the plain topic of its name it cannot be created again",
        ),
        (
            topics("x", *partitions(0), counts={"x": 1}),
            "{x} is a partitioned topic of 1 partition and a plain topic at once: clients use the partitions",
        ),
        (
            topics(*partitions(0, 2**31 - 1), counts={"x": 1}),
            "{x} has 1 partition, but partition 2147483647 is stored as well, where clients are refused; "
            "2147483648 partitions are too many to be created unasked",
        ),
    ],
)
def test_sentence_when_read_then_names_the_partitions(state: NamespaceTopics, sentence: str) -> None:
    (finding,) = diagnose(state)
    assert finding.sentence.startswith(sentence.format(x=X))


@pytest.mark.parametrize(
    ("state", "outcomes"),
    [
        pytest.param(
            topics("x", *partitions(1)),
            ["a partitioned topic of 2 partitions can be created again", "the other partitions stay"],
            id="beside-a-plain-topic",
        ),
        pytest.param(
            topics("x", *partitions(0), counts={"x": 1}),
            ["the partitioned topic stays", "the plain topic stays"],
            id="both-kinds",
        ),
    ],
)
def test_deletion_when_offered_then_says_what_stays(state: NamespaceTopics, outcomes: list[str]) -> None:
    (finding,) = diagnose(state)
    assert [each.outcome for each in finding.deletions] == outcomes


def test_lost_metadata_under_a_name_that_cannot_be_partitioned_says_so() -> None:
    (lost,) = diagnose(topics("x-partition-0-partition-2", "x-partition-0", counts={"x": 1}))
    assert lost.sentence.endswith("clients are refused; a partitioned topic of this name cannot be created")


def test_partitions_up_to_the_bound_are_created_unasked() -> None:
    count = PARTITIONS_CREATED_MAX + 2  # two of them are there
    (orphan,) = diagnose(topics(*partitions(0, count - 1), counts={"x": 1}))
    assert orphan.repairs == (SetPartitionCount(X, count, force=True),)
    (further,) = diagnose(topics(*partitions(0, count), counts={"x": 1}))
    assert further.repairs == ()


def test_records_of_a_marked_name_are_created_up_to_the_bound() -> None:
    base = "y-partition-x"
    (missing,) = diagnose(topics(counts={base: PARTITIONS_CREATED_MAX + 1}))
    assert missing.repairs == tuple(
        CreateTopicRecord(topic(f"{base}-partition-{index}")) for index in range(PARTITIONS_CREATED_MAX)
    )


@pytest.mark.parametrize(
    ("present", "words"),
    [
        pytest.param((0, 4), "partitions 1 to 3 and 5 of", id="three-in-a-row"),
        pytest.param((1, 3), "partitions 0, 2 and 4 to 5 of", id="a-row-at-the-end"),
    ],
)
def test_sentence_when_partitions_follow_each_other_then_names_the_ends(present: tuple[int, ...], words: str) -> None:
    (finding,) = diagnose(topics(*partitions(*present), counts={"x": 6}))
    assert words in finding.sentence


def test_sentence_when_three_partitions_lost_their_metadata_then_names_the_ends() -> None:
    (finding,) = diagnose(topics(*partitions(0, 1, 2)))
    assert finding.sentence.startswith(f"partitions 0 to 2 of {X} are stored")


def test_sentence_when_ten_partitions_are_scattered_then_names_each() -> None:
    (finding,) = diagnose(topics(*partitions(*range(1, 20, 2)), counts={"x": 20}))
    assert "partitions 0, 2, 4, 6, 8, 10, 12, 14, 16 and 18 of" in finding.sentence


def test_sentence_when_very_many_partitions_are_scattered_then_stays_readable() -> None:
    (finding,) = diagnose(topics(*partitions(*range(1, 400, 2)), counts={"x": 401}))
    assert "partitions 0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and more of" in finding.sentence


# --- against the rules of topics --------------------------------------------------------------------------------------

LOCAL_NAMES = ["x", "y ", "x-partition-01", "x-partition-0-DLQ"]
LOCAL_NAMES += ["x-partition-1-partition-1", "x-partition-1-partition-2"]
LOCAL_NAMES += [f"{base}-partition-{index}" for base in ("x", "y ", "x-partition-01") for index in range(5)]
BASES = ["x", "y ", "x-partition-01", "x-partition-1"]
STATES = st.builds(
    NamespaceTopics,
    st.frozensets(st.sampled_from(list(map(topic, LOCAL_NAMES)))),
    st.dictionaries(
        st.sampled_from(list(map(topic, BASES))),
        st.builds(PartitionedTopicMetadata, st.integers(1, 4), st.booleans()),
    ),
)


def view_of(state: NamespaceTopics, name: TopicName) -> TopicView:
    return TopicView(
        name,
        metadata=dict(state.metadata),
        recorded=name in state.present,
        partition_records=frozenset(
            each.partition_index for each in state.present if each.is_partition and each.base == name
        ),
    )


def refused(state: NamespaceTopics) -> set[TopicName]:
    """The present topics that cannot be opened (PIP-414)."""
    found = set()
    for name in state.present:
        try:
            check_consistency(view_of(state, name))
        except TopicInconsistent:
            found.add(name)
    return found


def applied(state: NamespaceTopics, call: TopicAdminChange) -> NamespaceTopics:
    """What a broker makes of a call; a call that the rules of topics refuse fails the test."""
    view = view_of(state, call.topic)
    if isinstance(call, DeletePartitionedMetadata):
        count = operations.decide_delete_partitioned(view).answer
        gone = {call.topic.partition(index) for index in range(count)}
        metadata = {name: each for name, each in state.metadata.items() if name != call.topic}
        return NamespaceTopics(state.present - gone, metadata)
    if isinstance(call, DeleteTopic):
        operations.decide_delete_plain(view, force=call.force)
        return replace(state, present=state.present - {call.topic})
    if isinstance(call, CreatePartitionedMetadata):
        changes = operations.decide_create_partitioned(view, call.partitions).changes
    elif isinstance(call, SetPartitionCount):
        changes = operations.decide_expand(view, call.partitions, force=True).changes
    elif isinstance(call, CreateMissedPartitions):
        changes = operations.decide_create_missed_partitions(view).changes
    else:
        changes = operations.decide_create_plain(view).changes
    present, metadata = set(state.present), dict(state.metadata)
    for change in changes:
        if isinstance(change, CreateTopicRecord):
            present.add(change.topic)
        elif isinstance(change, CreatePartitionedMetadata | SetPartitionCount):
            metadata[change.topic] = PartitionedTopicMetadata(change.partitions)
    return NamespaceTopics(frozenset(present), metadata)


def repaired(state: NamespaceTopics) -> NamespaceTopics:
    for finding in diagnose(state):
        for call in finding.repairs:
            state = applied(state, call)
    return state


@given(STATES)
def test_every_refused_topic_has_a_finding_and_nothing_else_is_called_lost(state: NamespaceTopics) -> None:
    findings = diagnose(state)
    named = {finding.topic for finding in findings}
    assert {name.base for name in refused(state)} <= named
    refusing = {Disagreement.LOST_METADATA, Disagreement.ORPHAN_PARTITIONS, Disagreement.BOTH_KINDS}
    assert {each.topic for each in findings if each.kind in refusing} <= {name.base for name in refused(state)}
    assert all(finding.repairs or finding.deletions for finding in findings)
    for deletion in (each for finding in findings for each in finding.deletions):
        assert all((name in refused(state)) == deletion.refused for name in deletion.lost)


@given(STATES)
def test_repairs_that_lose_nothing_when_made_then_leave_nothing_to_repair(state: NamespaceTopics) -> None:
    after = repaired(state)
    assert not [finding for finding in diagnose(after) if finding.repairs]
    unmarked = {name for name in state.present if not _deletion_begun(state, name)}
    assert unmarked <= after.present, "a repair lost a topic"


def _deletion_begun(state: NamespaceTopics, name: TopicName) -> bool:
    metadata = state.metadata.get(name.base)
    return metadata is not None and metadata.deleted


@given(STATES, st.data())
def test_every_finding_when_one_way_out_is_chosen_each_time_then_ends(
    state: NamespaceTopics, data: st.DataObject
) -> None:
    """However a person chooses, each choice is accepted and brings the end nearer."""
    for _ in range(40):
        state = repaired(state)
        choices = [deletion for finding in diagnose(state) for deletion in finding.deletions]
        if not choices:
            break
        choice = data.draw(st.sampled_from(choices))
        before = state.present
        state = applied(state, choice.call)
        assert set(choice.lost) >= before - state.present
    assert diagnose(state) == []
