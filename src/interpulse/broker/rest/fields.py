"""The fields of Pulsar's admin JSON, each of one type wherever it stands; what comes with another type is refused here.

So nothing behind the door meets a text where it expects a number, or stores one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from interpulse.model.errors import InvalidRequest
from interpulse.model.numbers import INT_MAX, is_whole_number

__all__ = ["checked_fields"]

_SHOWN_MAX: Final = 100


class _Kind(NamedTuple):
    words: str
    fits: Callable[[Any], bool]


_TEXT: Final = _Kind("a text", lambda value: isinstance(value, str))
_FLAG: Final = _Kind("true or false", lambda value: isinstance(value, bool))
_NUMBER: Final = _Kind(f"a whole number from {-INT_MAX - 1} to {INT_MAX}", is_whole_number)
_OBJECT: Final = _Kind("an object", lambda value: isinstance(value, dict))
_TEXTS: Final = _Kind(
    "an array of texts", lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value)
)
_PAIRS: Final = _Kind(
    "an object of texts",
    lambda value: isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
)

_KINDS: Final[dict[str, _Kind]] = {
    # clusters and tenants
    **dict.fromkeys(("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls"), _TEXT),
    **dict.fromkeys(("proxyServiceUrl", "proxyProtocol", "listenerName", "brokerClientTrustCertsFilePath"), _TEXT),
    **dict.fromkeys(("brokerClientKeyFilePath", "brokerClientCertificateFilePath"), _TEXT),
    **dict.fromkeys(("authenticationPlugin", "authenticationParameters"), _TEXT),
    **dict.fromkeys(("brokerClientTlsEnabled", "tlsAllowInsecureConnection"), _FLAG),
    **dict.fromkeys(("peerClusterNames", "adminRoles", "allowedClusters", "brokers"), _TEXTS),
    # namespaces and their policies
    **dict.fromkeys(("replication_clusters", "allowed_clusters"), _TEXTS),
    **dict.fromkeys(("bundles", "retention_policies", "inactive_topic_policies"), _OBJECT),
    **dict.fromkeys(("autoTopicCreationOverride", "autoSubscriptionCreationOverride"), _OBJECT),
    **dict.fromkeys(("deduplicationEnabled", "schema_validation_enforced", "deleted"), _FLAG),
    **dict.fromkeys(("is_allow_auto_update_schema", "is_allow_auto_update_schema_with_replicator"), _FLAG),
    **dict.fromkeys(("retentionTimeInMinutes", "retentionSizeInMB"), _NUMBER),
    **dict.fromkeys(("message_ttl_in_seconds", "max_topics_per_namespace"), _NUMBER),
    "schema_compatibility_strategy": _TEXT,
    # schemas and subscriptions
    **dict.fromkeys(("type", "schema"), _TEXT),
    "properties": _PAIRS,
}
_INNER_KINDS: Final[dict[str, _Kind]] = {
    **_KINDS,
    **dict.fromkeys(("allowAutoTopicCreation", "alwaysAllowForReplicator", "allowAutoSubscriptionCreation"), _FLAG),
    **dict.fromkeys(("topicType", "inactiveTopicDeleteMode"), _TEXT),
    **dict.fromkeys(("defaultNumPartitions", "maxInactiveDurationSeconds", "numBundles"), _NUMBER),
    "deleteWhileInactive": _FLAG,
    "boundaries": _TEXTS,
}
"""In the policies of a namespace that is created; where one of these is set by itself, its own rule reads it."""


def checked_fields(body: Mapping[str, Any], kinds: Mapping[str, _Kind] = _KINDS) -> dict[str, Any]:
    """The body without its nulls, which mean "not set", also inside of it; raises InvalidRequest naming the field."""
    checked = {}
    for name, value in body.items():
        kind = kinds.get(name)
        if kind is None:
            checked[name] = value
        elif value is not None:
            if not kind.fits(value):
                raise InvalidRequest(f"{name} must be {kind.words}, not {json.dumps(value)[:_SHOWN_MAX]}")
            checked[name] = checked_fields(value, _INNER_KINDS) if kind is _OBJECT else value
    return checked
