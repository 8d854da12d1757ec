"""Reported policies: the latest event of each level counts, in whatever order events are read."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from interpulse.model.changes import SetTopicPolicies
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.policies.topic_policies import TopicPolicies, TopicPolicyRecord
from interpulse.rules.policy_events import decide_reported_policies

TOPIC = TopicName.parse("t")
FIRST, SECOND = Position(1, 0), Position(1, 1)
SHORT, LONG = TopicPolicies(message_ttl_seconds=1), TopicPolicies(message_ttl_seconds=9)
EVENTS = [(FIRST, SHORT), (SECOND, LONG), (SECOND, None)]
RECORDS = [
    None,
    TopicPolicyRecord(),
    TopicPolicyRecord(LONG),
    TopicPolicyRecord(LONG, LONG).announced_at(FIRST, everywhere=True),
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
