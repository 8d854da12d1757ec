"""What real Pulsar offers under these paths and this broker does not: 501 with a sentence, instead of "not found"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interpulse.broker.rest.call import Answer, Call, Handler, Route
from interpulse.model.errors import NotImplementedYet

__all__ = ["ROUTES"]

_METHODS: Final = ("GET", "PUT", "POST", "DELETE")
_ONE_DISK: Final = "messages lie on the one disk of this broker, not on bookies"
_NO_TIERS: Final = "messages are not moved to another storage"
_NO_PAUSE: Final = "what is acknowledged is always stored, so there is nothing to pause for"
_NO_FILTERS: Final = "entry filters are Java classes"
_ONE_BROKER: Final = "one broker serves everything"
_OF_CLUSTERS: Final = {
    "migrate": "",
    "namespaceIsolationPolicies": _ONE_BROKER,
    "namespaceIsolationPolicies/{policy}": _ONE_BROKER,
    "namespaceIsolationPolicies/brokers/{broker}": _ONE_BROKER,
}
_OF_NAMESPACES: Final = {
    "antiAffinity": _ONE_BROKER,
    "dispatcherPauseOnAckStatePersistent": _NO_PAUSE,
    "entryFilters": _NO_FILTERS,
    "migration": "",
    "offloadDeletionLagMs": _NO_TIERS,
    "offloadPolicies": _NO_TIERS,
    "offloadThreshold": _NO_TIERS,
    "offloadThresholdInSeconds": _NO_TIERS,
    "persistence": _ONE_DISK,
    "properties": "",
    "removeOffloadPolicies": _NO_TIERS,
    "resourcegroup": "",
}
_OF_TOPICS: Final = {
    "backlog": "",
    "dispatcherPauseOnAckStatePersistent": _NO_PAUSE,
    "entryFilters": _NO_FILTERS,
    "expireMessages": "",
    "offload": _NO_TIERS,
    "offloadPolicies": _NO_TIERS,
    "persistence": _ONE_DISK,
    "shadowTopics": "",
    "{subscription}/dispatchRate": "all subscriptions of a topic have the same; set subscriptionDispatchRate",
}
"""By the end of the path: why, where there is more to say."""


def _refusing(reason: str) -> Handler:
    async def refuse(call: Call) -> Answer:
        sentence = "Apache Pulsar has this operation, this broker does not offer it"
        if reason:
            raise NotImplementedYet(f"{sentence}: {reason}")
        raise NotImplementedYet(sentence)

    return refuse


def _routes() -> Iterator[Route]:
    reasons = {
        **{f"/admin/v2/clusters/{{cluster}}/{name}": reason for name, reason in _OF_CLUSTERS.items()},
        **{f"/admin/v2/namespaces/{{tenant}}/{{namespace}}/{name}": reason for name, reason in _OF_NAMESPACES.items()},
        **{
            f"/admin/v2/{{domain}}/{{tenant}}/{{namespace}}/{{topic}}/{name}": reason
            for name, reason in _OF_TOPICS.items()
        },
        "/admin/v2/brokers/internal-configuration": "",
    }
    for path, reason in reasons.items():
        for method in _METHODS:
            yield Route(method, path, _refusing(reason))


ROUTES: Final = tuple(_routes())
