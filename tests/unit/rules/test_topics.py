"""The tables of PIP-344 and PIP-414 next to the code that is these tables.

Ids name the row: ``pip344-row5`` is row 5 of the new behaviour of the partition metadata query. Laws of all
rules stand in `test_topics_laws`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from interpulse.model.changes import (
    AskRemotes,
    CreatePartitionedMetadata,
    CreateTopicRecord,
    Decision,
    DeletePartitionedMetadata,
    SetPartitionCount,
)
from interpulse.model.errors import (
    AlreadyExists,
    Conflict,
    ExpansionAboveMaximum,
    MetadataError,
    NamespaceNotFound,
    NotAllowed,
    PartitionedTopicNotFound,
    PreconditionFailed,
    ProducerBusy,
    PulsarError,
    ServiceNotReady,
    TopicInconsistent,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.effective_policies import EffectiveAutoCreation
from interpulse.rules.topic_view import NamespaceStanding, TopicView
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
from tests.unit.rules.topic_world import (
    ADMIN,
    CLIENT,
    OFF,
    PARTITIONED_2,
    PLAIN,
    REPLICATOR,
    decided,
    outcome,
    refused,
    small_world,
    topic,
    view_of,
)


class TestPartitions:
    """PIP-344: what a partition metadata query answers and creates."""

    @pytest.mark.parametrize(
        ("view", "create", "answer", "changes"),
        [
            pytest.param(view_of("x", recorded=True), True, 0, (), id="pip344-row1-create"),
            pytest.param(view_of("x", recorded=True, auto_creation=OFF), False, 0, (), id="pip344-row1"),
            pytest.param(view_of("x", 2), True, 2, (), id="pip344-row2-create"),
            pytest.param(view_of("x", 2, auto_creation=OFF), False, 2, (), id="pip344-row2"),
            pytest.param(view_of("x-partition-1", auto_creation=PARTITIONED_2), True, 0, (), id="pip344-row3"),
            pytest.param(view_of("x"), True, 0, (), id="pip344-row4"),
            pytest.param(
                view_of("x", auto_creation=EffectiveAutoCreation(allowed=True, partitions=2)),
                True,
                0,
                (),
                id="pip344-row4-a-count-without-meaning",
            ),
            pytest.param(
                view_of("x", auto_creation=PARTITIONED_2),
                True,
                2,
                (CreatePartitionedMetadata(topic("x"), 2),),
                id="pip344-row5",
            ),
            pytest.param(
                view_of("x", remote_partitions=4),
                True,
                4,
                (CreatePartitionedMetadata(topic("x"), 4),),
                id="pip344-row6-partitioned-elsewhere",
            ),
            pytest.param(
                view_of("x", auto_creation=PARTITIONED_2, remote_partitions=0),
                True,
                0,
                (),
                id="pip344-row6-one-topic-elsewhere",
            ),
            pytest.param(view_of("x"), False, TopicNotFound, (), id="pip344-row7-not-asked-to-create"),
            pytest.param(view_of("x", auto_creation=OFF), True, TopicNotFound, (), id="pip344-row7-not-allowed"),
        ],
    )
    def test_table_of_the_new_behaviour(self, view: TopicView, create: bool, answer: Any, changes: Any) -> None:
        assert outcome(decide_partitions, view, create=create) == answer
        if not isinstance(answer, type):
            decision = decide_partitions(view, create=create)
            assert isinstance(decision, Decision)
            assert decision.changes == changes

    @pytest.mark.parametrize(
        ("view", "creating", "asking"),
        [
            pytest.param(view_of("x-partition-1"), 0, TopicNotFound, id="partition-of-nothing"),
            pytest.param(view_of("x-partition-1", 3, recorded=True), 0, 0, id="partition-inside"),
            pytest.param(view_of("x-partition-3", 3), TopicNotFound, TopicNotFound, id="partition-outside"),
            pytest.param(view_of("x-partition-1", 3), 0, TopicNotFound, id="partition-record-lost"),
            pytest.param(
                view_of("non-persistent://public/default/x-partition-1", 3), 0, 0, id="non-persistent-partition"
            ),
            pytest.param(
                view_of("x", namespace=NamespaceStanding.DELETED), TopicNotFound, TopicNotFound, id="being-deleted"
            ),
        ],
    )
    def test_partitions_when_only_part_is_there(self, view: TopicView, creating: Any, asking: Any) -> None:
        assert outcome(decide_partitions, view, create=True) == creating
        assert outcome(decide_partitions, view, create=False) == asking

    @pytest.mark.parametrize("policy", [PLAIN, PARTITIONED_2])
    @pytest.mark.parametrize("name", ["x", "x-partition-1"])
    def test_partitions_when_the_namespace_is_missing(self, name: str, policy: EffectiveAutoCreation) -> None:
        view = view_of(name, auto_creation=policy, namespace=NamespaceStanding.MISSING)
        assert outcome(decide_partitions, view, create=True) is NamespaceNotFound

    @pytest.mark.parametrize(
        ("given", "refusal"),
        [
            pytest.param({"namespace": NamespaceStanding.MISSING}, NamespaceNotFound, id="namespace-missing"),
            pytest.param({"namespace": NamespaceStanding.NOT_SERVED}, MetadataError, id="not-our-namespace"),
            pytest.param({"partitions_max": 1}, NotAllowed, id="default-above-the-maximum"),
            pytest.param({"topics_left": 1}, NotAllowed, id="topic-limit"),
        ],
    )
    def test_partitions_when_they_cannot_be_created(self, given: dict[str, Any], refusal: type[PulsarError]) -> None:
        view = view_of("x", auto_creation=PARTITIONED_2, **given)
        assert outcome(decide_partitions, view, create=True) is refusal

    def test_permanent_failures_are_final_for_clients(self) -> None:
        """Clients of the C++ family ask again for 30 s on ServiceNotReady (6); they give up at once on 22."""
        assert (NotAllowed.wire_code, NotAllowed.http_status) == (22, 409)

    def test_refusal_names_the_topic(self) -> None:
        with pytest.raises(TopicNotFound, match="persistent://public/default/x not found"):
            decide_partitions(view_of("x"), create=False)


class TestWhatEachCommandSees:
    """The same states seen by a metadata query (creating, not creating) and by PRODUCER or SUBSCRIBE."""

    @pytest.mark.parametrize(
        ("view", "creating", "asking", "opening"),
        [
            pytest.param(view_of("x"), 0, TopicNotFound, "created", id="nothing-auto-on"),
            pytest.param(
                view_of("x", auto_creation=OFF), TopicNotFound, TopicNotFound, TopicNotFound, id="nothing-auto-off"
            ),
            pytest.param(view_of("x-partition-0"), 0, TopicNotFound, TopicInconsistent, id="no-such-partition-auto-on"),
            pytest.param(
                view_of("x-partition-0", auto_creation=OFF),
                TopicNotFound,
                TopicNotFound,
                TopicNotFound,
                id="no-such-partition-auto-off",
            ),
            pytest.param(view_of("x", recorded=True), 0, 0, "ok", id="plain-topic"),
            pytest.param(view_of("x", 3), 3, 3, TopicInconsistent, id="partitioned-base-auto-on"),
            pytest.param(view_of("x", 3, auto_creation=OFF), 3, 3, TopicNotFound, id="partitioned-base-auto-off"),
            pytest.param(view_of("x-partition-2", 3, recorded=True), 0, 0, "ok", id="partition"),
            pytest.param(view_of("x-partition-3", 3), TopicNotFound, TopicNotFound, TopicNotFound, id="outside"),
            pytest.param(view_of("x-partition-1", 3), 0, TopicNotFound, "created", id="record-lost-auto-on"),
            pytest.param(
                view_of("x-partition-1", 3, auto_creation=OFF), 0, TopicNotFound, "created", id="record-lost-auto-off"
            ),
            pytest.param(view_of("x-partition-0", recorded=True), 0, 0, TopicInconsistent, id="metadata-lost"),
            pytest.param(
                view_of("x", auto_creation=OFF, partition_records=frozenset({0})),
                TopicNotFound,
                TopicNotFound,
                TopicNotFound,
                id="metadata-lost-base-auto-off",
            ),
            pytest.param(view_of("x", 3, recorded=True), 3, 3, TopicInconsistent, id="plain-and-partitioned"),
            pytest.param(view_of("x-partition-7", 3, recorded=True), 0, 0, TopicInconsistent, id="orphan-partition"),
        ],
    )
    def test_state(self, view: TopicView, creating: Any, asking: Any, opening: Any) -> None:
        assert outcome(decide_partitions, view, create=True) == creating
        assert outcome(decide_partitions, view, create=False) == asking
        for by in (CLIENT, ADMIN):
            if isinstance(opening, type):
                assert outcome(decide_open, view, by=by, create=True) is opening
            else:
                created = (CreateTopicRecord(view.name),) if opening == "created" else ()
                assert decide_open(view, by=by, create=True) == Decision(None, created)

    @pytest.mark.parametrize("auto_creation", [PLAIN, OFF])
    @pytest.mark.parametrize(
        ("index", "x", "expected"), [(0, 0, TopicInconsistent), (3, 3, TopicInconsistent), (1, 3, None)]
    )
    def test_non_persistent_partition_always_reaches_the_consistency_check(
        self, index: int, x: int, expected: Any, auto_creation: EffectiveAutoCreation
    ) -> None:
        view = view_of(f"non-persistent://public/default/x-partition-{index}", x, auto_creation=auto_creation)
        assert outcome(decide_open, view, by=CLIENT, create=True) == expected

    def test_non_persistent_base_name_without_auto_creation_is_for_operators_only(self) -> None:
        view = view_of("non-persistent://public/default/x", auto_creation=OFF)
        assert outcome(decide_open, view, by=CLIENT, create=True) is TopicNotFound
        assert outcome(decide_open, view, by=ADMIN, create=True) is None


class TestHttpLookup:
    """HTTP lookup names a broker for what exists or may be created; nothing is looked up for any other name."""

    @pytest.mark.parametrize(
        ("view", "expected"),
        [
            pytest.param(view_of("x"), None, id="nothing-auto-on"),
            pytest.param(view_of("x", auto_creation=OFF), TopicNotFound, id="nothing-auto-off"),
            pytest.param(view_of("x-partition-0"), None, id="no-such-partition-auto-on"),
            pytest.param(view_of("x-partition-0", auto_creation=OFF), TopicNotFound, id="no-such-partition-auto-off"),
            pytest.param(view_of("x", 3, auto_creation=OFF), None, id="partitioned"),
            pytest.param(view_of("x-partition-3", 3), TopicNotFound, id="outside"),
            pytest.param(view_of("x-partition-1", 3, auto_creation=OFF), None, id="record-lost"),
            pytest.param(view_of("x-partition-0", recorded=True, auto_creation=OFF), None, id="metadata-lost"),
            pytest.param(view_of("x", namespace=NamespaceStanding.MISSING), NamespaceNotFound, id="namespace-missing"),
        ],
    )
    def test_lookup(self, view: TopicView, expected: Any) -> None:
        assert outcome(decide_lookup, view) is expected


class TestSubscriptionByAnOperator:
    def test_missing_topic_that_may_not_be_created_is_a_failed_precondition(self) -> None:
        assert outcome(decide_partitions_to_subscribe, view_of("x", auto_creation=OFF)) is PreconditionFailed

    def test_otherwise_it_is_the_creating_question(self) -> None:
        for view in small_world()[::11]:
            asked = outcome(decide_partitions, view, create=True)
            expected = PreconditionFailed if asked is TopicNotFound else asked
            assert outcome(decide_partitions_to_subscribe, view) == expected


class TestRemoteClusters:
    @pytest.mark.parametrize(
        ("view", "asked"),
        [
            pytest.param(view_of("x"), True, id="about-to-be-created"),
            pytest.param(view_of("x", auto_creation=OFF), False, id="not-allowed"),
            pytest.param(view_of("x", recorded=True), False, id="exists"),
            pytest.param(view_of("x", 3), False, id="partitioned"),
            pytest.param(view_of("x-partition-0"), False, id="partition-name"),
            pytest.param(view_of("non-persistent://public/default/x"), False, id="non-persistent"),
        ],
    )
    @pytest.mark.parametrize(
        "question",
        [
            partial(decide_partitions, create=True),
            partial(decide_partitions_for_operator, create=True),
            decide_partitions_to_subscribe,
        ],
    )
    def test_are_asked_only_for_what_is_about_to_be_created(
        self, question: Callable[[TopicView], Any], view: TopicView, asked: bool
    ) -> None:
        view = replace(view, remotes_to_ask=("b",))
        assert (decided(question, view) == AskRemotes()) is asked

    def test_are_not_asked_by_a_question_that_does_not_create(self) -> None:
        assert refused(partial(decide_partitions, create=False), view_of("x", remotes_to_ask=("b",)))


class TestPartitionsForAnOperator:
    def test_topic_has_its_properties_unless_the_question_may_create(self) -> None:
        view = view_of("x", 3)
        stored = PartitionedTopicMetadata(3, properties={"owner": "ops"})
        view = replace(view, metadata={view.name: stored})
        assert decide_partitions_for_operator(view, create=False) == Decision(stored)
        assert decide_partitions_for_operator(view, create=True) == Decision(PartitionedTopicMetadata(3))

    def test_missing_topic_is_created_as_for_a_client(self) -> None:
        decision = decide_partitions_for_operator(view_of("x", auto_creation=PARTITIONED_2), create=True)
        assert decision == Decision(PartitionedTopicMetadata(2), (CreatePartitionedMetadata(topic("x"), 2),))

    def test_partition_has_none_of_its_own(self) -> None:
        view = view_of("x-partition-0", 3, recorded=True)
        assert decide_partitions_for_operator(view, create=False) == Decision(PartitionedTopicMetadata(0))

    @pytest.mark.parametrize(
        ("namespace", "refusal"),
        [(NamespaceStanding.NOT_SERVED, PreconditionFailed), (NamespaceStanding.MISSING, NamespaceNotFound)],
    )
    def test_namespace_is_looked_at_before_the_topic(
        self, namespace: NamespaceStanding, refusal: type[PulsarError]
    ) -> None:
        view = view_of("x", 3, recorded=True, namespace=namespace)
        assert outcome(decide_partitions_for_operator, view, create=False) is refusal

    def test_otherwise_it_is_the_question_of_a_client(self) -> None:
        for view, create in product(small_world()[::11], (False, True)):
            if view.namespace is NamespaceStanding.SERVED:
                asked = outcome(decide_partitions, view, create=create)
                told = outcome(decide_partitions_for_operator, view, create=create)
                assert getattr(told, "partitions", told) == asked, view


class TestOpen:
    def test_open_when_not_asked_to_create_does_not(self) -> None:
        assert outcome(decide_open, view_of("x"), by=CLIENT, create=False) is TopicNotFound

    @pytest.mark.parametrize(
        ("view", "refusal"),
        [
            pytest.param(view_of("x", recorded=True, domain_enabled=False), NotAllowed, id="domain-disabled"),
            pytest.param(
                view_of("persistent://pulsar/system/__transaction_log_1"), NotAllowed, id="transaction-internal"
            ),
            pytest.param(view_of("x", topics_left=0), NotAllowed, id="topic-limit"),
            pytest.param(view_of("x", namespace=NamespaceStanding.MISSING), ServiceNotReady, id="namespace-missing"),
            pytest.param(view_of("x", namespace=NamespaceStanding.NOT_SERVED), MetadataError, id="not-our-namespace"),
        ],
    )
    def test_open_when_it_cannot_be(self, view: TopicView, refusal: type[PulsarError]) -> None:
        assert outcome(decide_open, view, by=CLIENT, create=True) is refusal

    def test_open_when_the_namespace_is_missing_tells_operators_so(self) -> None:
        view = view_of("x", namespace=NamespaceStanding.MISSING)
        assert outcome(decide_open, view, by=ADMIN, create=True) is NamespaceNotFound

    def test_open_when_the_limit_is_reached_still_loads_what_exists(self) -> None:
        assert decide_open(view_of("x", recorded=True, topics_left=0), by=CLIENT, create=True).changes == ()

    def test_open_non_persistent_topic_ignores_the_limit(self) -> None:
        view = view_of("non-persistent://public/default/x", topics_left=0)
        assert decide_open(view, by=CLIENT, create=True) == Decision(None)

    def test_open_system_topic_ignores_the_limit(self) -> None:
        assert decide_open(view_of("__change_events", topics_left=0), by=CLIENT, create=True).changes


class TestReplicatorOpens:
    """PIP-433: the policies of the receiving cluster do not hold replication up, its records still do."""

    def test_replicator_when_auto_creation_is_off_creates(self) -> None:
        view = view_of("x", auto_creation=OFF)
        assert decide_open(view, by=REPLICATOR, create=True).changes == (CreateTopicRecord(view.name),)

    def test_replicator_when_the_namespace_takes_the_exemption_away_does_not_create(self) -> None:
        view = view_of("x", auto_creation=replace(OFF, replicator_allowed=False))
        assert outcome(decide_open, view, by=REPLICATOR, create=True) is TopicNotFound

    @pytest.mark.parametrize(
        ("view", "refusal"),
        [
            pytest.param(view_of("x-partition-0", auto_creation=OFF), TopicInconsistent, id="metadata-missing"),
            pytest.param(view_of("x", 3, recorded=True), ProducerBusy, id="base-name-of-a-partitioned-topic"),
            pytest.param(view_of("x", namespace=NamespaceStanding.DELETED), TopicNotFound, id="being-deleted"),
            pytest.param(view_of("x-partition-3", 3), TopicNotFound, id="outside"),
        ],
    )
    def test_replicator_never_bypasses_the_records(self, view: TopicView, refusal: type[PulsarError]) -> None:
        assert outcome(decide_open, view, by=REPLICATOR, create=True) is refusal


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


class TestSuspendedCreation:
    """Topics of a namespace whose role is fenced or standby."""

    VIEW = view_of("x", creation_suspended="standby", auto_creation=replace(PLAIN, replicator_allowed=False))

    def test_clients_ask_again(self) -> None:
        assert outcome(decide_partitions, self.VIEW, create=True) is ServiceNotReady
        assert outcome(decide_open, self.VIEW, by=CLIENT, create=True) is ServiceNotReady
        assert outcome(decide_partitions, self.VIEW, create=False) is TopicNotFound

    def test_replicators_create_what_the_policy_allows(self) -> None:
        assert decide_open(self.VIEW, by=REPLICATOR, create=True).changes == (CreateTopicRecord(self.VIEW.name),)

    def test_existing_topics_are_opened(self) -> None:
        assert decide_open(replace(self.VIEW, recorded=True), by=CLIENT, create=True).changes == ()
