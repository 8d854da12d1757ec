"""Bad requests and the sentences a real Pulsar refuses them with, which official clients and their tests look for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from tests.support.rest_client import call, call_real

PREPARED: Final = (("PUT", "p/partitions", 2), ("PUT", "t", None), ("PUT", "t/subscription/s", None))
"""Below the path of topics of a namespace, as the first group that follows."""

_SHAPE: Final = "Invalid configuration for autoTopicCreationOverride. the detail is "
_NO_COUNT: Final = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."

_NUMBERED: Final = 'with "-partition-" followed by'
_TOO_GREAT: Final = "a number smaller than number of partition of partitioned topic"
_NO_BASE: Final = "numeric value if there isn't a partitioned topic"
_ASKED: Final = (("GET", "stats"), ("GET", "subscriptions"), ("GET", "lastMessageId"), ("POST", "terminate"))
_ZERO: Final = "Partitioned Topic not found: {topic} has zero partitions"
_NO_POLICY: Final = "backlog quota failed because the data validation failed. the attribute policy cannot be null"
_NO_NAMESPACE: Final = "Namespace does not exist"
_NO_TENANT: Final = "Tenant does not exist"

_OF_TOPICS: Final = (
    ("PUT", "z/partitions", 0, 406, "Number of partitions should be more than 0"),
    ("PUT", "q-partition-0/partitions", 2, 412, "Partitioned Topic Name should not contain '-partition-'"),
    ("POST", "p-partition-0/partitions", 3, 412, "Partitioned Topic Name should not contain '-partition-'"),
    ("DELETE", "p-partition-0/partitions", None, 412, "Partitioned Topic Name should not contain '-partition-'"),
    ("POST", "p/partitions", 1, 422, "Desired partitions 1 can't be less than the current partitions 2."),
    ("POST", "t/partitions", 3, 409, "Topic {topics}/t is not the partitioned topic."),
    ("POST", "none/partitions", 3, 409, "Topic {topics}/none is not the partitioned topic."),
    ("DELETE", "none/partitions", None, 404, "Topic {topics}/none not found."),
    (
        "DELETE",
        "t/partitions",
        None,
        409,
        "{topics}/t is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete.",
    ),
    ("PUT", "p-partition-2", None, 412, f"Can't create topic p-partition-2 {_NUMBERED} {_TOO_GREAT} p"),
    ("PUT", "q-partition-0", None, 412, f"Can't create topic q-partition-0 {_NUMBERED} {_NO_BASE} q created."),
    *(
        (method, f"none-partition-0/{path}", None, 404, _ZERO.format(topic="{topics}/none-partition-0"))
        for method, path in _ASKED
    ),
    *(
        (method, f"t-partition-0/{path}", None, 404, _ZERO.format(topic="{topics}/t-partition-0"))
        for method, path in _ASKED
    ),
    *((method, f"p-partition-5/{path}", None, 404, "Topic partitions were not yet created") for method, path in _ASKED),
    ("DELETE", "none-partition-0", None, 404, "Topic {topics}/none-partition-0 not found"),
    ("GET", "none-partition-0/properties", None, 404, "Topic {topics}/none-partition-0 not found"),
    ("GET", "none/stats", None, 404, "Topic {topics}/none not found"),
    ("GET", "none/partitioned-stats", None, 404, "Partitioned Topic {topics}/none not found"),
    ("POST", "t/terminate/partitions", None, 405, "Termination of a non-partitioned topic is not allowed using "),
    ("PUT", "t/subscription/s", None, 409, "Subscription already exists for topic"),
    ("DELETE", "t/subscription/none", None, 404, "Subscription none not found for topic {topics}/t"),
    ("POST", "t/backlogQuota", {"limitSize": 1000}, 400, f"Set namespace[{{namespace}}] {_NO_POLICY}"),
    ("PUT", "p", None, 409, "This topic already exists"),
    ("DELETE", "p", None, 409, "{topics}/p is a partitioned topic, instead of calling delete topic, please call "),
    ("POST", "p/terminate", None, 405, "Termination of a partitioned topic is not allowed"),
    ("POST", "p/subscription/s/skip/1", None, 405, "Skip messages on a partitioned topic is not allowed"),
    ("POST", "t/maxProducers", -1, 412, "maxProducers must be 0 or more"),
    ("POST", "t/maxUnackedMessagesOnConsumer", -1, 412, "maxUnackedNum must be 0 or more"),
    ("POST", "t/messageTTL?messageTTL=-1", None, 412, "Invalid value for message TTL"),
    ("GET", "p-partition-0/messageTTL", None, 412, "Not allowed to set/get topic policy for a partition"),
)
_OF_NAMESPACES: Final = (
    ("POST", "maxTopicsPerNamespace", -1, 412, "maxTopicsPerNamespace must be 0 or more"),
    ("POST", "maxProducersPerTopic", -1, 412, "maxProducersPerTopic must be 0 or more"),
    ("POST", "maxSubscriptionsPerTopic", -1, 412, "maxSubscriptionsPerTopic must be 0 or more"),
    ("PUT", "compactionThreshold", -1, 412, "compactionThreshold must be 0 or more"),
    ("POST", "messageTTL", -1, 412, "Invalid value for message TTL, message TTL must >= 0"),
    ("POST", "deduplicationSnapshotInterval", -1, 412, "interval must be greater than or equal to 0"),
    ("POST", "autoTopicCreation", ("non-partitioned", 3), 412, _SHAPE + _NO_COUNT),
    (
        "POST",
        "autoTopicCreation",
        ("partitioned", -1),
        412,
        _SHAPE + "[defaultNumPartitions] cannot be less than 1 for partition type.",
    ),
    (
        "POST",
        "autoTopicCreation",
        ("partitioned", None),
        412,
        _SHAPE + "[defaultNumPartitions] cannot be null when the type is partitioned.",
    ),
    ("POST", "autoTopicCreation", ("odd", None), 412, _SHAPE + "Unknown topic type [odd]"),
    ("POST", "replication", ["nowhere"], 403, "Invalid cluster id: nowhere"),
    ("POST", "subscriptionExpirationTime", -60, 412, "Invalid value for subscription expiration time"),
    ("POST", "backlogQuota", {"limitSize": 1000}, 400, f"Set namespace[{{namespace}}] {_NO_POLICY}"),
)
_OTHERS: Final = (
    ("POST", "namespaces/{missing}/autoTopicCreation", ("non-partitioned", None), 404, _NO_NAMESPACE),
    ("PUT", "namespaces/{missing}/schemaCompatibilityStrategy", "FULL", 404, _NO_NAMESPACE),
    ("GET", "namespaces/{missing}", None, 404, _NO_NAMESPACE),
    ("GET", "namespaces/{missing}/messageTTL", None, 404, _NO_NAMESPACE),
    ("GET", "persistent/{missing}", None, 404, _NO_NAMESPACE),
    ("PUT", "persistent/{missing}/t", None, 404, "Namespace not found"),
    ("GET", "persistent/{missing}/t/stats", None, 404, "Namespace not found"),
    ("PUT", "namespaces/no-tenant-here/a", None, 404, _NO_TENANT),
    ("GET", "tenants/no-tenant-here", None, 404, _NO_TENANT),
    ("PUT", "namespaces/{namespace}", None, 409, "Namespace already exists"),
    ("PUT", "tenants/public", {"adminRoles": [], "allowedClusters": ["standalone"]}, 409, "Tenant already exist"),
    ("DELETE", "tenants/public", None, 409, "The tenant still has active namespaces"),
    ("PUT", "tenants/x%20y", {"adminRoles": [], "allowedClusters": ["standalone"]}, 412, "Tenant name is not valid"),
    ("GET", "clusters/no-cluster-here", None, 404, "Cluster does not exist"),
)
ALONE: Final = frozenset(
    {
        "maxTopicsPerNamespace must be 0 or more",
        "Invalid value for subscription expiration time",
        _NO_NAMESPACE,
        _NO_TENANT,
        *(each[-1] for each in _OF_NAMESPACES if each[-1].startswith(_SHAPE + "[")),
    }
)
"""Those that tests of the Go client compare whole."""


def _body(given: Any) -> Any:
    if not isinstance(given, tuple):
        return given
    shape, count = given
    return {"allowAutoTopicCreation": True, "topicType": shape, "defaultNumPartitions": count}


SENTENCES: Final = [
    *((method, f"persistent/{{namespace}}/{path}", body, *rest) for method, path, body, *rest in _OF_TOPICS),
    *((method, f"namespaces/{{namespace}}/{path}", _body(body), *rest) for method, path, body, *rest in _OF_NAMESPACES),
    *((method, path, _body(body), *rest) for method, path, body, *rest in _OTHERS),
]
"""Method, path below ``/admin/v2/``, body, status, and how the reason begins."""

LIMITED_BY: Final = "brokers/configuration/maxNumPartitionsPerPartitionedTopic"
LIMITED: Final = [
    (
        "POST",
        "persistent/{namespace}/p/partitions",
        5,
        422,
        "Desired partitions 5 can't be greater than the maximum partitions per topic 4.",
    ),
    (
        "PUT",
        "persistent/{namespace}/z/partitions",
        5,
        406,
        "Number of partitions should be less than or equal to 4",
    ),
    (
        "POST",
        "namespaces/{namespace}/autoTopicCreation",
        _body(("partitioned", 5)),
        406,
        "Number of partitions should be less than or equal to 4",
    ),
]
"""As `SENTENCES`, where ``POST LIMITED_BY/4`` allows four partitions."""


async def unlike(
    web_url: str, namespace: str, sentences: Iterable[tuple[Any, ...]], *, real: bool = False
) -> list[str]:
    """Make these bad requests; what is answered otherwise, a line each."""
    wrong, names = [], {"namespace": namespace, "missing": f"{namespace}-missing"}
    for method, path, body, status, sentence in sentences:
        ask = partial(call_real, expected=(status,)) if real else call
        reply = await ask(web_url, method, path.format(**names), body)
        begin = sentence.format(topics=f"persistent://{namespace}", **names)
        reason = reply.reason if reply.body.startswith(b"{") else ""
        same = reason == begin if sentence in ALONE else reason.startswith(begin)
        if reply.status != status or not same:
            wrong.append(f"{method} {path}: {reply.status} {reply.body[:300]!r} instead of {status} {begin}")
    return wrong
