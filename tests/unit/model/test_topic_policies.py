"""Policies of topics in Pulsar's JSON."""

from __future__ import annotations

from interpulse.model.policies import InactiveTopicPolicies
from interpulse.model.topic_policies import TopicPolicies

INACTIVE = InactiveTopicPolicies("delete_when_subscriptions_caught_up", 5, False)


def test_policies_when_stored_and_read_again_then_are_the_same() -> None:
    policies = TopicPolicies(INACTIVE, other={"messageTTLInSeconds": 3})
    assert TopicPolicies.load(policies.dump()) == policies
    assert policies.to_json() == {"inactiveTopicPolicies": INACTIVE.to_json(), "messageTTLInSeconds": 3}


def test_policies_when_one_is_taken_away_then_the_others_stay() -> None:
    policies = TopicPolicies(INACTIVE, other={"messageTTLInSeconds": 3})
    assert policies.changed(inactive_topics=None).to_json() == {"messageTTLInSeconds": 3}
    assert TopicPolicies(INACTIVE).changed(inactive_topics=None).to_json() == {}


def test_policies_when_a_value_is_null_then_it_is_not_set() -> None:
    assert TopicPolicies.from_json({"inactiveTopicPolicies": None, "messageTTLInSeconds": None}) == TopicPolicies()
