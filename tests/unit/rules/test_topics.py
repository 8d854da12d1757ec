"""The tables of PIP-344 and PIP-414 next to the code that is these tables, and the laws every rule obeys.

Ids name the row: ``pip344-row5`` is row 5 of the new behaviour of the partition metadata query. Further down,
`TestLaws` walks through every combination of a small world and proves what must hold for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import pytest

from interpulse.model.changes import (
    Change,
    CreatePartitionedMetadata,
    CreateTopicRecord,
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
from interpulse.model.topics import Existence, PartitionedTopicMetadata, Requester, TopicKind
from interpulse.rules.decision import Decision
from interpulse.rules.policies import EffectiveAutoCreation
from interpulse.rules.topics import (
    NamespaceStanding,
    TopicView,
    check_consistency,
    decide_administer,
    decide_create_missed_partitions,
    decide_create_partitioned,
    decide_create_plain,
    decide_delete_partitioned,
    decide_delete_plain,
    decide_expand,
    decide_lookup,
    decide_open,
    decide_partitions,
    decide_partitions_to_subscribe,
    existence,
    may_create,
    metadata_names,
    takes_remote_shape,
)

OFF = EffectiveAutoCreation(allowed=False)
PLAIN = EffectiveAutoCreation(allowed=True)
PARTITIONED_2 = EffectiveAutoCreation(allowed=True, partitioned=True, partitions=2)
HEARTBEAT = "persistent://pulsar/127.0.0.1:8080/healthcheck"
CLIENT, ADMIN, REPLICATOR = Requester


def topic(text: str) -> TopicName:
    return TopicName.parse(text)


def view_of(text: str, x: int = 0, *, deleted: bool = False, **facts: Any) -> TopicView:
    """A view of one name in a world where ``x`` has so many partitions (0 = is not a partitioned topic)."""
    name = topic(text)
    base = TopicName(name.domain, name.tenant, name.namespace, "x")
    metadata = {base: PartitionedTopicMetadata(x, deleted=deleted)} if x else {}
    shown = {key: value for key, value in metadata.items() if key in metadata_names(name)}
    return TopicView(name, metadata=shown, **facts)


def outcome(decide: Callable[..., Decision[Any]], *arguments: Any, **options: Any) -> Any:
    """The answer of a decision, or the class of its refusal."""
    try:
        return decide(*arguments, **options).answer
    except PulsarError as refusal:
        return type(refusal)


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
                view_of("x", auto_creation=PARTITIONED_2),
                True,
                2,
                (CreatePartitionedMetadata(topic("x"), 2),),
                id="pip344-row5",
            ),
            pytest.param(
                view_of("x", remote_shape=Existence(TopicKind.PARTITIONED, 4)),
                True,
                4,
                (CreatePartitionedMetadata(topic("x"), 4),),
                id="pip344-row6-partitioned-elsewhere",
            ),
            pytest.param(
                view_of("x", auto_creation=PARTITIONED_2, remote_shape=Existence(TopicKind.NON_PARTITIONED)),
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
            assert decide_partitions(view, create=create).changes == changes

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
        ("facts", "refusal"),
        [
            pytest.param({"namespace": NamespaceStanding.MISSING}, NamespaceNotFound, id="namespace-missing"),
            pytest.param({"namespace": NamespaceStanding.NOT_SERVED}, MetadataError, id="not-our-namespace"),
            pytest.param({"partitions_max": 1}, NotAllowed, id="default-above-the-maximum"),
            pytest.param({"topics_left": 1}, NotAllowed, id="topic-limit"),
        ],
    )
    def test_partitions_when_they_cannot_be_created(self, facts: dict[str, Any], refusal: type[PulsarError]) -> None:
        view = view_of("x", auto_creation=PARTITIONED_2, **facts)
        with pytest.raises(refusal):
            decide_partitions(view, create=True)

    def test_permanent_failures_are_final_for_clients(self) -> None:
        """Clients of the C++ family ask again for 30 s on ServiceNotReady (6); they give up at once on 22."""
        assert (NotAllowed.wire_code, NotAllowed.http_status) == (22, 409)

    def test_refusal_names_the_topic(self) -> None:
        with pytest.raises(TopicNotFound, match="persistent://public/default/x not found"):
            decide_partitions(view_of("x"), create=False)


class TestConsistency:
    """PIP-414: a name must agree with the partition metadata of its base."""

    @pytest.mark.parametrize(
        ("view", "message"),
        [
            pytest.param(view_of("x-partition-0"), "Partition metadata not found", id="pip414-row1"),
            pytest.param(view_of("x-partition-2", 3), None, id="pip414-row2"),
            pytest.param(view_of("x-partition-3", 3), "Illegal topic partition name", id="pip414-row3"),
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


class TestRemoteShape:
    @pytest.mark.parametrize(
        ("view", "expected"),
        [
            pytest.param(view_of("x"), True, id="about-to-be-created"),
            pytest.param(view_of("x", auto_creation=OFF), False, id="not-allowed"),
            pytest.param(view_of("x", recorded=True), False, id="exists"),
            pytest.param(view_of("x", 3), False, id="partitioned"),
            pytest.param(view_of("x-partition-0"), False, id="partition-name"),
            pytest.param(view_of("non-persistent://public/default/x"), False, id="non-persistent"),
        ],
    )
    def test_other_clusters_are_asked_only_for_what_is_about_to_be_created(
        self, view: TopicView, expected: bool
    ) -> None:
        assert takes_remote_shape(view) is expected


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
        assert [change.topic.local_name for change in decision.changes] == ["x", "x-partition-0", "x-partition-2"]

    def test_create_when_a_stored_partition_is_outside_names_the_least_count(self) -> None:
        with pytest.raises(Conflict, match=r"up to 4; create it with at least 5"):
            decide_create_partitioned(view_of("x", partition_records=frozenset({4})), 2)

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
            pytest.param(view_of("x-partition-5", 3), 412, id="number-outside"),
            pytest.param(view_of("x-partition-1", 3, recorded=True), 409, id="partition-exists"),
            pytest.param(view_of("a-partition-1-partition-2"), 409, id="inconsistent"),
            pytest.param(view_of("-partition-01"), 412, id="nothing-before-the-mark"),
        ],
    )
    def test_create_when_refused(self, view: TopicView, status: int) -> None:
        with pytest.raises(PulsarError) as refusal:
            decide_create_plain(view)
        assert refusal.value.http_status == status

    @pytest.mark.parametrize("local", ["x-partition-", "x-partition-abc", "x-partition-1&", "x-partition-0-DLQ"])
    def test_create_when_what_follows_is_no_number(self, local: str) -> None:
        assert len(decide_create_plain(view_of(local)).changes) == 1

    def test_create_restores_a_lost_partition(self) -> None:
        assert decide_create_plain(view_of("x-partition-1", 3)).changes == (CreateTopicRecord(topic("x-partition-1")),)


class TestCreateMissedPartitions:
    def test_missed_partitions_come_back(self) -> None:
        decision = decide_create_missed_partitions(view_of("x", 3, partition_records=frozenset({1})))
        assert [change.topic.partition_index for change in decision.changes] == [0, 2]

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


# --- laws, over every combination of a small world --------------------------------------------------------------------

NAMES = [
    "x", "x-partition-0", "x-partition-3", "x-partition-01", "x-DLQ", "x ", "a-partition-1-partition-2",
    "__change_events", "persistent://pulsar/system/__transaction_log_1", HEARTBEAT,
    "non-persistent://public/default/x", "non-persistent://public/default/x-partition-0",
]  # fmt: skip
Question = Callable[[TopicView], Decision[Any]]
SHAPES = [(0, False), (3, False), (3, True)]
POLICIES = [OFF, replace(OFF, replicator_allowed=False), PLAIN, PARTITIONED_2]
LIMITS = [(0, None), (2, None), (0, 0)]
STORED = [frozenset[int](), frozenset({0, 3})]
REMOTE = [None, Existence(TopicKind.PARTITIONED, 2)]

ASKING: list[Question] = [
    partial(decide_partitions, create=False),
    *(partial(decide_open, by=by, create=False) for by in Requester),
    decide_lookup,
    decide_administer,
    decide_delete_plain,
    partial(decide_delete_plain, force=True),
]
"""What never changes anything; the deletion of one topic is the registry's work."""

LASTING: list[Question] = [
    *ASKING,
    partial(decide_partitions, create=True),
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


@cache
def small_world() -> list[TopicView]:
    space = product(NAMES, SHAPES, NamespaceStanding, (False, True), POLICIES, LIMITS, STORED, REMOTE)
    return [
        view_of(
            name,
            x,
            deleted=deleted,
            namespace=namespace,
            recorded=recorded,
            auto_creation=policy,
            partitions_max=partitions_max,
            topics_left=topics_left,
            partition_records=stored,
            remote_shape=remote,
        )
        for name, (x, deleted), namespace, recorded, policy, (partitions_max, topics_left), stored, remote in space
    ]


def decided(question: Callable[[TopicView], Decision[Any]], view: TopicView) -> Decision[Any] | None:
    """The decision, None for a refusal."""
    try:
        return question(view)
    except PulsarError:
        return None


def refused(question: Question, view: TopicView) -> PulsarError | None:
    """The refusal, None for a decision."""
    try:
        question(view)
    except PulsarError as refusal:
        return refusal
    return None


def apply(view: TopicView, changes: tuple[Change, ...]) -> TopicView:
    """The third interpreter of changes, after the metadata store and the admin client: the view itself."""
    metadata = dict(view.metadata)
    for change in changes:
        match change:
            case CreatePartitionedMetadata(name, partitions, properties):
                metadata[name] = PartitionedTopicMetadata(partitions, properties=properties)
            case DeletePartitionedMetadata(name):
                del metadata[name]
            case SetPartitionCount(name, partitions):
                metadata[name] = replace(metadata[name], partitions=partitions)
            case CreateTopicRecord(name) if name == view.name:
                view = replace(view, recorded=True)
            case CreateTopicRecord(name):
                view = replace(view, partition_records=view.partition_records | {name.partition_index})
    return replace(view, metadata=metadata) if changes else view


def named(question: Question) -> str:
    """The id of a question: its function and the options."""
    if not isinstance(question, partial):
        return getattr(question, "__name__", "")
    options = (f"{key}={getattr(value, 'value', value)}" for key, value in question.keywords.items())
    return "-".join((question.func.__name__, *options))


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

    def test_the_same_view_always_gives_the_same_outcome(self) -> None:
        """Rules look at nothing but the view, so a preview and the real run, and both doors, cannot differ."""
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
