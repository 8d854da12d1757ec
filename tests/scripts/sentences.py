"""Bad requests and the sentences a real Pulsar refuses them with, which official clients and their tests look for."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["ALONE", "PREPARED", "SENTENCES"]

PREPARED: Final = (("PUT", "p/partitions", 2), ("PUT", "t", None))
"""Below the path of topics of a namespace, as the first group that follows."""

_SHAPE: Final = "Invalid configuration for autoTopicCreationOverride. the detail is "
_NO_COUNT: Final = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."

_OF_TOPICS: Final = (
    ("PUT", "z/partitions", 0, 406, "Number of partitions should be more than 0"),
    ("PUT", "q-partition-0/partitions", 2, 412, "Partitioned Topic Name should not contain '-partition-'"),
    ("POST", "p-partition-0/partitions", 3, 412, "Partitioned Topic Name should not contain '-partition-'"),
    ("DELETE", "p-partition-0/partitions", None, 412, "Partitioned Topic Name should not contain '-partition-'"),
    ("POST", "p/partitions", 1, 422, "Desired partitions 1 can't be less than the current partitions 2."),
    ("POST", "t/partitions", 3, 409, "Topic {topics}/t is not the partitioned topic."),
    ("POST", "none/partitions", 3, 409, "Topic {topics}/none is not the partitioned topic."),
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
)
ALONE: Final = frozenset({"maxTopicsPerNamespace must be 0 or more", _SHAPE + _NO_COUNT})
"""Those that tests of the Go client compare whole."""


def _body(given: Any) -> Any:
    if not isinstance(given, tuple):
        return given
    shape, count = given
    return {"allowAutoTopicCreation": True, "topicType": shape, "defaultNumPartitions": count}


SENTENCES: Final = [
    *((method, f"persistent/{{namespace}}/{path}", body, *rest) for method, path, body, *rest in _OF_TOPICS),
    *((method, f"namespaces/{{namespace}}/{path}", _body(body), *rest) for method, path, body, *rest in _OF_NAMESPACES),
]
"""Method, path below ``/admin/v2/``, body, status, and how the reason begins."""
