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
from interpulse.rules.bundles import boundaries_of, checked_bundle

__all__ = ["ROUTES"]

_ADMIN: Final = "/admin/v2"
_NAMESPACE: Final = f"{_ADMIN}/namespaces/{{tenant}}/{{namespace}}"
_TOPIC: Final = f"{_ADMIN}/{{domain}}/{{tenant}}/{{namespace}}/{{topic}}"

_ONE_DISK: Final = "messages lie on the one disk of this broker, not on bookies"
_NO_TIERS: Final = "messages are not moved to another storage"
_NO_PAUSE: Final = "what is acknowledged is always stored, so there is nothing to pause for"
_NO_FILTERS: Final = "entry filters are Java classes"
_ONE_BROKER: Final = "one broker serves everything"
_ONE_RATE: Final = "all subscriptions of a topic have the same; set subscriptionDispatchRate"
_NO_GROUPS: Final = "rates and quotas are set for topics and namespaces, not for groups of them"
_NO_SHADOWS: Final = "topics do not share what they store"
_NO_SEGMENTS: Final = "topics have partitions instead of segments that divide by themselves"
_METRICS: Final = "metrics stand under /metrics, and in the stats of each topic"
_ONE_STORE: Final = "metadata lies in the broker's own files"
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
    reason: str
    shown: Any = None
    method: str = "POST"
    set_path: str | None = None
    remove_path: str | None = None
    removable: bool = True


_OF_NAMESPACES: Final = (
    _Policy("allowedTopicPropertyKeysForMetrics", _METRICS),
    _Policy("antiAffinity", _ONE_BROKER),
    _Policy("dispatcherPauseOnAckStatePersistent", _NO_PAUSE, shown=False),
    _Policy("entryFilters", _NO_FILTERS),
    _Policy("offloadDeletionLagMs", _NO_TIERS, method="PUT"),
    _Policy("offloadPolicies", _NO_TIERS, remove_path="removeOffloadPolicies"),
    _Policy("offloadThreshold", _NO_TIERS, shown=-1, method="PUT", removable=False),
    _Policy("offloadThresholdInSeconds", _NO_TIERS, shown=-1, method="PUT", removable=False),
    _Policy("persistence", _ONE_DISK),
    _Policy("persistence/bookieAffinity", _ONE_DISK),
    _Policy("resourcegroup", _NO_GROUPS, set_path="resourcegroup/{group}"),
    _Policy("scalableTopicAutoScalePolicy", _NO_SEGMENTS),
)
_OF_TOPICS: Final = (
    _Policy("dispatcherPauseOnAckStatePersistent", _NO_PAUSE, shown=False),
    _Policy("entryFilters", _NO_FILTERS),
    _Policy("offload", _NO_TIERS, shown=_OFFLOAD_STATUS, method="PUT", removable=False),
    _Policy("offloadPolicies", _NO_TIERS),
    _Policy("persistence", _ONE_DISK),
    _Policy("shadowTopics", _NO_SHADOWS, method="PUT"),
    _Policy("{subscription}/dispatchRate", _ONE_RATE),
)
_SCALABLE: Final = f"{_ADMIN}/scalable/{{tenant}}/{{namespace}}"
_QUOTAS: Final = f"{_ADMIN}/resource-quotas"
_ISOLATION: Final = f"{_ADMIN}/clusters/{{cluster}}/namespaceIsolationPolicies"
_REFUSED: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        f"GET POST {_ADMIN}/clusters/{{cluster}}/migrate",
        f"POST {_NAMESPACE}/migration",
        f"GET {_TOPIC}/backlog",
        f"GET {_TOPIC}/getMessageIdByIndex",
        f"GET {_NAMESPACE}/{{bundle}}/topicHashPositions",
        f"GET {_ADMIN}/schemas/{{tenant}}/{{namespace}}/{{topic}}/metadata",
    ),
    "the position of a subscription is not told to other clusters": (
        f"POST {_TOPIC}/subscription/{{subscription}}/replicatedSubscriptionStatus",
    ),
    "publish with a client": (f"POST {_TOPIC}", f"POST {_TOPIC}/partitions/{{partition}}"),
    "grant and revoke topic by topic": (
        f"POST {_ADMIN}/namespaces/grantPermissionsOnTopics",
        f"POST {_ADMIN}/namespaces/revokePermissionsOnTopics",
    ),
    "ask for the topics of the namespace": (f"GET {_ADMIN}/non-persistent/{{tenant}}/{{namespace}}/{{bundle}}",),
    "stop the process instead": (f"POST {_ADMIN}/brokers/shutdown",),
    _ONE_STORE: (
        f"GET {_ADMIN}/brokers/internal-configuration",
        f"POST {_ADMIN}/metadata/migration/start",
        f"GET {_ADMIN}/metadata/migration/status",
    ),
    _ONE_BROKER: (
        f"GET {_ISOLATION}",
        f"GET {_ISOLATION}/brokers",
        f"GET {_ISOLATION}/brokers/{{broker}}",
        f"GET POST DELETE {_ISOLATION}/{{policy}}",
        f"GET {_ADMIN}/namespaces/{{cluster}}/antiAffinity/{{group}}",
        f"GET POST {_QUOTAS}",
        f"GET POST DELETE {_QUOTAS}/{{tenant}}/{{namespace}}/{{bundle}}",
    ),
    _ONE_DISK: (
        f"GET {_ADMIN}/bookies/all",
        f"GET {_ADMIN}/bookies/racks-info",
        f"GET POST DELETE {_ADMIN}/bookies/racks-info/{{bookie}}",
    ),
    _NO_TIERS: (f"GET {_NAMESPACE}/scanOffloadedLedgers",),
    _NO_GROUPS: (f"GET {_ADMIN}/resourcegroups", f"GET PUT DELETE {_ADMIN}/resourcegroups/{{group}}"),
    _METRICS: (
        f"GET {_ADMIN}/broker-stats/allocator-stats/{{allocator}}",
        f"GET {_ADMIN}/broker-stats/bookieops",
        f"GET {_ADMIN}/broker-stats/broker-resource-availability/{{tenant}}/{{namespace}}",
        f"GET {_ADMIN}/broker-stats/load-report",
        f"GET {_ADMIN}/broker-stats/mbeans",
        f"GET {_ADMIN}/broker-stats/metrics",
        f"GET {_ADMIN}/broker-stats/topics",
    ),
    _NO_SEGMENTS: (
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


def _refusal(reason: str) -> NotImplementedYet:
    sentence = "Apache Pulsar has this operation, this broker does not offer it"
    if reason:
        return NotImplementedYet(f"{sentence}: {reason}")
    return NotImplementedYet(sentence)


def _refusing(reason: str) -> Handler:
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
        await call.rooms.topic_policies.record_of_existing(call.topic)
    else:
        await call.rooms.namespaces.get_policies(call.namespace)


async def _delete_bundle(call: Call) -> Answer:
    policies = await call.rooms.namespaces.get_policies(call.namespace)
    checked_bundle(call.param("bundle"), boundaries_of(policies))
    raise _refusal("bundles go with their namespace")


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
