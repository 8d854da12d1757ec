"""What holds for every rule of topics, over every combination of a small world."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from interpulse.model.changes import (
    CreatePartitionedMetadata,
    CreateTopicRecord,
    Decision,
    SetPartitionCount,
)
from interpulse.model.errors import (
    AlreadyExists,
    PulsarError,
    TopicNotFound,
)
from interpulse.model.topics import PartitionedTopicMetadata, Requester
from interpulse.rules.inactivity import decide_delete_orphaned_metadata
from interpulse.rules.topic_view import NamespaceStanding, Part, TopicView, check_consistency, looked_at, metadata_names
from interpulse.rules.topics import (
    decide_create_missed_partitions,
    decide_create_partitioned,
    decide_create_plain,
    decide_delete_partitioned,
    decide_delete_plain,
    decide_expand,
    decide_lookup,
    decide_open,
    decide_partitions,
    decide_partitions_for_operator,
    decide_partitions_to_subscribe,
)
from tests.unit.rules.topic_world import ADMIN, CLIENT, Question, apply, decided, outcome, refused, small_world

ASKING: list[Question] = [
    partial(decide_partitions, create=False),
    *(partial(decide_open, by=by, create=False) for by in Requester),
    decide_lookup,
    partial(decide_partitions_for_operator, create=False),
    partial(decide_delete_plain, force=False),
    partial(decide_delete_plain, force=True),
]
"""What never changes anything; the deletion of one topic is the registry's work."""

LASTING: list[Question] = [
    *ASKING,
    partial(decide_partitions, create=True),
    partial(decide_partitions_for_operator, create=True),
    decide_partitions_to_subscribe,
    *(partial(decide_open, by=by, create=True) for by in Requester),
    partial(decide_create_partitioned, partitions=2, local_only=True),
    decide_create_missed_partitions,
    partial(decide_expand, partitions=3),
    partial(decide_expand, partitions=4, force=True),
]
"""What may be asked again and again with the same answer."""

ONCE: list[tuple[Question, type[PulsarError]]] = [
    (partial(decide_create_partitioned, partitions=4), AlreadyExists),
    (decide_create_plain, AlreadyExists),
    (decide_delete_partitioned, PulsarError),
]
"""What is refused the second time, and how."""

QUESTIONS: list[Question] = [*LASTING, *(question for question, _ in ONCE)]


def named(question: Question) -> str:
    """The id of a question: its function and the options."""
    if not isinstance(question, partial):
        return getattr(question, "__name__", "")
    options = (f"{key}={getattr(value, 'value', value)}" for key, value in question.keywords.items())
    return "-".join((question.func.__name__, *options))


UPKEEP: list[Question] = [partial(decide_delete_orphaned_metadata, loaded=loaded) for loaded in (False, True)]
"""What the broker asks itself."""


def as_read(view: TopicView, declared: tuple[Part, ...]) -> TopicView:
    """The view with no more than is read for a rule that declares these parts."""
    if Part.RELATED_METADATA not in declared:
        base = view.name.base
        view = replace(view, metadata={name: each for name, each in view.metadata.items() if name == base})
    return view if Part.PARTITION_RECORDS in declared else replace(view, partition_records=frozenset())


THREE = PartitionedTopicMetadata(3)
CREATING = partial(decide_partitions, create=True)


def with_room(view: TopicView) -> TopicView:
    """The limit of topics comes before the name that is taken."""
    return replace(view, topics_left=None)


class TestLaws:
    @pytest.mark.parametrize("question", ASKING, ids=named)
    def test_without_create_there_are_never_changes(self, question: Question) -> None:
        for view in small_world():
            decision = decided(question, view)
            assert decision is None or decision.changes == (), view

    @pytest.mark.parametrize("question", LASTING, ids=named)
    def test_applied_changes_lead_to_the_same_answer_without_changes(self, question: Question) -> None:
        for view in small_world():
            decision = decided(question, view)
            if decision is not None:
                assert question(apply(view, decision.changes)) == Decision(decision.answer), view

    @pytest.mark.parametrize(("question", "refusal"), ONCE, ids=[named(question) for question, _ in ONCE])
    def test_applied_changes_that_were_a_deed_lead_to_a_refusal(
        self, question: Question, refusal: type[PulsarError]
    ) -> None:
        for view in small_world():
            decision = decided(question, view)
            if decision is not None and decision.changes:
                with pytest.raises(refusal):
                    question(apply(with_room(view), decision.changes))

    @pytest.mark.parametrize("question", QUESTIONS, ids=named)
    def test_a_refusal_is_a_sentence_and_has_no_changes(self, question: Question) -> None:
        for view in small_world():
            refusal = refused(question, view)
            assert refusal is None or (str(refusal) and all(isinstance(part, str) for part in refusal.args)), view

    @pytest.mark.parametrize("question", [*QUESTIONS, *UPKEEP], ids=named)
    def test_a_rule_looks_at_nothing_that_it_does_not_declare(self, question: Question) -> None:
        declared = looked_at(question.func if isinstance(question, partial) else question)
        views = small_world()[::7]
        related = [replace(view, metadata=dict.fromkeys(metadata_names(view.name), THREE)) for view in views]
        for view in (*views, *related):
            read = as_read(view, declared)
            assert decided(question, read) == decided(question, view), view
            assert str(refused(question, read)) == str(refused(question, view)), view

    def test_the_same_view_always_gives_the_same_outcome(self) -> None:
        """A rule depends on the view alone, so a preview and the real run, and both front ends, cannot differ."""
        for view, question in product(small_world()[::7], QUESTIONS):
            assert decided(question, view) == decided(question, replace(view)), view

    def test_what_a_client_opens_agrees_with_the_metadata_and_a_creating_query_knows_it(self) -> None:
        for view, by in product(small_world(), (CLIENT, ADMIN)):
            if decided(partial(decide_open, by=by, create=True), view) is None:
                continue
            check_consistency(view)
            if view.name.is_persistent:
                assert outcome(decide_partitions, view, create=True) is not TopicNotFound, view

    def test_http_lookup_refuses_what_a_creating_query_does_not_find(self) -> None:
        for view in small_world():
            looked_up, asked = (outcome(question, view) for question in (decide_lookup, CREATING))
            assert (looked_up is TopicNotFound) == (asked is TopicNotFound), view

    def test_a_query_that_created_partitions_is_answered_alike_without_creating(self) -> None:
        for view in small_world():
            decision = decided(CREATING, view)
            if decision is not None and decision.changes:
                assert outcome(decide_partitions, apply(view, decision.changes), create=False) == decision.answer > 0

    def test_what_an_operator_creates_is_consistent_and_whole(self) -> None:
        creating = (partial(decide_create_partitioned, partitions=4), partial(decide_expand, partitions=4, force=True))
        for view, question in product(small_world(), creating):
            decision = decided(question, view)
            if decision is not None and view.name.is_persistent:
                assert set(range(4)) <= apply(view, decision.changes).partition_records, view
        for view in small_world():
            decision = decided(decide_create_plain, view)
            if decision is not None:
                check_consistency(apply(view, decision.changes))

    def test_new_partitions_come_before_the_count_that_covers_them(self) -> None:
        for view in small_world():
            decision = decided(partial(decide_expand, partitions=4, force=True), view)
            counts = [isinstance(change, SetPartitionCount) for change in decision.changes] if decision else []
            assert True not in counts[:-1], view

    def test_nothing_is_created_in_a_namespace_that_is_missing_or_being_deleted(self) -> None:
        gone = (NamespaceStanding.MISSING, NamespaceStanding.DELETED)
        lost = [view for view in small_world() if view.namespace in gone and view.name.tenant == "public"]
        for view, question in product(lost, QUESTIONS):
            decision = decided(question, view)
            created = decision.changes if decision else ()
            assert not any(isinstance(change, CreateTopicRecord | CreatePartitionedMetadata) for change in created)
