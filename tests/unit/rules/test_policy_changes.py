"""Single policies of namespaces and topics: the documents that the rules return, and their refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interpulse.model.errors import PreconditionFailed
from interpulse.model.policies.catalogue import NAMESPACE_CALLS, OF_NAMESPACES, TOPIC_CALLS
from interpulse.model.policies.messaging_policies import DESTINATION_STORAGE, MESSAGE_AGE, BacklogQuota, PublishRate
from interpulse.model.policies.namespace_policies import NamespacePolicies
from interpulse.model.policies.retention_policies import RetentionPolicies
from interpulse.model.policies.topic_policies import TopicPolicies
from interpulse.rules.policy_changes import (
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
