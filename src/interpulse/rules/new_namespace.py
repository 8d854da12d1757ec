"""Initial policies of a namespace, in one document. Each is checked by its own rule.

Pulsar checks only retention and message TTL, and stores the others unchecked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interpulse.model.policies.catalogue import OF_NAMESPACES, TOPIC_CREATION
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.rules.checks_by_kind import Limits, check_value
from interpulse.rules.policy_checks import check_schema_switch


def check_new_policies(body: Mapping[str, Any], limits: Limits) -> NamespacePolicies:
    """Return the policies of a new namespace. The values in ``body`` have the types of Pulsar's fields.

    Raise the error of the rule of the first invalid policy.
    """
    policies = NamespacePolicies.from_json(body)
    for entry in OF_NAMESPACES:
        key, kind = entry.level.key, entry.policy.kind
        if key not in body:
            continue
        if entry.level.plural:
            for value in body[key].values():
                check_value(kind, key, value, limits)
        else:
            value = check_value(kind, key, body[key], limits)
            if kind is TOPIC_CREATION:  # an empty override is one too
                policies = policies.changed(auto_topic_creation=value)
    if policies.allow_auto_update_schema is not None:
        check_schema_switch(policies.allow_auto_update_schema, policies.allow_auto_update_schema_with_replicator)
    return policies
