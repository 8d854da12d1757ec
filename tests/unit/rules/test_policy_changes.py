"""Single policies of namespaces and topics: the documents that the rules return, and their refusals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import pytest

from interpulse.model.changes import SetTopicPolicies
from interpulse.model.errors import PreconditionFailed
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.policies.catalogue import NAMESPACE_CALLS, OF_NAMESPACES, TOPIC_CALLS
from interpulse.model.policies.policy_documents import NamespacePolicies, TopicPolicies, TopicPolicyRecord
from interpulse.model.policies.policy_records import (
    DESTINATION_STORAGE,
    MESSAGE_AGE,
    BacklogQuota,
    PublishRate,
    RetentionPolicies,
)
from interpulse.rules.policy_changes import (
    decide_reported_policies,
    namespace_with_policy,
    namespace_with_quota,
    topic_with_policy,
    topic_with_quota,
)

RETAINED = RetentionPolicies(time_minutes=1, size_mb=1)
TOO_LARGE, TOO_OLD, FITS = BacklogQuota(2**20), BacklogQuota(-1, 60), BacklogQuota(2**20 - 1, 59)
ON_NAMESPACE, ON_TOPIC = NAMESPACE_CALLS["retention"], TOPIC_CALLS["retention"]
NONE_SET = TopicPolicies()


def test_rate_is_set_for_one_cluster() -> None:
    entry, others = NAMESPACE_CALLS["publish_rate"], {"west": PublishRate(1)}
    before = NamespacePolicies(publish_rates=others)
    changed = namespace_with_policy(before, entry, PublishRate(2), cluster="east")
    assert changed.publish_rates == {**others, "east": PublishRate(2)}
    assert namespace_with_policy(changed, entry, None, cluster="east") == before


@pytest.mark.parametrize("entry", [entry for entry in OF_NAMESPACES if entry.level.removable and entry.level.path])
def test_removal_of_an_unset_policy_changes_nothing(entry: Any) -> None:
    assert namespace_with_policy(NamespacePolicies(), entry, None, cluster="east") == NamespacePolicies()


def namespace(quota: BacklogQuota, kind: str) -> list[Callable[[], object]]:
    retained, limited = NamespacePolicies(retention=RETAINED), NamespacePolicies(backlog_quotas={kind: quota})
    return [
        lambda: namespace_with_quota(retained, kind, quota),
        lambda: namespace_with_policy(limited, ON_NAMESPACE, RETAINED, cluster="east"),
    ]


def topic(quota: BacklogQuota, kind: str) -> list[Callable[[], object]]:
    """The other policy is set for the topic, or for its namespace."""
    retained, limited = TopicPolicies(retention=RETAINED), TopicPolicies(backlog_quotas={kind: quota})
    return [
        lambda: topic_with_quota(retained, kind, quota, namespace=NONE_SET),
        lambda: topic_with_quota(NONE_SET, kind, quota, namespace=retained),
        lambda: topic_with_policy(limited, ON_TOPIC, RETAINED, namespace=NONE_SET),
        lambda: topic_with_policy(NONE_SET, ON_TOPIC, RETAINED, namespace=limited),
    ]


@pytest.mark.parametrize(
    "change",
    [
        *namespace(TOO_LARGE, DESTINATION_STORAGE),
        *topic(TOO_LARGE, DESTINATION_STORAGE),
        *topic(TOO_OLD, MESSAGE_AGE),
    ],
)
def test_quota_that_reaches_the_retention_is_refused(change: Callable[[], object]) -> None:
    with pytest.raises(PreconditionFailed, match=r"(?i)quota"):
        change()


@pytest.mark.parametrize(
    "change",
    [
        *namespace(FITS, DESTINATION_STORAGE),
        *namespace(TOO_OLD, MESSAGE_AGE),  # the age of a namespace's quota is not compared, as in Pulsar
        *topic(FITS, DESTINATION_STORAGE),
        *topic(FITS, MESSAGE_AGE),
    ],
)
def test_quota_below_the_retention_is_set(change: Callable[[], object]) -> None:
    assert change()


def test_removed_quota_leaves_the_others() -> None:
    quotas = {DESTINATION_STORAGE: FITS, MESSAGE_AGE: FITS}
    on_namespace = namespace_with_quota(NamespacePolicies(backlog_quotas=quotas), MESSAGE_AGE, None)
    assert on_namespace.backlog_quotas == {DESTINATION_STORAGE: FITS}
    on_topic = topic_with_quota(
        TopicPolicies(backlog_quotas={MESSAGE_AGE: FITS}), MESSAGE_AGE, None, namespace=NONE_SET
    )
    assert on_topic == NONE_SET


def test_contradiction_set_earlier_does_not_keep_other_policies_from_being_set() -> None:
    contradiction = TopicPolicies(retention=RETAINED, backlog_quotas={MESSAGE_AGE: TOO_OLD})
    entry = TOPIC_CALLS["max_producers"]
    assert topic_with_policy(contradiction, entry, 5, namespace=NONE_SET).max_producers == 5


TOPIC = TopicName.parse("t")
FIRST, SECOND = Position(1, 0), Position(1, 1)
SHORT, LONG = TopicPolicies(message_ttl_seconds=1), TopicPolicies(message_ttl_seconds=9)
EVENTS = [(FIRST, SHORT), (SECOND, LONG), (SECOND, None)]
RECORDS = [
    None,
    TopicPolicyRecord(),
    TopicPolicyRecord(LONG),
    TopicPolicyRecord(LONG, LONG).reported_at(FIRST, everywhere=True),
]


@pytest.mark.parametrize(("record", "event", "everywhere"), list(product(RECORDS, EVENTS, (False, True))))
def test_event_when_stored_then_reporting_it_again_changes_nothing(
    record: TopicPolicyRecord | None, event: tuple[Position, TopicPolicies | None], everywhere: bool
) -> None:
    position, policies = event
    for change in decide_reported_policies(TOPIC, record, policies, position, everywhere=everywhere).changes:
        assert isinstance(change, SetTopicPolicies)
        stored = change.policies
        assert stored.level(everywhere=everywhere) == (policies or TopicPolicies())
        assert stored.level(everywhere=not everywhere) == (record or TopicPolicyRecord()).level(
            everywhere=not everywhere
        )
        assert not decide_reported_policies(TOPIC, stored, policies, position, everywhere=everywhere).changes


@pytest.mark.parametrize("order", list(permutations([(FIRST, SHORT), (SECOND, LONG)])))
def test_events_when_read_in_any_order_then_the_latest_counts(
    order: tuple[tuple[Position, TopicPolicies], ...],
) -> None:
    record: TopicPolicyRecord | None = None
    for position, policies in order:
        for change in decide_reported_policies(TOPIC, record, policies, position, everywhere=False).changes:
            assert isinstance(change, SetTopicPolicies)
            record = change.policies
    assert record is not None
    assert record.here == LONG


def test_event_when_a_topic_has_no_policies_then_nothing_is_stored() -> None:
    assert not decide_reported_policies(TOPIC, None, None, FIRST, everywhere=False).changes
