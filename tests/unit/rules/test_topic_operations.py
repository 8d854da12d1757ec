"""What operators may create, expand and delete, in which state, and what that changes.

The same rows with their statuses, through every front end, are in `tests/front_ends`; what holds for every rule of
topics is in `test_topics_laws`.
"""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.changes import (
    CreatePartitionedMetadata,
    CreateTopicRecord,
    DeletePartitionedMetadata,
    SetPartitionCount,
)
from interpulse.model.errors import (
    AlreadyExists,
    Conflict,
    ExpansionAboveMaximum,
    NamespaceNotFound,
    PartitionedTopicNotFound,
    PreconditionFailed,
    PulsarError,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.rules.decision import Decision
from interpulse.rules.topic_operations import (
    decide_create_missed_partitions,
    decide_create_partitioned,
    decide_create_plain,
    decide_delete_partitioned,
    decide_delete_plain,
    decide_expand,
)
from interpulse.rules.topic_view import NamespaceStanding, TopicView
from tests.unit.rules.topic_world import (
    outcome,
    topic,
    view_of,
)


def topic_of(change: Any) -> TopicName:
    name = change.topic
    assert isinstance(name, TopicName)
    return name


class TestCreatePartitioned:
    def test_create_stores_metadata_and_every_partition_at_once(self) -> None:
        decision = decide_create_partitioned(view_of("x"), 2, properties={"k": "v"})
        assert decision.changes == (
            CreatePartitionedMetadata(topic("x"), 2, {"k": "v"}),
            CreateTopicRecord(topic("x-partition-0")),
            CreateTopicRecord(topic("x-partition-1")),
        )

    def test_create_non_persistent_stores_metadata_only(self) -> None:
        name = topic("non-persistent://public/default/x")
        assert decide_create_partitioned(TopicView(name), 2).changes == (CreatePartitionedMetadata(name, 2),)

    @pytest.mark.parametrize(
        ("view", "partitions", "status"),
        [
            pytest.param(view_of("x", namespace=NamespaceStanding.MISSING), 1, 404, id="namespace-missing"),
            pytest.param(view_of("x", namespace=NamespaceStanding.DELETED), 1, 404, id="namespace-being-deleted"),
            pytest.param(view_of("x", namespace=NamespaceStanding.NOT_SERVED), 1, 412, id="not-our-namespace"),
            pytest.param(view_of("x-partition-0"), 1, 412, id="partition-name"),
            pytest.param(view_of("x-partition-abc"), 1, 412, id="mark-anywhere"),
            pytest.param(view_of("non-persistent://public/default/x-partition-0"), 1, 412, id="non-persistent-too"),
            pytest.param(view_of("persistent://pulsar/system/__transaction_log_1"), 1, 400, id="transaction-internal"),
            pytest.param(view_of("x "), 1, 412, id="trailing-blank"),
            pytest.param(view_of("x"), 0, 406, id="none"),
            pytest.param(view_of("x"), -1, 406, id="negative"),
            pytest.param(view_of("x", partitions_max=2), 3, 406, id="above-the-maximum"),
            pytest.param(view_of("x", topics_left=2), 3, 412, id="topic-limit"),
            pytest.param(view_of("x", recorded=True), 1, 409, id="plain-topic-exists"),
            pytest.param(view_of("x", 3, partition_records=frozenset({0, 1, 2})), 3, 409, id="exists"),
            pytest.param(view_of("x", 3, topics_left=2), 3, 412, id="topic-limit-before-existence"),
            pytest.param(view_of("x", partition_records=frozenset({0, 4})), 4, 409, id="stored-partition-outside"),
        ],
    )
    def test_create_when_refused(self, view: TopicView, partitions: int, status: int) -> None:
        with pytest.raises(PulsarError) as refusal:
            decide_create_partitioned(view, partitions)
        assert refusal.value.http_status == status

    def test_create_after_the_metadata_was_lost_keeps_stored_partitions(self) -> None:
        decision = decide_create_partitioned(view_of("x", partition_records=frozenset({1})), 3)
        assert [topic_of(change).local_name for change in decision.changes] == ["x", "x-partition-0", "x-partition-2"]

    def test_create_when_a_stored_partition_is_outside_names_the_least_count(self) -> None:
        with pytest.raises(Conflict, match=r"up to 4; create it with at least 5"):
            decide_create_partitioned(view_of("x", partition_records=frozenset({4})), 2)

    def test_create_local_replica_when_it_is_there_restores_what_it_lacks(self) -> None:
        decision = decide_create_partitioned(view_of("x", 3, partition_records=frozenset({0, 2})), 3, local_only=True)
        assert decision.changes == (CreateTopicRecord(topic("x-partition-1")),)

    def test_create_with_one_partition(self) -> None:
        decision = decide_create_partitioned(view_of("x"), 1)
        assert decision.changes == (CreatePartitionedMetadata(topic("x"), 1), CreateTopicRecord(topic("x-partition-0")))

    @pytest.mark.parametrize(("partitions", "refused"), [(3, False), (2, True), (4, True)])
    def test_create_local_replica_when_it_is_there_demands_the_same_count(self, partitions: int, refused: bool) -> None:
        view = view_of("x", 3, partition_records=frozenset({0, 1, 2}))
        expected = Conflict if refused else None
        assert outcome(decide_create_partitioned, view, partitions, local_only=True) is expected

    def test_create_local_replica_while_it_is_being_deleted_is_refused(self) -> None:
        view = view_of("x", 3, deleted=True, partition_records=frozenset({0, 1, 2}))
        assert outcome(decide_create_partitioned, view, 3, local_only=True) is AlreadyExists


class TestCreatePlain:
    def test_create_stores_the_record_with_its_properties(self) -> None:
        decision = decide_create_plain(view_of("x"), properties={"k": "v"})
        assert decision.changes == (CreateTopicRecord(topic("x"), {"k": "v"}),)

    @pytest.mark.parametrize(
        ("view", "status"),
        [
            pytest.param(view_of("x", recorded=True), 409, id="exists"),
            pytest.param(view_of("x", 3), 409, id="partitioned-topic-exists"),
            pytest.param(view_of("x", namespace=NamespaceStanding.MISSING), 404, id="namespace-missing"),
            pytest.param(view_of("x", topics_left=0), 409, id="topic-limit"),
            pytest.param(view_of("persistent://pulsar/system/__transaction_log_1"), 400, id="transaction-internal"),
            pytest.param(view_of("x "), 412, id="trailing-blank"),
            pytest.param(view_of("x-partition-1"), 412, id="number-without-metadata"),
            pytest.param(view_of("x-partition-01"), 412, id="number-as-java-reads-it"),
            pytest.param(view_of("x-partition-+1"), 412, id="number-with-plus"),
            pytest.param(view_of("x-partition--1"), 412, id="number-below-zero"),
            pytest.param(view_of(f"x-partition-{2**63 - 1}"), 412, id="number-of-64-bits"),
            pytest.param(view_of("x-partition-5", 3), 412, id="number-outside"),
            pytest.param(view_of("x-partition-3", 3), 412, id="number-just-outside"),
            pytest.param(view_of("x-partition-1", 3, recorded=True), 409, id="partition-exists"),
            pytest.param(view_of("a-partition-1-partition-2"), 409, id="inconsistent"),
            pytest.param(view_of("-partition-01"), 412, id="nothing-before-the-mark"),
        ],
    )
    def test_create_when_refused(self, view: TopicView, status: int) -> None:
        with pytest.raises(PulsarError) as refusal:
            decide_create_plain(view)
        assert refusal.value.http_status == status

    @pytest.mark.parametrize(
        ("view", "words"),
        [
            (view_of("x-partition-1"), "if there isn't a partitioned topic x created. Create persistent://"),
            (view_of("x-partition-3", 3), "followed by a number smaller than number of partition"),
        ],
    )
    def test_create_when_refused_for_its_number_then_the_remedy_fits(self, view: TopicView, words: str) -> None:
        with pytest.raises(PreconditionFailed, match=words):
            decide_create_plain(view)

    @pytest.mark.parametrize(
        "local", ["x-partition-", "x-partition-abc", "x-partition-1&", "x-partition-0-DLQ", f"x-partition-{2**63}"]
    )
    def test_create_when_what_follows_is_no_number(self, local: str) -> None:
        assert len(decide_create_plain(view_of(local)).changes) == 1

    def test_create_restores_a_lost_partition(self) -> None:
        assert decide_create_plain(view_of("x-partition-1", 3)).changes == (CreateTopicRecord(topic("x-partition-1")),)


class TestCreateMissedPartitions:
    def test_missed_partitions_come_back(self) -> None:
        decision = decide_create_missed_partitions(view_of("x", 3, partition_records=frozenset({1})))
        assert [topic_of(change).partition_index for change in decision.changes] == [0, 2]

    @pytest.mark.parametrize(
        ("view", "refusal"),
        [
            pytest.param(view_of("x"), PartitionedTopicNotFound, id="absent"),
            pytest.param(view_of("x", recorded=True), PartitionedTopicNotFound, id="plain"),
            pytest.param(view_of("x", 3, deleted=True), PartitionedTopicNotFound, id="being-deleted"),
            pytest.param(view_of("x-partition-0", 3), PreconditionFailed, id="partition-name"),
        ],
    )
    def test_missed_partitions_when_refused(self, view: TopicView, refusal: type[PulsarError]) -> None:
        assert outcome(decide_create_missed_partitions, view) is refusal


class TestExpand:
    def test_expand_creates_the_new_partitions_with_the_new_count(self) -> None:
        decision = decide_expand(view_of("x", 2, partition_records=frozenset({0, 1})), 4)
        assert decision.changes == (
            CreateTopicRecord(topic("x-partition-2")),
            CreateTopicRecord(topic("x-partition-3")),
            SetPartitionCount(topic("x"), 4),
        )

    @pytest.mark.parametrize(
        ("view", "partitions", "refusal"),
        [
            pytest.param(view_of("x-partition-0", 2), 4, PreconditionFailed, id="partition-name"),
            pytest.param(view_of("x", recorded=True), 4, Conflict, id="plain"),
            pytest.param(view_of("x"), 4, Conflict, id="absent"),
            pytest.param(view_of("x", 2, deleted=True), 4, Conflict, id="being-deleted"),
            pytest.param(view_of("x", 3), 2, ExpansionAboveMaximum, id="fewer"),
            pytest.param(view_of("x", 2, partitions_max=3), 4, ExpansionAboveMaximum, id="above-the-maximum"),
            pytest.param(view_of("x", 2, partition_records=frozenset({0, 1, 3})), 4, Conflict, id="unexpected"),
            pytest.param(view_of("x", 2, namespace=NamespaceStanding.NOT_SERVED), 4, PreconditionFailed, id="not-ours"),
        ],
    )
    def test_expand_when_refused(self, view: TopicView, partitions: int, refusal: type[PulsarError]) -> None:
        assert outcome(decide_expand, view, partitions) is refusal

    def test_expand_when_forced_takes_over_stored_partitions(self) -> None:
        decision = decide_expand(view_of("x", 2, partition_records=frozenset({0, 1, 3})), 4, force=True)
        assert decision.changes == (CreateTopicRecord(topic("x-partition-2")), SetPartitionCount(topic("x"), 4))

    def test_expand_to_the_present_count_changes_nothing(self) -> None:
        assert decide_expand(view_of("x", 2, partition_records=frozenset({0, 1})), 2) == Decision(None)

    @pytest.mark.parametrize("partitions", [3, 4])
    def test_expand_restores_partitions_whose_record_is_missing(self, partitions: int) -> None:
        decision = decide_expand(view_of("x", 3, partition_records=frozenset({0, 2})), partitions)
        created = [change.topic.partition_index for change in decision.changes if isinstance(change, CreateTopicRecord)]
        assert created == [1, 3][: partitions - 2]


class TestDelete:
    @pytest.mark.parametrize("marked", [False, True], ids=["whole", "left-half-deleted"])
    def test_delete_partitioned_removes_the_metadata_and_names_the_partitions(self, marked: bool) -> None:
        decision = decide_delete_partitioned(view_of("x", 3, deleted=marked))
        assert decision == Decision(3, (DeletePartitionedMetadata(topic("x")),))

    @pytest.mark.parametrize(
        ("view", "refusal"),
        [
            pytest.param(view_of("x-partition-0", 3), PreconditionFailed, id="partition-name"),
            pytest.param(view_of("x", recorded=True), Conflict, id="plain"),
            pytest.param(view_of("x"), PartitionedTopicNotFound, id="absent"),
            pytest.param(view_of("x", namespace=NamespaceStanding.MISSING), NamespaceNotFound, id="namespace-missing"),
        ],
    )
    def test_delete_partitioned_when_refused(self, view: TopicView, refusal: type[PulsarError]) -> None:
        assert outcome(decide_delete_partitioned, view) is refusal

    @pytest.mark.parametrize(
        ("view", "force", "refusal"),
        [
            pytest.param(view_of("x", recorded=True), False, None, id="plain"),
            pytest.param(view_of("x-partition-1", 3, recorded=True), False, None, id="partition"),
            pytest.param(view_of("x-partition-7", 3, recorded=True), False, None, id="orphan-partition"),
            pytest.param(view_of("x-partition-0", recorded=True), False, None, id="metadata-lost"),
            pytest.param(view_of("x"), False, TopicNotFound, id="absent"),
            pytest.param(view_of("x", 3), True, Conflict, id="partitioned"),
            pytest.param(view_of("x", 3, recorded=True), False, Conflict, id="plain-and-partitioned"),
            pytest.param(view_of("x", 3, recorded=True), True, None, id="plain-and-partitioned-forced"),
            pytest.param(
                view_of("x", namespace=NamespaceStanding.MISSING), False, NamespaceNotFound, id="namespace-missing"
            ),
            pytest.param(
                view_of("x", namespace=NamespaceStanding.DELETED, recorded=True), False, None, id="with-its-namespace"
            ),
        ],
    )
    def test_delete_plain(self, view: TopicView, force: bool, refusal: Any) -> None:
        assert outcome(decide_delete_plain, view, force=force) is refusal
