"""The predicates of topics: the rows of PIP-344 about what exists and may be created."""

from __future__ import annotations

import pytest

from interpulse.model.changes import CreateTopicRecord
from interpulse.model.errors import (
    NamespaceNotFound,
    NotAllowed,
    PulsarError,
    ServiceNotReady,
    TopicInconsistent,
    TopicLimitReached,
    TopicNotFound,
)
from interpulse.model.topics import Existence, TopicKind
from interpulse.rules.topic_view import (
    NamespaceStanding,
    Part,
    TopicView,
    check_consistency,
    check_namespace_exists,
    check_partition_count,
    check_single_topic_limit,
    check_topic_limit,
    existence,
    first_part,
    looked_at,
    looks_at,
    may_create,
    metadata_names,
    missing_record,
    not_found_to_open,
    topic_not_found,
)
from tests.unit.rules.topic_world import HEARTBEAT, OFF, topic, view_of


class TestExistence:
    @pytest.mark.parametrize(
        ("view", "expected"),
        [
            pytest.param(view_of("x", 3), Existence(TopicKind.PARTITIONED, 3), id="base-with-metadata"),
            pytest.param(view_of("x", 3, recorded=True), Existence(TopicKind.PARTITIONED, 3), id="base-with-both"),
            pytest.param(view_of("x", recorded=True), Existence(TopicKind.NON_PARTITIONED), id="base-with-record"),
            pytest.param(view_of("x"), Existence(TopicKind.ABSENT), id="nothing"),
            pytest.param(view_of("x-partition-1", 3), Existence(TopicKind.ABSENT), id="partition-without-record"),
            pytest.param(
                view_of("x-partition-1", 3, recorded=True), Existence(TopicKind.NON_PARTITIONED), id="partition"
            ),
            pytest.param(
                view_of("x-partition-7", 3, recorded=True), Existence(TopicKind.NON_PARTITIONED), id="orphan-partition"
            ),
            pytest.param(
                view_of("non-persistent://public/default/x-partition-1", 3),
                Existence(TopicKind.NON_PARTITIONED),
                id="non-persistent-partition-inside",
            ),
            pytest.param(
                view_of("non-persistent://public/default/x-partition-3", 3, recorded=True),
                Existence(TopicKind.ABSENT),
                id="non-persistent-partition-outside",
            ),
            pytest.param(
                view_of("non-persistent://public/default/x", recorded=True),
                Existence(TopicKind.NON_PARTITIONED),
                id="non-persistent-loaded",
            ),
            pytest.param(
                view_of(HEARTBEAT, namespace=NamespaceStanding.MISSING),
                Existence(TopicKind.NON_PARTITIONED),
                id="heartbeat",
            ),
        ],
    )
    def test_existence(self, view: TopicView, expected: Existence) -> None:
        assert existence(view) == expected


class TestMayCreate:
    """The first row that fits gives the answer."""

    @pytest.mark.parametrize(
        ("view", "expected"),
        [
            pytest.param(view_of("x", namespace=NamespaceStanding.DELETED), False, id="row1-namespace-being-deleted"),
            pytest.param(
                view_of("__change_events", namespace=NamespaceStanding.DELETED), False, id="row1-beats-system-topic"
            ),
            pytest.param(view_of("x "), False, id="row2-name-with-a-trailing-blank"),
            pytest.param(view_of("__change_events", auto_creation=OFF), True, id="row4-system-topic"),
            pytest.param(
                view_of("__change_events", auto_creation=OFF, system_topics_enabled=False),
                False,
                id="row4-system-topics-off",
            ),
            pytest.param(view_of("x-partition-1", 3, deleted=True), False, id="row5-partition-being-deleted"),
            pytest.param(view_of("x-partition-1", 3, auto_creation=OFF), True, id="row6-inside-whatever-the-policy"),
            pytest.param(view_of("x-partition-3", 3), False, id="row6-outside-whatever-the-policy"),
            pytest.param(view_of("x-partition-1"), True, id="row7-partition-name-without-metadata"),
            pytest.param(view_of("x"), True, id="row7-allowed"),
            pytest.param(view_of("x", auto_creation=OFF), False, id="row7-not-allowed"),
        ],
    )
    def test_may_create(self, view: TopicView, expected: bool) -> None:
        assert may_create(view) is expected

    def test_may_create_when_a_role_suspends_it_then_not_ready_only_where_the_policy_allows_it(self) -> None:
        with pytest.raises(ServiceNotReady, match="standby"):
            may_create(view_of("x", creation_suspended="standby"))
        assert not may_create(view_of("x", auto_creation=OFF, creation_suspended="standby"))
        assert may_create(view_of("x-partition-1", 3, creation_suspended="standby"))
        assert may_create(view_of("__change_events", creation_suspended="standby"))


class TestMetadataNames:
    @pytest.mark.parametrize(
        ("local", "expected"),
        [
            ("x", ["x"]),
            ("x-partition-1", ["x-partition-1", "x"]),
            ("x-partition-01", ["x-partition-01", "x"]),
            ("a-partition-1-partition-2", ["a-partition-1-partition-2", "a-partition-1", "a"]),
            ("-partition-abc", ["-partition-abc"]),
        ],
    )
    def test_metadata_names(self, local: str, expected: list[str]) -> None:
        assert [name.local_name for name in metadata_names(topic(local))] == expected

    @pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
    def test_first_part_is_of_the_same_namespace(self, domain: str) -> None:
        assert first_part(topic(f"{domain}://t/ns/a-partition-1-partition-2")) == topic(f"{domain}://t/ns/a")


def test_rule_declares_what_it_looks_at() -> None:
    @looks_at(Part.PARTITION_RECORDS, Part.RELATED_METADATA)
    def rule(view: TopicView) -> None: ...

    assert looked_at(rule) == (Part.PARTITION_RECORDS, Part.RELATED_METADATA)
    assert looked_at(existence) == ()


X = "persistent://public/default/x"


@pytest.mark.parametrize(
    ("view", "kind", "sentence"),
    [
        pytest.param(view_of("x"), TopicNotFound, f"Topic {X} not found", id="nothing"),
        pytest.param(
            view_of("x", 3),
            TopicNotFound,
            f"Topic {X} not found: it is partitioned, name one of its 3 partitions",
            id="partitioned",
        ),
        pytest.param(
            view_of("x-partition-3", 3),
            TopicNotFound,
            f"Topic {X}-partition-3 not found: {X} has 3 partitions",
            id="outside",
        ),
        pytest.param(view_of("x-partition-1", 3), TopicNotFound, f"Topic {X}-partition-1 not found", id="lost"),
        pytest.param(
            view_of("x", namespace=NamespaceStanding.MISSING),
            NamespaceNotFound,
            "Namespace not found: public/default",
            id="no-namespace",
        ),
    ],
)
def test_topic_not_found_when_made_then_says_what_is_there(
    view: TopicView, kind: type[PulsarError], sentence: str
) -> None:
    error = topic_not_found(view)
    assert (type(error), str(error)) == (kind, sentence)


@pytest.mark.parametrize(
    ("view", "kind", "sentence"),
    [
        pytest.param(view_of("x"), TopicNotFound, f"Topic {X} not found", id="nothing"),
        pytest.param(
            view_of("x", 3),
            TopicNotFound,
            f"Topic {X} not found: it is partitioned, name one of its 3 partitions",
            id="partitioned",
        ),
        pytest.param(
            view_of("x-partition-0"),
            TopicNotFound,
            f"Partitioned Topic not found: {X}-partition-0 has zero partitions",
            id="partition-of-nothing",
        ),
        pytest.param(
            view_of("x-partition-3", 3),
            TopicNotFound,
            f"Topic partitions were not yet created: {X}-partition-3 not found, {X} has 3 partitions",
            id="outside",
        ),
        pytest.param(view_of("x-partition-2", 3), TopicNotFound, f"Topic {X}-partition-2 not found", id="lost"),
        pytest.param(
            view_of("x-partition-0", namespace=NamespaceStanding.MISSING),
            NamespaceNotFound,
            "Namespace not found: public/default",
            id="no-namespace",
        ),
    ],
)
def test_topic_not_found_when_opened_then_says_what_its_base_lacks(
    view: TopicView, kind: type[PulsarError], sentence: str
) -> None:
    error = not_found_to_open(view)
    assert (type(error), str(error)) == (kind, sentence)


def test_namespace_when_of_health_checks_then_need_not_exist() -> None:
    check_namespace_exists(TopicView(topic(HEARTBEAT), NamespaceStanding.MISSING))
    with pytest.raises(NamespaceNotFound):
        check_namespace_exists(view_of("x", namespace=NamespaceStanding.MISSING))


@pytest.mark.parametrize(("count", "maximum"), [(0, 0), (-1, 0), (11, 10)])
def test_partition_count_when_outside_then_refused_as_the_caller_wants(count: int, maximum: int) -> None:
    with pytest.raises(NotAllowed, match=f"not {count}$"):
        check_partition_count(view_of("x", partitions_max=maximum), count, refusal=NotAllowed)


@pytest.mark.parametrize(("count", "maximum"), [(1, 0), (10**9, 0), (10, 10)])
def test_partition_count_when_within_then_passes(count: int, maximum: int) -> None:
    check_partition_count(view_of("x", partitions_max=maximum), count)


def test_topic_limit_when_reached_then_says_room_setting_and_wish() -> None:
    with pytest.raises(TopicLimitReached, match=r"public/default: room for 2 more \(maxTopicsPerNamespace\), not 3$"):
        check_topic_limit(view_of("x", topics_left=2), 3)
    check_topic_limit(view_of("x", topics_left=3), 3)
    check_topic_limit(view_of("x"), 10**9)
    check_topic_limit(view_of("__change_events", topics_left=0), 3)


def test_single_topic_limit_when_topic_is_not_stored_then_does_not_count() -> None:
    check_single_topic_limit(view_of("non-persistent://public/default/x", topics_left=0))
    check_single_topic_limit(view_of("x", topics_left=1))
    with pytest.raises(NotAllowed) as refusal:
        check_single_topic_limit(view_of("x", topics_left=0))
    assert refusal.type is NotAllowed  # 22 and 409, where the limit of several topics has 412


def test_record_when_there_or_never_stored_then_is_not_missing() -> None:
    assert missing_record(view_of("x", recorded=True)) == ()
    assert missing_record(view_of("non-persistent://public/default/x")) == ()
    assert missing_record(view_of("x")) == (CreateTopicRecord(topic("x")),)


class TestConsistency:
    """PIP-414: a name must agree with the partition metadata of its base."""

    @pytest.mark.parametrize(
        ("view", "message"),
        [
            pytest.param(view_of("x-partition-0"), "Partition metadata not found", id="pip414-row1"),
            pytest.param(view_of("x-partition-2", 3), None, id="pip414-row2"),
            pytest.param(view_of("x-partition-3", 3), "has 3 partitions, 0 to 2", id="pip414-row3"),
            pytest.param(view_of("x"), None, id="pip414-row4"),
            pytest.param(view_of("x", 3), "Found partitioned metadata for non-partitioned topic", id="pip414-row5"),
            pytest.param(view_of(f"{HEARTBEAT}-partition-0"), None, id="pip414-row6"),
            pytest.param(view_of("__change_events-partition-0"), "Partition metadata not found", id="system-topic"),
            pytest.param(view_of("x-partition-01", 3), None, id="not-a-partition-name"),
            pytest.param(view_of("x-partition-0-DLQ", 3), None, id="dead-letter-topic-of-a-partition"),
        ],
    )
    def test_consistency(self, view: TopicView, message: str | None) -> None:
        if message is None:
            check_consistency(view)
            return
        with pytest.raises(TopicInconsistent, match=message) as refusal:
            check_consistency(view)
        assert str(view.name) in str(refusal.value)
