"""What real Pulsar offers under these paths and this broker does not.

Setting something answers 501 with the reason, instead of "not found". Reading a policy that cannot be set answers what
Pulsar answers before anybody sets it, and taking it away succeeds, so that programs which look first find nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker.rest.http.call import DONE, UNSET, Answer, Call, Handler, Route, answer_json
from interpulse.model.errors import NotImplementedYet
from interpulse.model.not_offered import NotOffered
from interpulse.rules.bundles import boundaries_of, checked_bundle

__all__ = ["ROUTES"]

_ADMIN: Final = "/admin/v2"
_NAMESPACE: Final = f"{_ADMIN}/namespaces/{{tenant}}/{{namespace}}"
_TOPIC: Final = f"{_ADMIN}/{{domain}}/{{tenant}}/{{namespace}}/{{topic}}"

_OFFLOAD_STATUS: Final = {
    "status": "NOT_RUN",
    "lastError": "",
    "firstUnoffloadedMessage": {
        "ledgerId": -1,
        "entryId": -1,
        "partitionIndex": -1,
        "batchSize": 0,
        "batchIndex": -1,
    },
}


@dataclass(frozen=True, slots=True)
class _Policy:
    """One that is never set: ``shown`` when it is read, None = an empty answer; the methods and paths of the rest."""

    path: str
    reason: NotOffered
    shown: Any = None
    method: str = "POST"
    set_path: str | None = None
    remove_path: str | None = None
    removable: bool = True


_OF_NAMESPACES: Final = (
    _Policy("allowedTopicPropertyKeysForMetrics", NotOffered.BROKER_STATS),
    _Policy("antiAffinity", NotOffered.SEVERAL_BROKERS),
    _Policy("dispatcherPauseOnAckStatePersistent", NotOffered.PAUSE_ON_ACK_STATE, shown=False),
    _Policy("entryFilters", NotOffered.ENTRY_FILTERS),
    _Policy("offloadDeletionLagMs", NotOffered.OFFLOADING, method="PUT"),
    _Policy("offloadPolicies", NotOffered.OFFLOADING, remove_path="removeOffloadPolicies"),
    _Policy("offloadThreshold", NotOffered.OFFLOADING, shown=-1, method="PUT", removable=False),
    _Policy("offloadThresholdInSeconds", NotOffered.OFFLOADING, shown=-1, method="PUT", removable=False),
    _Policy("persistence", NotOffered.BOOKIES),
    _Policy("persistence/bookieAffinity", NotOffered.BOOKIES),
    _Policy("resourcegroup", NotOffered.RESOURCE_GROUPS, set_path="resourcegroup/{group}"),
    _Policy("scalableTopicAutoScalePolicy", NotOffered.SCALABLE_TOPICS),
)
_OF_TOPICS: Final = (
    _Policy("dispatcherPauseOnAckStatePersistent", NotOffered.PAUSE_ON_ACK_STATE, shown=False),
    _Policy("entryFilters", NotOffered.ENTRY_FILTERS),
    _Policy("offload", NotOffered.OFFLOADING, shown=_OFFLOAD_STATUS, method="PUT", removable=False),
    _Policy("offloadPolicies", NotOffered.OFFLOADING),
    _Policy("persistence", NotOffered.BOOKIES),
    _Policy("shadowTopics", NotOffered.SHADOW_TOPICS, method="PUT"),
    _Policy("{subscription}/dispatchRate", NotOffered.SUBSCRIPTION_DISPATCH_RATES),
)
_SCALABLE: Final = f"{_ADMIN}/scalable/{{tenant}}/{{namespace}}"
_QUOTAS: Final = f"{_ADMIN}/resource-quotas"
_ISOLATION: Final = f"{_ADMIN}/clusters/{{cluster}}/namespaceIsolationPolicies"
_REFUSED: Final[Mapping[NotOffered | None, tuple[str, ...]]] = {
    NotOffered.CLUSTER_MIGRATION: (
        f"GET POST {_ADMIN}/clusters/{{cluster}}/migrate",
        f"POST {_NAMESPACE}/migration",
    ),
    None: (
        f"GET {_TOPIC}/backlog",
        f"GET {_TOPIC}/getMessageIdByIndex",
        f"GET {_NAMESPACE}/{{bundle}}/topicHashPositions",
        f"GET {_ADMIN}/schemas/{{tenant}}/{{namespace}}/{{topic}}/metadata",
    ),
    NotOffered.REPLICATED_SUBSCRIPTIONS: (f"POST {_TOPIC}/subscription/{{subscription}}/replicatedSubscriptionStatus",),
    NotOffered.PUBLISHING_OVER_HTTP: (f"POST {_TOPIC}", f"POST {_TOPIC}/partitions/{{partition}}"),
    NotOffered.PERMISSIONS_ON_SEVERAL_TOPICS: (
        f"POST {_ADMIN}/namespaces/grantPermissionsOnTopics",
        f"POST {_ADMIN}/namespaces/revokePermissionsOnTopics",
    ),
    NotOffered.BUNDLE_TOPICS: (f"GET {_ADMIN}/non-persistent/{{tenant}}/{{namespace}}/{{bundle}}",),
    NotOffered.SHUTDOWN: (f"POST {_ADMIN}/brokers/shutdown",),
    NotOffered.INTERNAL_CONFIGURATION: (
        f"GET {_ADMIN}/brokers/internal-configuration",
        f"POST {_ADMIN}/metadata/migration/start",
        f"GET {_ADMIN}/metadata/migration/status",
    ),
    NotOffered.SEVERAL_BROKERS: (
        f"GET {_ISOLATION}",
        f"GET {_ISOLATION}/brokers",
        f"GET {_ISOLATION}/brokers/{{broker}}",
        f"GET POST DELETE {_ISOLATION}/{{policy}}",
        f"GET {_ADMIN}/namespaces/{{cluster}}/antiAffinity/{{group}}",
        f"GET POST {_QUOTAS}",
        f"GET POST DELETE {_QUOTAS}/{{tenant}}/{{namespace}}/{{bundle}}",
    ),
    NotOffered.BOOKIES: (
        f"GET {_ADMIN}/bookies/all",
        f"GET {_ADMIN}/bookies/racks-info",
        f"GET POST DELETE {_ADMIN}/bookies/racks-info/{{bookie}}",
    ),
    NotOffered.OFFLOADING: (f"GET {_NAMESPACE}/scanOffloadedLedgers",),
    NotOffered.RESOURCE_GROUPS: (f"GET {_ADMIN}/resourcegroups", f"GET PUT DELETE {_ADMIN}/resourcegroups/{{group}}"),
    NotOffered.BROKER_STATS: (
        f"GET {_ADMIN}/broker-stats/allocator-stats/{{allocator}}",
        f"GET {_ADMIN}/broker-stats/bookieops",
        f"GET {_ADMIN}/broker-stats/broker-resource-availability/{{tenant}}/{{namespace}}",
        f"GET {_ADMIN}/broker-stats/load-report",
        f"GET {_ADMIN}/broker-stats/mbeans",
        f"GET {_ADMIN}/broker-stats/metrics",
        f"GET {_ADMIN}/broker-stats/topics",
    ),
    NotOffered.SCALABLE_TOPICS: (
        f"GET {_SCALABLE}",
        f"GET PUT DELETE {_SCALABLE}/{{topic}}",
        f"GET POST DELETE {_SCALABLE}/{{topic}}/autoScalePolicy",
        f"GET {_SCALABLE}/{{topic}}/stats",
        f"POST {_SCALABLE}/{{topic}}/migrate",
        f"POST {_SCALABLE}/{{topic}}/split/{{segment}}",
        f"POST {_SCALABLE}/{{topic}}/merge/{{segment}}/{{other}}",
        f"PUT DELETE {_SCALABLE}/{{topic}}/subscriptions/{{subscription}}",
        f"POST {_SCALABLE}/{{topic}}/subscriptions/{{subscription}}/seek",
        f"POST {_SCALABLE}/{{topic}}/subscriptions/{{subscription}}/skip-all",
    ),
}
"""By reason, the methods and the path."""


def _refusal(reason: NotOffered | None) -> NotImplementedYet:
    sentence = "Apache Pulsar has this operation, this broker does not offer it"
    if reason:
        return NotImplementedYet(f"{sentence}: {reason}")
    return NotImplementedYet(sentence)


def _refusing(reason: NotOffered | None) -> Handler:
    async def refuse(call: Call) -> Answer:
        raise _refusal(reason)

    return refuse


def _showing(shown: Any) -> Handler:
    answer = UNSET if shown is None else answer_json(shown)

    async def show(call: Call) -> Answer:
        await _check_existing(call)
        return answer

    return show


async def _remove_nothing(call: Call) -> Answer:
    await _check_existing(call)
    return DONE


async def _check_existing(call: Call) -> None:
    """Raises NamespaceNotFound, TopicNotFound, and PreconditionFailed for a partition, which has no policies."""
    if "topic" in call.params:
        await call.context.topic_policies.record_of_existing(call.topic)
    else:
        await call.context.namespaces.get_policies(call.namespace)


async def _delete_bundle(call: Call) -> Answer:
    policies = await call.context.namespaces.get_policies(call.namespace)
    checked_bundle(call.param("bundle"), boundaries_of(policies))
    raise _refusal(NotOffered.BUNDLE_DELETION)


def _policy_routes(root: str, policy: _Policy) -> Iterator[Route]:
    yield Route("GET", f"{root}/{policy.path}", _showing(policy.shown))
    yield Route(policy.method, f"{root}/{policy.set_path or policy.path}", _refusing(policy.reason))
    if policy.removable:
        yield Route("DELETE", f"{root}/{policy.remove_path or policy.path}", _remove_nothing)


def _routes() -> Iterator[Route]:
    for policy in _OF_NAMESPACES:
        yield from _policy_routes(_NAMESPACE, policy)
    for policy in _OF_TOPICS:
        yield from _policy_routes(_TOPIC, policy)
    for reason, calls in _REFUSED.items():
        for each in calls:
            *methods, path = each.split()
            for method in methods:
                yield Route(method, path, _refusing(reason))
    yield Route("DELETE", f"{_NAMESPACE}/{{bundle}}", _delete_bundle)


ROUTES: Final = tuple(_routes())
