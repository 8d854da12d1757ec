"""Operations that real Pulsar offers and this broker does not.

A write answers 501 with the reason instead of "not found". A read of a policy that cannot be set answers as Pulsar does
before it is set, and its removal succeeds, so programs that look first see an unset policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interpulse.broker.rest.http.call import (
    UNSET,
    Answer,
    Call,
    Handler,
    Route,
    answer_json,
)
from interpulse.model.errors import NotImplementedYet
from interpulse.model.not_offered import NotOffered
from interpulse.model.operations import NAMESPACE_PATH, TOPIC_PATH, Access, Operation, Permission
from interpulse.model.permissions import NamespaceOperation, TopicOperation
from interpulse.rules.bundles import checked_bundle

_ADMIN: Final = "/admin/v2"

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
    required: Permission = Access.POLICY


_OF_NAMESPACES: Final = (
    _Policy("allowedTopicPropertyKeysForMetrics", NotOffered.BROKER_STATS),
    _Policy("antiAffinity", NotOffered.BUNDLE_PLACEMENT),
    _Policy("dispatcherPauseOnAckStatePersistent", NotOffered.PAUSE_ON_ACK_STATE, shown=False),
    _Policy("entryFilters", NotOffered.ENTRY_FILTERS),
    _Policy("offloadDeletionLagMs", NotOffered.OFFLOADING, method="PUT"),
    _Policy("offloadPolicies", NotOffered.OFFLOADING, remove_path="removeOffloadPolicies"),
    _Policy("offloadThreshold", NotOffered.OFFLOADING, shown=-1, method="PUT", removable=False),
    _Policy("offloadThresholdInSeconds", NotOffered.OFFLOADING, shown=-1, method="PUT", removable=False),
    _Policy("persistence/bookieAffinity", NotOffered.BOOKIES),
    _Policy("resourcegroup", NotOffered.RESOURCE_GROUPS, set_path="resourcegroup/{group}"),
    _Policy("scalableTopicAutoScalePolicy", NotOffered.SCALABLE_TOPICS),
)
_OF_TOPICS: Final = (
    _Policy("dispatcherPauseOnAckStatePersistent", NotOffered.PAUSE_ON_ACK_STATE, shown=False),
    _Policy("entryFilters", NotOffered.ENTRY_FILTERS),
    _Policy(
        "offload",
        NotOffered.OFFLOADING,
        shown=_OFFLOAD_STATUS,
        method="PUT",
        removable=False,
        required=TopicOperation.OFFLOAD,
    ),
    _Policy("offloadPolicies", NotOffered.OFFLOADING),
    _Policy("shadowTopics", NotOffered.SHADOW_TOPICS, method="PUT"),
    _Policy("{subscription}/dispatchRate", NotOffered.SUBSCRIPTION_DISPATCH_RATES),
)
_SCALABLE: Final = f"{_ADMIN}/scalable/{{tenant}}/{{namespace}}"
_QUOTAS: Final = f"{_ADMIN}/resource-quotas"
_PUBLISHING: Final = "/topics/{domain}/{tenant}/{namespace}/{topic}"
"""The path at which Pulsar's broker takes messages; its OpenAPI description has it below /admin/v2."""

_BUNDLE_TOPICS: Final = f"{_ADMIN}/non-persistent/{{tenant}}/{{namespace}}/{{bundle}}"

_REFUSED: Final[tuple[tuple[str, str, Permission, NotOffered], ...]] = (
    ("GET", f"{TOPIC_PATH}/backlog", Access.POLICY, NotOffered.OFFLINE_BACKLOG),
    ("GET", f"{TOPIC_PATH}/getMessageIdByIndex", TopicOperation.PEEK_MESSAGES, NotOffered.MESSAGE_INDEXES),
    ("GET", f"{NAMESPACE_PATH}/{{bundle}}/topicHashPositions", NamespaceOperation.GET_BUNDLE, NotOffered.TOPIC_HASHES),
    (
        "GET",
        f"{_ADMIN}/schemas/{{tenant}}/{{namespace}}/{{topic}}/metadata",
        TopicOperation.GET_METADATA,
        NotOffered.SCHEMA_PLACES,
    ),
    *(
        ("POST", f"{topic}{part}", TopicOperation.PRODUCE, NotOffered.PUBLISHING_OVER_HTTP)
        for topic in (_PUBLISHING, TOPIC_PATH)
        for part in ("", "/partitions/{partition}")
    ),
    ("GET", _BUNDLE_TOPICS, NamespaceOperation.GET_BUNDLE, NotOffered.BUNDLE_TOPICS),
    ("GET", f"{NAMESPACE_PATH}/scanOffloadedLedgers", Access.POLICY, NotOffered.OFFLOADING),
)
"""Method, path, required permission and reason."""

_REFUSED_TO_SUPER_USERS: Final[Mapping[NotOffered, tuple[str, ...]]] = {
    NotOffered.PERMISSIONS_ON_SEVERAL_TOPICS: (
        f"POST {_ADMIN}/namespaces/grantPermissionsOnTopics",
        f"POST {_ADMIN}/namespaces/revokePermissionsOnTopics",
    ),
    NotOffered.SHUTDOWN: (f"POST {_ADMIN}/brokers/shutdown",),
    NotOffered.INTERNAL_CONFIGURATION: (
        f"GET {_ADMIN}/brokers/internal-configuration",
        f"POST {_ADMIN}/metadata/migration/start",
        f"GET {_ADMIN}/metadata/migration/status",
    ),
    NotOffered.BUNDLE_PLACEMENT: (
        f"GET {_ADMIN}/namespaces/{{cluster}}/antiAffinity/{{group}}",
        f"GET POST {_QUOTAS}",
        f"GET POST DELETE {_QUOTAS}/{{tenant}}/{{namespace}}/{{bundle}}",
    ),
    NotOffered.BOOKIES: (
        f"GET {_ADMIN}/bookies/all",
        f"GET {_ADMIN}/bookies/racks-info",
        f"GET POST DELETE {_ADMIN}/bookies/racks-info/{{bookie}}",
    ),
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
"""Method and path by reason."""


def _refusal(reason: NotOffered) -> NotImplementedYet:
    return NotImplementedYet(f"Apache Pulsar has this operation, this broker does not offer it: {reason}")


def _refusing(reason: NotOffered) -> Handler:
    async def refuse(call: Call) -> Answer:
        raise _refusal(reason)

    return refuse


def _showing(shown: Any) -> Handler:
    answer = UNSET if shown is None else answer_json(shown)

    async def show(call: Call) -> Answer:
        await _check_existing(call)
        return answer

    return show


async def _remove_nothing(call: Call) -> None:
    await _check_existing(call)


async def _check_existing(call: Call) -> None:
    """Raise NamespaceNotFound, TopicNotFound, or PreconditionFailed for a partition, which has no policies."""
    if "topic" in call.params:
        await call.context.topic_policies.record_of_existing(call.topic)
    else:
        await call.context.namespaces.get_policies(call.namespace)


async def _delete_bundle(call: Call) -> Answer:
    await call.context.namespaces.get_policies(call.namespace)
    checked_bundle(call.param("bundle"), await call.context.namespaces.boundaries(call.namespace))
    raise _refusal(NotOffered.BUNDLE_DELETION)


def _policy_routes(root: str, policy: _Policy) -> Iterator[Route]:
    setter, remover = f"{root}/{policy.set_path or policy.path}", f"{root}/{policy.remove_path or policy.path}"
    yield Route(Operation("GET", f"{root}/{policy.path}", policy.required), _showing(policy.shown))
    yield Route(Operation(policy.method, setter, policy.required), _refusing(policy.reason))
    if policy.removable:
        yield Route(Operation("DELETE", remover, policy.required), _remove_nothing)


def _routes() -> Iterator[Route]:
    for policy in _OF_NAMESPACES:
        yield from _policy_routes(NAMESPACE_PATH, policy)
    for policy in _OF_TOPICS:
        yield from _policy_routes(TOPIC_PATH, policy)
    for method, path, required, reason in _REFUSED:
        yield Route(Operation(method, path, required), _refusing(reason))
    for reason, calls in _REFUSED_TO_SUPER_USERS.items():
        for call in calls:
            *methods, path = call.split()
            for method in methods:
                yield Route(Operation(method, path, Access.SUPER_USER), _refusing(reason))
    yield Route(Operation("DELETE", f"{NAMESPACE_PATH}/{{bundle}}", Access.TENANT_ADMIN), _delete_bundle)


ROUTES: Final = tuple(_routes())
