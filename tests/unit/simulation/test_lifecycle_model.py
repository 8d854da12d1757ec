"""The model of topics beside the tables of PIP-344 and PIP-414, the rules of the broker, and histories by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.changes import (
    Change,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    SetPartitionCount,
)
from interpulse.model.errors import (
    Conflict,
    ExpansionAboveMaximum,
    MetadataError,
    NotAllowed,
    PreconditionFailed,
    PulsarError,
    ServiceNotReady,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.model.topics import PartitionedTopicMetadata, Requester
from interpulse.rules.effective_policies import EffectiveAutoCreation
from interpulse.rules.topic_view import TopicView
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
)
from tests.simulation.lifecycle_model import (
    Answer,
    AutoCreation,
    Call,
    Operation,
    Rule,
    State,
    ask_partitions,
    create_partitioned,
    create_topic,
    delete_partitioned,
    delete_topic,
    expand,
    judge,
    look_up,
    open_topic,
    restore,
)

X = TopicName.parse("x")
ON, OFF, TWO = AutoCreation(), AutoCreation(allowed=False), AutoCreation(partitions=2)
POLICIES = (ON, OFF, TWO)
DONE, LOST, UNCHANGED = Answer.DONE, Answer.LOST, Answer.UNCHANGED
NOT_FOUND, CONFLICT, PRECONDITION = Answer.NOT_FOUND, Answer.CONFLICT, Answer.PRECONDITION_FAILED
EVERY_ANSWER: tuple[Answer | int, ...] = (*(answer for answer in Answer if answer not in (LOST, UNCHANGED)), 0, 1, 2, 3)
NOTHING = State()
SINGLE = State(0, frozenset({-1}))
THREE = State(3, frozenset({0, 1, 2}))

ASK, ASK_ONLY = Call(ask_partitions, X), Call(ask_partitions, X, create=False)
LOOK_UP, OPEN = Call(look_up, X), Call(open_topic, X)
CREATE, DELETE, FORCE_DELETE = Call(create_topic, X), Call(delete_topic, X), Call(delete_topic, X, force=True)
CREATE_3, EXPAND_4 = Call(create_partitioned, X, count=3), Call(expand, X, count=4)
DELETE_3, FORCE_DELETE_3 = Call(delete_partitioned, X), Call(delete_partitioned, X, force=True)


def partition(call: Call, index: int) -> Call:
    return replace(call, name=X.partition(index))


def verdicts(before: State, call: Call, auto_creation: AutoCreation, answer: Answer | int) -> list[str]:
    """The judge's sentences about a history of one operation."""
    return judge([Operation("a", call, answer, 0, 1)], auto_creation, {X: before})


class TestPip344:
    @pytest.mark.parametrize(
        ("before", "call", "policies", "answer"),
        [
            pytest.param(SINGLE, ASK, POLICIES, 0, id="row1-create"),
            pytest.param(SINGLE, ASK_ONLY, POLICIES, 0, id="row1"),
            pytest.param(THREE, ASK, POLICIES, 3, id="row2-create"),
            pytest.param(THREE, ASK_ONLY, POLICIES, 3, id="row2"),
            pytest.param(NOTHING, ASK, [ON], 0, id="row3-not-partitioned"),
            pytest.param(NOTHING, ASK, [TWO], 2, id="row4-partitioned"),
            pytest.param(NOTHING, ASK_ONLY, [ON, TWO], NOT_FOUND, id="row5-not-asked-to-create"),
            pytest.param(NOTHING, ASK, [OFF], NOT_FOUND, id="row6-not-allowed"),
            pytest.param(NOTHING, partition(ASK, 1), [ON, TWO], 0, id="partition-of-nothing-create"),
            pytest.param(NOTHING, partition(ASK_ONLY, 1), POLICIES, NOT_FOUND, id="partition-of-nothing"),
        ],
    )
    def test_answer_of_a_row_is_the_only_one(
        self, before: State, call: Call, policies: Sequence[AutoCreation], answer: Answer | int
    ) -> None:
        for auto_creation, other in product(policies, EVERY_ANSWER):
            assert bool(verdicts(before, call, auto_creation, other)) is (other != answer), (auto_creation, other)

    @pytest.mark.parametrize(
        ("auto_creation", "created"), [(ON, NOT_FOUND), (TWO, 2), (OFF, NOT_FOUND)], ids=["row3", "row4", "row6"]
    )
    def test_question_creates_only_a_partitioned_topic(
        self, auto_creation: AutoCreation, created: Answer | int
    ) -> None:
        question = Operation("a", ASK, LOST, 0, 1)
        for answer in EVERY_ANSWER:
            found = judge([question, Operation("a", ASK_ONLY, answer, 1, 2)], auto_creation)
            assert bool(found) is (answer not in (created, NOT_FOUND)), answer


class TestWhatEachCommandSees:
    """A question that creates, one that does not, a lookup by HTTP, and PRODUCER or SUBSCRIBE."""

    @pytest.mark.parametrize(
        ("before", "index", "auto_creation", "answers"),
        [
            pytest.param(NOTHING, None, ON, (0, NOT_FOUND, DONE, DONE), id="nothing-auto-on"),
            pytest.param(NOTHING, None, OFF, (NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND), id="nothing-auto-off"),
            pytest.param(NOTHING, 0, ON, (0, NOT_FOUND, DONE, CONFLICT), id="no-such-partition-auto-on"),
            pytest.param(
                NOTHING, 0, OFF, (NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND), id="no-such-partition-auto-off"
            ),
            pytest.param(SINGLE, None, OFF, (0, 0, DONE, DONE), id="single-topic"),
            pytest.param(SINGLE, 2, ON, (0, NOT_FOUND, DONE, CONFLICT), id="partition-of-a-single-topic"),
            pytest.param(THREE, None, ON, (3, 3, DONE, CONFLICT), id="partitioned-auto-on"),
            pytest.param(THREE, None, OFF, (3, 3, DONE, NOT_FOUND), id="partitioned-auto-off"),
            pytest.param(THREE, 2, OFF, (0, 0, DONE, DONE), id="partition"),
            pytest.param(THREE, 3, ON, (NOT_FOUND, NOT_FOUND, NOT_FOUND, NOT_FOUND), id="outside"),
            pytest.param(State(3), 1, OFF, (0, NOT_FOUND, DONE, DONE), id="partition-lost"),
            pytest.param(State(0, frozenset({0})), 0, OFF, (0, 0, DONE, CONFLICT), id="metadata-lost"),
            pytest.param(State(3, frozenset({-1})), None, OFF, (3, 3, DONE, CONFLICT), id="single-and-partitioned"),
            pytest.param(State(3, frozenset({7})), 7, OFF, (0, 0, DONE, CONFLICT), id="partition-beyond-the-count"),
        ],
    )
    def test_state(
        self, before: State, index: int | None, auto_creation: AutoCreation, answers: Sequence[Answer | int]
    ) -> None:
        for call, expected in zip((ASK, ASK_ONLY, LOOK_UP, OPEN), answers, strict=True):
            named = call if index is None else partition(call, index)
            for answer in EVERY_ANSWER:
                assert bool(verdicts(before, named, auto_creation, answer)) is (answer != expected), (named, answer)


def times(*operations: tuple[Call, Answer | int] | tuple[Call, Answer | int, float, float]) -> list[Operation]:
    """A history: without times, an operation begins when the one before it in the list has ended."""
    history: list[Operation] = []
    for number, (call, answer, *interval) in enumerate(operations):
        start, end = interval or (10 * number, 10 * number + 9)
        history.append(Operation("abc"[number % 3], call, answer, start, end))
    return history


LEGAL = {
    "deleted-topic-is-not-found-until-created": times(
        (CREATE, DONE), (DELETE, DONE), (ASK_ONLY, NOT_FOUND), (CREATE, DONE), (ASK_ONLY, 0)
    ),
    "one-of-two-creations": times((CREATE_3, CONFLICT, 0, 5), (CREATE_3, DONE, 1, 9)),
    "question-during-a-creation": times((CREATE_3, DONE, 0, 9), (ASK_ONLY, NOT_FOUND, 1, 2), (ASK_ONLY, 3, 3, 4)),
    "order-of-ends-is-not-the-order-of-effects": times(
        (DELETE_3, DONE, 0, 9), (CREATE_3, DONE, 1, 2), (ASK_ONLY, NOT_FOUND, 10, 11)
    ),
    "lost-creation-happened": times((CREATE, LOST), (ASK_ONLY, 0), (CREATE, CONFLICT)),
    "lost-creation-did-not-happen": times((CREATE, LOST), (ASK_ONLY, NOT_FOUND), (CREATE, DONE)),
    "lost-creation-happens-late": times((CREATE, LOST, 0, math.inf), (ASK_ONLY, NOT_FOUND, 1, 2), (ASK_ONLY, 0, 3, 4)),
    "lost-expansion": times((CREATE_3, DONE, 0, 1), (EXPAND_4, LOST, 2, 9), (ASK_ONLY, 3, 3, 4), (ASK_ONLY, 4, 5, 6)),
    "lost-deletion-refused-in-use": times((CREATE, DONE), (DELETE, LOST), (ASK_ONLY, 0)),
    "two-lost-operations-in-either-order": times(
        (CREATE_3, LOST, 0, 9), (DELETE_3, LOST, 1, 9), (ASK_ONLY, 3, 2, 3), (ASK_ONLY, NOT_FOUND, 4, 5)
    ),
    "unchanged-creation": times((CREATE, UNCHANGED), (ASK_ONLY, NOT_FOUND), (CREATE, DONE)),
    "deletion-refused-in-use": times((CREATE, DONE), (DELETE, PRECONDITION), (ASK_ONLY, 0), (FORCE_DELETE, DONE)),
    "partition-comes-back-by-opening": times(
        (CREATE_3, DONE),
        (partition(FORCE_DELETE, 1), DONE),
        (partition(ASK_ONLY, 1), NOT_FOUND),
        (partition(OPEN, 1), DONE),
        (partition(ASK_ONLY, 1), 0),
    ),
    "smaller-topic-of-the-same-name": times(
        (CREATE_3, DONE), (EXPAND_4, DONE), (FORCE_DELETE_3, DONE), (CREATE_3, DONE), (ASK_ONLY, 3)
    ),
}
ILLEGAL = {
    "deleted-topic-comes-back": times((CREATE, DONE), (DELETE, DONE), (ASK_ONLY, 0)),
    "done-creation-did-not-happen": times((CREATE, DONE), (ASK_ONLY, NOT_FOUND)),
    "refused-creation-happened": times((partition(CREATE, 1), PRECONDITION), (partition(ASK_ONLY, 1), 0)),
    "unchanged-creation-happened": times((CREATE, UNCHANGED), (ASK_ONLY, 0)),
    "two-creations-of-one-topic": times((CREATE_3, DONE, 0, 9), (CREATE_3, DONE, 1, 8)),
    "refusal-before-its-reason": times((CREATE, CONFLICT, 0, 1), (CREATE, DONE, 1, 2)),
    "partitions-shrink": times((CREATE_3, DONE), (EXPAND_4, LOST), (ASK_ONLY, 4), (ASK_ONLY, 3)),
    "expansion-to-fewer": times((CREATE_3, DONE), (Call(expand, X, count=2, force=True), DONE)),
    "partitions-beyond-an-expansion": times((CREATE_3, DONE), (EXPAND_4, LOST), (partition(OPEN, 4), DONE)),
    "lost-creation-does-not-stay": times((CREATE, LOST), (ASK_ONLY, 0), (ASK_ONLY, NOT_FOUND)),
    "lost-creation-happens-twice": times((CREATE, LOST, 0, 90), (OPEN, DONE, 1, 2), (FORCE_DELETE, DONE, 3, 4))
    + times((ASK_ONLY, 0, 5, 6), (FORCE_DELETE, DONE, 7, 8), (ASK_ONLY, 0, 9, 10)),
    "lost-creation-happens-after-its-end": times(
        (CREATE, LOST, 0, 2), (ASK_ONLY, NOT_FOUND, 3, 4), (ASK_ONLY, 0, 5, 6)
    ),
    "forced-deletion-refused-in-use": times((CREATE, DONE), (FORCE_DELETE, PRECONDITION)),
    "partition-of-a-deleted-topic": times((CREATE_3, DONE), (FORCE_DELETE_3, DONE), (partition(OPEN, 0), DONE)),
    "lookup-of-a-topic-that-may-not-be-created": times((CREATE, DONE), (DELETE, DONE), (LOOK_UP, DONE)),
}


class TestHistories:
    @pytest.mark.parametrize("history", LEGAL.values(), ids=LEGAL)
    def test_history_when_an_order_explains_it_then_is_accepted(self, history: list[Operation]) -> None:
        assert judge(history, OFF) == []

    @pytest.mark.parametrize("history", ILLEGAL.values(), ids=ILLEGAL)
    def test_history_when_no_order_explains_it_then_is_a_finding(self, history: list[Operation]) -> None:
        assert len(judge(history, OFF)) == 1

    def test_history_when_many_operations_are_lost_then_is_judged_in_a_few_steps(self) -> None:
        lost = [Operation("a", replace(CREATE_3, count=number % 4 + 1), LOST, number) for number in range(40)]
        lost += [Operation("a", call, LOST, 50) for call in (DELETE_3, EXPAND_4, CREATE) for _ in range(10)]
        assert judge([*lost, Operation("b", ASK_ONLY, 4, 60, 61)], OFF) == []
        assert len(judge([*lost, Operation("b", ASK_ONLY, 7, 60, 61)], OFF)) == 1

    def test_history_of_several_topics_when_one_is_wrong_then_the_finding_names_its_operation(self) -> None:
        wrong = Operation("b", replace(EXPAND_4, name=TopicName.parse("y")), DONE, 3.5, 4)
        [finding] = judge([*times((CREATE_3, DONE), (EXPAND_4, DONE)), wrong], OFF)
        assert finding == (
            "no order explains b expand persistent://public/default/y count=4 create=True force=False: "
            "Answer.DONE in 3.5..4; before, there were 0 partitions, stored []"
        )

    @pytest.mark.parametrize("interval", [(1, 1), (0, math.inf)], ids=["no-time", "answer-that-never-came"])
    def test_operation_when_its_interval_is_impossible_then_is_a_mistake_of_the_caller(
        self, interval: tuple[float, float]
    ) -> None:
        with pytest.raises(AssertionError):
            judge([Operation("a", CREATE, DONE, *interval)], OFF)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (TopicNotFound(), NOT_FOUND),
        (NotAllowed(), CONFLICT),
        (Conflict(), CONFLICT),
        (PreconditionFailed(), PRECONDITION),
        (ExpansionAboveMaximum(), Answer.UNPROCESSABLE),
        (ServiceNotReady(), LOST),
        (MetadataError(), LOST),
    ],
    ids=lambda value: type(value).__name__,
)
def test_error_when_it_is_no_refusal_of_the_rules_then_leaves_the_outcome_open(
    error: PulsarError, answer: Answer
) -> None:
    assert Answer.of(error) is answer


RULES: dict[Rule, Callable[[TopicView, Call], Any]] = {
    ask_partitions: lambda view, call: decide_partitions(view, create=call.create),
    look_up: lambda view, _: decide_lookup(view),
    open_topic: lambda view, call: decide_open(view, by=Requester.CLIENT, create=call.create),
    create_topic: lambda view, _: decide_create_plain(view),
    create_partitioned: lambda view, call: decide_create_partitioned(view, call.count),
    expand: lambda view, call: decide_expand(view, call.count, force=call.force),
    restore: lambda view, _: decide_create_missed_partitions(view),
    delete_topic: lambda view, call: decide_delete_plain(view, force=call.force),
    delete_partitioned: lambda view, _: decide_delete_partitioned(view),
}
"""The rule of the broker for each rule of the model."""


def decided(call: Call, now: State, auto_creation: AutoCreation) -> tuple[Answer | int, State]:
    """Return what the broker's rule answers, and what its changes leave behind."""
    view = TopicView(
        call.name,
        metadata={X: PartitionedTopicMetadata(now.partitions)} if now.partitions else {},
        recorded=call.index in now.stored,
        partition_records=now.stored - {-1},
        auto_creation=EffectiveAutoCreation(
            auto_creation.allowed, partitioned=auto_creation.partitions > 0, partitions=auto_creation.partitions
        ),
    )
    try:
        decision = RULES[call.rule](view, call)
    except PulsarError as refusal:
        return Answer.of(refusal), now
    after = reduce(changed, decision.changes, now)
    if call.rule is delete_topic:  # the registry deletes what the rule allows
        after = State(now.partitions, now.stored - {call.index})
    return decision.answer if call.rule is ask_partitions else DONE, after


def changed(now: State, change: Change) -> State:
    match change:
        case CreatePartitionedMetadata(_, partitions) | SetPartitionCount(_, partitions):
            return State(partitions, now.stored)
        case CreateTopicRecord(name):
            return State(now.partitions, now.stored | {name.partition_index})
        case DeletePartitionedMetadata():
            return State(0, now.stored - set(range(now.partitions)))
    raise AssertionError(change)


CALLS = [
    Call(rule, name, count, create, force)
    for rule, name, count, create, force in product(
        RULES, (X, *map(X.partition, (0, 1, 3))), (1, 2, 4), (False, True), (False, True)
    )
]
STATES = [
    State(partitions, frozenset(stored))
    for partitions, size in product(range(4), range(5))
    for stored in combinations((-1, 0, 1, 3), size)
]


@pytest.mark.parametrize("auto_creation", POLICIES, ids=["on", "off", "partitioned"])
def test_model_agrees_with_the_rules_of_the_broker_in_every_state(auto_creation: AutoCreation) -> None:
    for before, call in product(STATES, CALLS):
        first = next(call.outcomes(before, auto_creation))
        assert first == decided(call, before, auto_creation), (before, call)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Operation], AutoCreation]:
    """Histories of the broker's rules. An operation happens at a moment of its interval, and some answers are lost."""
    auto_creation, now, history = draw(st.sampled_from(POLICIES)), NOTHING, list[Operation]()
    for moment, call in enumerate(draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=12))):
        answer, after = decided(call, now, auto_creation)
        fate = draw(st.sampled_from((answer, answer, LOST, UNCHANGED)))
        now = now if fate is UNCHANGED or (fate is LOST and draw(st.booleans())) else after
        start, end = (moment + sign * draw(st.floats(0.1, 4)) for sign in (-1, 1))
        history.append(Operation(f"c{moment}", call, fate, start, end))
    return draw(st.permutations(history)), auto_creation


@given(histories())
def test_history_of_the_broker_when_operations_overlap_then_is_accepted(
    played: tuple[list[Operation], AutoCreation],
) -> None:
    history, auto_creation = played
    assert judge(history, auto_creation) == []


@given(
    calls=st.lists(st.sampled_from(CALLS), min_size=1, max_size=12),
    auto_creation=st.sampled_from(POLICIES),
    other=st.sampled_from(EVERY_ANSWER),
)
def test_history_of_the_broker_when_its_last_answer_is_another_then_is_a_finding(
    calls: list[Call], auto_creation: AutoCreation, other: Answer | int
) -> None:
    now, history = NOTHING, list[tuple[Call, Answer | int]]()
    for call in calls:
        answer, now = decided(call, now, auto_creation)
        history.append((call, answer))
    assert judge(times(*history), auto_creation) == []
    in_use = answer is DONE and other is PRECONDITION and call.rule in (delete_topic, delete_partitioned)
    accepted = other == answer or (in_use and not call.force)
    assert bool(judge(times(*history[:-1], (call, other)), auto_creation)) is not accepted
