"""The rules of the preflight, one table: facts of two sites that are alike, one change to them, and what is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from interpulse.failover.preflight.facts import (
    CheckLimits,
    ClientFacts,
    PairFacts,
    Refusal,
    ReplicatorFacts,
    SiteFacts,
    SubscriptionFacts,
    TopicFacts,
    WayRecord,
)
from interpulse.failover.preflight.findings import KINDS, MEANINGS, CheckKind, Finding
from interpulse.failover.preflight.judgement import READY, REFUSED, WARNED, judge
from interpulse.model.adjustments import Severity
from interpulse.model.inventory import ListedKind, TopicRow
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.model.policies.policy_records import BacklogQuota, PublishRate, RetentionPolicies
from interpulse.rules.failover_role import ROLE_PROPERTY
from interpulse.rules.inventory import NamespaceInventory, NamespaceState

ORDERS = NamespaceName.parse("shop/orders")
PAID = TopicName.parse("persistent://shop/orders/paid")
CPP = "Pulsar-CPP-v3.5.1"
RUNNING = WayRecord("REPLICATING")


def client(name: str = "p", version: str = CPP, access_mode: str = "Shared") -> ClientFacts:
    return ClientFacts(name, "/10.1.4.7:5000", version, access_mode)


def consumer_of(kind: str, version: str = CPP, **fields: Any) -> SubscriptionFacts:
    return SubscriptionFacts("s", kind, is_marked=True, consumers=(client(version=version),), **fields)


def site(name: str, other: str) -> SiteFacts:
    policies = NamespacePolicies(replication_clusters=("east", "west"), deduplication_enabled=True)
    rows = {PAID: TopicRow(PAID, ListedKind.NON_PARTITIONED)}
    return SiteFacts(
        name=name,
        cluster=name,
        admin_url=f"http://{name}",
        namespaces={ORDERS: NamespaceInventory(NamespaceState(policies), rows)},
        topics={PAID: TopicFacts()},
        ways={(PAID, other): RUNNING},
    )


EAST, WEST = site("east", "west"), site("west", "east")
ALIKE = PairFacts(EAST, WEST)


def with_topic(facts: SiteFacts, **fields: Any) -> SiteFacts:
    return replace(facts, topics={PAID: replace(facts.topics[PAID], **fields)})


def with_policies(facts: SiteFacts, **fields: Any) -> SiteFacts:
    inventory = facts.namespaces[ORDERS]
    assert inventory.state is not None
    state = replace(inventory.state, policies=inventory.state.policies.changed(**fields))
    return replace(facts, namespaces={ORDERS: replace(inventory, state=state)})


def with_role(facts: SiteFacts, role: str) -> SiteFacts:
    return with_policies(facts, properties={ROLE_PROPERTY: role})


def with_way(facts: SiteFacts, record: WayRecord | None) -> SiteFacts:
    (key,) = facts.ways
    return replace(facts, ways={} if record is None else {key: record})


def by_replicators(facts: SiteFacts, other: str) -> SiteFacts:
    """The site without de-duplication, whose broker replicates to the other one."""
    copied = with_topic(with_way(facts, None), replicators={other: ReplicatorFacts(sends=True)})
    return with_policies(copied, deduplication_enabled=None)


def both(change: Callable[..., SiteFacts], **fields: Any) -> PairFacts:
    return PairFacts(change(EAST, **fields), change(WEST, **fields))


def east(facts: SiteFacts, **limits: Any) -> PairFacts:
    return PairFacts(facts, WEST, CheckLimits(**limits))


def west(facts: SiteFacts, **limits: Any) -> PairFacts:
    return PairFacts(EAST, facts, CheckLimits(**limits))


ERROR, WARNING, INFO = Severity
K = CheckKind
LANE = "interpulse.job.east-->west.e1"

CASES: dict[str, tuple[PairFacts, list[tuple[CheckKind, Severity, str]]]] = {
    "alike": (ALIKE, []),
    # ways
    "a way that is held": (east(with_way(EAST, WayRecord("HELD", "full"))), [(K.NOT_COPIED, ERROR, "east")]),
    "a way that no one reports": (
        east(with_way(EAST, None)),
        [(K.NOT_COPIED, ERROR, "east"), (K.RETENTION_SHORTER, WARNING, "east")],
    ),
    "a replicator that is connected": (
        east(with_topic(with_way(EAST, None), replicators={"west": ReplicatorFacts(sends=True)})),
        [],
    ),
    "copies that arrive by a replicator": (
        PairFacts(
            with_topic(with_way(EAST, None), replicators={"west": ReplicatorFacts()}),
            with_topic(WEST, replicators={"east": ReplicatorFacts(receives=True)}),
        ),
        [],
    ),
    "copies that arrive by a lane": (
        PairFacts(
            with_policies(with_way(EAST, None), retention=RetentionPolicies(-1, -1)),
            with_policies(
                with_topic(WEST, producers=(client(LANE, "Interpulse-v1"),)), retention=RetentionPolicies(-1, -1)
            ),
        ),
        [],
    ),
    "no way back": (west(with_way(WEST, WayRecord("DISCONNECTED"))), [(K.WAY_BACK_MISSING, ERROR, "west")]),
    "no way back, and none is needed": (
        west(with_way(WEST, WayRecord("DISCONNECTED")), one_way=True),
        [(K.WAY_BACK_MISSING, WARNING, "west")],
    ),
    "copies without source positions": (
        west(replace(WEST, unmarked_copies=(PAID,))),
        [(K.NO_SOURCE_POSITIONS, ERROR, "west")],
    ),
    "de-duplication off": (west(with_policies(WEST, deduplication_enabled=False)), [(K.DEDUP_OFF, ERROR, "west")]),
    "de-duplication off where replicators copy": (
        PairFacts(by_replicators(EAST, "west"), by_replicators(WEST, "east")),
        [],
    ),
    "lag at the limit": (east(with_way(EAST, replace(RUNNING, lag_messages=9)), lag_messages_max=9), []),
    "lag above the limit": (
        east(with_way(EAST, replace(RUNNING, lag_messages=10, rate_out=5)), lag_messages_max=9),
        [(K.LAG, WARNING, "east")],
    ),
    "lag of a replicator": (
        east(with_topic(EAST, replicators={"west": ReplicatorFacts(True, backlog=10)}), lag_messages_max=9),
        [(K.LAG, WARNING, "east")],
    ),
    # clients
    "a used subscription without mark": (
        both(with_topic, subscriptions=(SubscriptionFacts("s", is_used=True),)),
        [(K.SUBSCRIPTION_NOT_MARKED, WARNING, "east")],
    ),
    "an unused, an internal and a marked subscription": (
        both(
            with_topic,
            subscriptions=(
                SubscriptionFacts("a"),
                SubscriptionFacts("__compaction", is_used=True),
                SubscriptionFacts("b", is_used=True, is_marked=True),
            ),
        ),
        [],
    ),
    "acknowledgements that wait": (
        east(with_way(EAST, replace(RUNNING, subscription_state="BEHIND", subscription_age_ms=10_001))),
        [(K.SUBSCRIPTION_BEHIND, WARNING, "east")],
    ),
    "an exclusive producer here": (
        east(with_topic(EAST, producers=(client(access_mode="Exclusive"),))),
        [(K.EXCLUSIVE_PRODUCERS, WARNING, "east")],
    ),
    "an exclusive producer there": (
        west(with_topic(WEST, producers=(client(access_mode="WaitForExclusive"),))),
        [(K.EXCLUSIVE_PRODUCERS, ERROR, "west")],
    ),
    "the fence of this tool": (
        east(with_topic(EAST, producers=(client("interpulse.fence.orders.e5", access_mode="ExclusiveWithFencing"),))),
        [],
    ),
    "a reader": (
        east(with_topic(EAST, subscriptions=(consumer_of("Exclusive", is_durable=False),))),
        [(K.READERS, WARNING, "east")],
    ),
    "a reader of ours": (
        east(with_topic(EAST, subscriptions=(consumer_of("Exclusive", "Interpulse-v1.0", is_durable=False),))),
        [],
    ),
    "a failover consumer": (
        both(with_topic, subscriptions=(consumer_of("Failover"),)),
        [(K.CUMULATIVE_ACKS, WARNING, "east")],
    ),
    "a shared consumer": (both(with_topic, subscriptions=(consumer_of("Shared"),)), []),
    "lower ledgers": (
        PairFacts(replace(EAST, last_ledgers={PAID: 7}), replace(WEST, last_ledgers={PAID: 6})),
        [(K.LEDGERS_LOWER, WARNING, "west")],
    ),
    "higher ledgers": (PairFacts(replace(EAST, last_ledgers={PAID: 7}), replace(WEST, last_ledgers={PAID: 8})), []),
    "a client that a redirect ends": (
        east(with_topic(EAST, producers=(client(version="Pulsar-CPP-v4.2.0"),))),
        [(K.REDIRECT_ABORTS, WARNING, "east")],
    ),
    "such a client without redirects": (
        east(with_topic(EAST, producers=(client(version="Pulsar-CPP-v4.2.0"),)), redirects=False),
        [],
    ),
    "such a client at a real site": (
        east(replace(with_topic(EAST, producers=(client(version="Pulsar-CPP-v4.2.0"),)), is_ours=False)),
        [(K.CLIENTS_NOT_MOVED, ERROR, "east")],
    ),
    "a real site whose clients a file moves": (east(replace(EAST, is_ours=False), moves_otherwise=True), []),
    "a real site whose clients people move": (east(replace(EAST, is_ours=False), redirects=False), []),
    "a real site that is switched to": (west(replace(WEST, is_ours=False)), []),
    # policies
    "time to live that is short": (
        both(with_policies, message_ttl_seconds=86_399),
        [(K.TTL_SHORTER, WARNING, name) for name in ("east", "west")],
    ),
    "time to live that is long enough": (both(with_policies, message_ttl_seconds=86_400), []),
    "time to live of the broker": (
        west(replace(WEST, settings={"ttlDurationDefaultInSeconds": "60"})),
        [(K.TTL_SHORTER, WARNING, "west")],
    ),
    "producers above the limit": (
        PairFacts(with_topic(EAST, producers=(client("a"), client("b"))), with_policies(WEST, max_producers=1)),
        [(K.CAPACITY, WARNING, "west")],
    ),
    "consumers above the broker's limit": (
        PairFacts(
            with_topic(EAST, subscriptions=(replace(consumer_of("Shared"), consumers=(client(), client())),)),
            replace(with_topic(WEST, subscriptions=(consumer_of("Shared"),)), settings={"maxConsumersPerTopic": "1"}),
        ),
        [(K.CAPACITY, WARNING, "west")],
    ),
    "a publish rate that is too low": (
        PairFacts(with_topic(EAST, rate_in=20.0), with_policies(WEST, publish_rates={"west": PublishRate(10)})),
        [(K.CAPACITY, WARNING, "west")],
    ),
    "a quota that is too small": (
        PairFacts(
            with_policies(with_topic(EAST, backlog_bytes=20), backlog_quotas={"destination_storage": BacklogQuota(10)}),
            with_policies(WEST, backlog_quotas={"destination_storage": BacklogQuota(10)}),
        ),
        [(K.CAPACITY, WARNING, "west")],
    ),
    "a disk that is nearly full": (west(replace(WEST, disk=(9.9, 100.0))), [(K.CAPACITY, WARNING, "west")]),
    "a disk with room": (west(replace(WEST, disk=(10.0, 100.0))), []),
    "a compacted topic": (east(with_topic(EAST, is_compacted=True)), [(K.COMPACTED, INFO, "east")]),
    "delayed messages": (
        both(with_topic, subscriptions=(SubscriptionFacts("s", delayed=3),)),
        [(K.DELAYED, INFO, "east")],
    ),
    "open transactions": (east(with_topic(EAST, transactions=1)), [(K.TRANSACTIONS, INFO, "east")]),
    # sites
    "a refusal": (
        west(replace(WEST, refusals=(Refusal("reading shop/orders", "no"),))),
        [(K.PERMISSION_OF_OURS, ERROR, "west")],
    ),
    "clocks 5 s apart": (west(replace(WEST, clock_ms=5000)), []),
    "clocks further apart": (west(replace(WEST, clock_ms=-5001)), [(K.CLOCKS, WARNING, "west")]),
    "roles of a pair": (PairFacts(with_role(EAST, "active;epoch=4"), with_role(WEST, "standby;epoch=4")), []),
    "the role of one site alone": (PairFacts(EAST, with_role(WEST, "standby;epoch=1")), [(K.ROLE, ERROR, "east")]),
    "two sites that serve": (
        PairFacts(with_role(EAST, "active;epoch=4"), with_role(WEST, "active;epoch=5")),
        [(K.ROLE, ERROR, "east")],
    ),
    "no site that serves": (
        PairFacts(with_role(EAST, "fenced;epoch=4"), with_role(WEST, "standby;epoch=4")),
        [(K.ROLE, ERROR, "east")],
    ),
    "a lower epoch that serves": (
        PairFacts(with_role(EAST, "active;epoch=4"), with_role(WEST, "standby;epoch=5")),
        [(K.ROLE, ERROR, "east")],
    ),
    "a malformed role": (
        PairFacts(with_role(EAST, "active;epoch=4"), with_role(WEST, "standby")),
        [(K.ROLE, ERROR, "west")],
    ),
}


@pytest.mark.parametrize(("pair", "expected"), CASES.values(), ids=CASES)
def test_rules_when_applied_to_a_pair_then_find(
    pair: PairFacts, expected: list[tuple[CheckKind, Severity, str]]
) -> None:
    found = judge(pair).findings
    assert sorted((each.kind, each.severity, each.site) for each in found) == sorted(expected)
    assert all(each.what and each.remedy for each in found)


def kinds_found(pair: PairFacts) -> list[str]:
    return [str(each.kind) for each in judge(pair).findings]


def test_table_when_compared_with_the_kinds_then_tries_each_of_them() -> None:
    tried = {kind for _, expected in CASES.values() for kind, _, _ in expected}
    assert tried == set(CheckKind)
    assert set(MEANINGS) == set(CheckKind)
    assert len(set(KINDS)) == len(KINDS)


def test_finding_when_it_has_many_subjects_then_shows_the_first_ones() -> None:
    finding = Finding(K.READERS, WARNING, "east", "what", "remedy", tuple("abcde"))
    assert finding.subject == "a, b, c and 2 more"
    assert finding.to_json()["subjects"] == list("abcde")


# ---- The comparison of an audit


def test_audit_when_a_topic_is_missing_then_its_ways_are_not_reported_too() -> None:
    bare = replace(WEST, namespaces={ORDERS: replace(WEST.namespaces[ORDERS], topics={})}, topics={}, ways={})
    held = with_way(EAST, WayRecord("HELD", "it is missing"))
    (finding,) = judge(PairFacts(held, bare)).findings
    assert (finding.kind, finding.severity, finding.site) == ("TOPIC_MISSING", ERROR, "west")
    assert finding.remedy == f"interpulse-admin --admin-url http://west topics create {PAID}"


def test_audit_when_the_namespace_is_missing_then_its_topics_are_not_listed() -> None:
    bare = replace(WEST, namespaces={ORDERS: NamespaceInventory()}, topics={}, ways={})
    assert kinds_found(west(bare)) == ["NAMESPACE_MISSING"]


def test_audit_when_the_namespace_is_missing_here_then_is_an_error_of_this_site() -> None:
    bare = replace(EAST, namespaces={ORDERS: NamespaceInventory()}, topics={}, ways={})
    (finding,) = judge(PairFacts(bare, replace(WEST, namespaces={}, topics={}, ways={}))).findings
    assert (finding.kind, finding.severity, finding.site) == ("NAMESPACE_MISSING", ERROR, "east")


def test_audit_when_a_schema_differs_then_is_an_error() -> None:
    inventory = EAST.namespaces[ORDERS]
    row = TopicRow(PAID, ListedKind.NON_PARTITIONED)._replace(schema_type="AVRO", schema_hash="a", schema_versions=1)
    here = replace(EAST, namespaces={ORDERS: replace(inventory, topics={PAID: row})})
    (finding,) = judge(east(here)).findings
    assert (finding.kind, finding.severity) == ("SCHEMA_MISSING", ERROR)


def test_audit_when_a_policy_differs_then_the_remedy_is_a_request() -> None:
    facts = with_policies(WEST, schema_compatibility_strategy="BACKWARD")
    (finding,) = judge(west(facts)).findings
    assert finding.kind == "SCHEMA_COMPATIBILITY_STRATEGY"
    assert finding.remedy.startswith(
        "curl -sf -X PUT http://west/admin/v2/namespaces/shop/orders/schemaCompatibilityStrategy"
    )


def test_audit_when_a_marked_subscription_is_missing_then_is_reported_beside_an_unmarked_one() -> None:
    both_kinds = (SubscriptionFacts("a", is_used=True), SubscriptionFacts("b", is_used=True, is_marked=True))
    found = judge(east(with_topic(EAST, subscriptions=both_kinds))).findings
    assert {str(each.kind): each.subjects for each in found} == {
        "SUBSCRIPTION_NOT_MARKED": (f"a of {PAID}",),
        "SUBSCRIPTION_MISSING": (str(PAID),),
    }
    assert "['b']" in next(each.what for each in found if each.kind == "SUBSCRIPTION_MISSING")


def test_audit_when_a_policy_has_a_finding_of_its_own_then_is_left_out() -> None:
    assert kinds_found(west(with_policies(WEST, message_ttl_seconds=60))) == ["TTL_SHORTER"]
    assert kinds_found(west(with_policies(WEST, message_ttl_seconds=90_000))) == ["MESSAGE_TTL"]


# ---- The decision


def test_decision_when_an_error_is_accepted_then_warns() -> None:
    pair = west(with_policies(WEST, deduplication_enabled=False))
    assert (judge(pair).exit_code, judge(pair, ["DEDUP_OFF"]).exit_code) == (REFUSED, WARNED)
    assert judge(pair, ["DEDUP_OFF"]).to_json()["accepted"] == ["DEDUP_OFF"]


def test_decision_when_there_is_information_alone_then_is_ready() -> None:
    assert judge(east(with_topic(EAST, is_compacted=True))).exit_code == READY
