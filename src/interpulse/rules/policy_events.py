"""Policies of topics that another broker of the cluster reported by an event: the decision to store them."""

from __future__ import annotations

from interpulse.model.changes import SetTopicPolicies
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.model.policies.topic_policies import TopicPolicies, TopicPolicyRecord
from interpulse.rules.decision import Decision


def decide_reported_policies(
    name: TopicName,
    record: TopicPolicyRecord | None,
    policies: TopicPolicies | None,
    position: Position,
    *,
    everywhere: bool,
) -> Decision[None]:
    """Store one level of a topic's policies, None = removed, unless the record has a later event of that level.

    ``position`` is that of the event, ``record`` the stored one. Nothing is stored for a topic without policies.
    """
    old = record or TopicPolicyRecord()
    seen = old.position(everywhere=everywhere)
    if seen is not None and seen >= position:
        return Decision(None)
    changed = old.changed(policies or TopicPolicies(), everywhere=everywhere).reported_at(
        position, everywhere=everywhere
    )
    if record is None and not changed.to_json():
        return Decision(None)
    return Decision(None, (SetTopicPolicies(name, changed),))
