"""The answers that the console shows for a name agree with the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from interpulse.console.pages.parts.rule_answers import Ground, ground, ways
from interpulse.model.changes import AskRemotes
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName
from interpulse.model.topics import PartitionedTopicMetadata, Requester, TopicKind
from interpulse.rules.effective_policies import EffectiveAutoCreation
from interpulse.rules.topic_view import NamespaceStanding, TopicView, existence, may_create
from interpulse.rules.topics import _may_create_for, decide_lookup, decide_open, decide_partitions

POLICY = "namespace a/b: allowAutoTopicCreation false"
NAMES = (
    "persistent://a/b/c",
    "non-persistent://a/b/c",
    "persistent://a/b/c-partition-0",
    "persistent://a/b/c-partition-7",
    "non-persistent://a/b/c-partition-1",
    "persistent://a/b/__change_events",
    "persistent://a/b/c-partition-0-partition-1",
    "persistent://pulsar/127.0.0.1:8080/healthcheck",
)


def view_of(name: str, **values: Any) -> TopicView:
    return replace(TopicView(TopicName.parse(name)), **values)


@some.composite
def views(draw: some.DrawFn) -> TopicView:
    name = TopicName.parse(draw(some.sampled_from(NAMES)))
    partitions = draw(some.sampled_from([0, 1, 4]))
    metadata = PartitionedTopicMetadata(partitions, deleted=draw(some.booleans())) if partitions else None
    allowed, partitioned, by_replicator = (draw(some.booleans()) for _ in range(3))
    creation = EffectiveAutoCreation(allowed, partitioned, 3, by_replicator)
    return TopicView(
        name,
        namespace=draw(some.sampled_from(NamespaceStanding)),
        metadata={} if metadata is None else {name.base: metadata},
        recorded=draw(some.booleans()),
        partition_records=frozenset(draw(some.sets(some.integers(0, 4)))),
        auto_creation=creation,
        topics_left=draw(some.sampled_from([None, 0, 2, 100])),
        remotes_to_ask=draw(some.sampled_from([(), ("west",)])),
        domain_enabled=draw(some.booleans()),
        system_topics_enabled=draw(some.booleans()),
    )


@given(views())
def test_ground_allows_what_the_rules_allow(view: TopicView) -> None:
    """The explanation repeats the order of the rules; it must never disagree with them."""
    missing = existence(view).kind is TopicKind.ABSENT
    assert ground(view, POLICY).allows == (not missing or may_create(view))
    by_replicator = ground(view, POLICY, by=Requester.REPLICATOR).allows
    assert by_replicator == (not missing or _may_create_for(view, Requester.REPLICATOR))


@given(views())
def test_ways_refuse_what_the_rules_refuse(view: TopicView) -> None:
    told = {way.who: way for way in ways(view, POLICY)}
    for who, ask in (
        ("Lookup", lambda: decide_lookup(view)),
        ("Partition metadata", lambda: decide_partitions(view, create=True)),
        ("Replicator", lambda: decide_open(view, by=Requester.REPLICATOR, create=True)),
    ):
        assert (told[who].mood == "bad") == refused(ask), who
    assert told["Producer"].mood == told["Consumer"].mood
    assert all(bool(way.error) == (way.mood == "bad") for way in told.values())
    assert all(way.rule and way.answer for way in told.values())


def refused(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except PulsarError:
        return True
    return False


def client(view: TopicView) -> tuple[str, str]:
    (way,) = [way for way in ways(view, POLICY) if way.who == "Producer"]
    return way.mood, way.answer


FORBIDDEN = EffectiveAutoCreation(allowed=False)
TWO = {TopicName.parse("persistent://a/b/c"): PartitionedTopicMetadata(2)}


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("persistent://a/b/c", {"recorded": True}, ("good", "opens the topic")),
        ("persistent://a/b/c", {}, ("warn", "creates the topic and opens it")),
        ("persistent://a/b/c", {"auto_creation": FORBIDDEN}, ("bad", "Topic persistent://a/b/c not found")),
        (
            "persistent://a/b/c",
            {"auto_creation": EffectiveAutoCreation(True, True, 3)},
            ("warn", "creates a topic of 3 partitions and opens each"),
        ),
        (
            "persistent://a/b/c",
            {"metadata": TWO, "partition_records": frozenset({0, 1})},
            ("good", "opens 2 partitions"),
        ),
        (
            "persistent://a/b/c",
            {"metadata": TWO, "partition_records": frozenset({0}), "auto_creation": FORBIDDEN},
            ("warn", "opens 2 partitions, 1 of which have no record and are created"),
        ),
        (
            "persistent://a/b/c-partition-1",
            {"metadata": TWO, "auto_creation": FORBIDDEN},
            ("warn", "creates the topic and opens it"),
        ),
        (
            "persistent://a/b/c-partition-2",
            {"metadata": TWO},
            ("bad", "Topic persistent://a/b/c-partition-2 not found: persistent://a/b/c has 2 partitions"),
        ),
        (
            "persistent://a/b/c",
            {"remotes_to_ask": ("west",)},
            ("warn", "asks west first: an existing topic is created with its partition count"),
        ),
    ],
)
def test_client_at_the_door(name: str, values: dict[str, object], expected: tuple[str, str]) -> None:
    assert client(view_of(name, **values)) == expected


def test_ground_when_a_policy_decides_then_names_its_level() -> None:
    view = view_of("persistent://a/b/c", auto_creation=FORBIDDEN)
    told = ground(view, POLICY)
    assert (told.allows, told.policy) == (False, "namespace a/b: allowAutoTopicCreation false")
    assert ground(view_of("persistent://a/b/c", recorded=True), POLICY) == Ground(
        True, "it exists: it has a record (PIP-344, row 2)"
    )


def test_ask_remotes_is_no_refusal() -> None:
    view = view_of("persistent://a/b/c", remotes_to_ask=("west",))
    assert isinstance(decide_partitions(view, create=True), AskRemotes)
