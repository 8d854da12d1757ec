"""HTTP lookup: which broker serves a topic. This broker serves all of its cluster."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.call import Answer, Call, Route, answer_json, answer_text
from interpulse.rules.lookup import BUNDLES_DEFAULT, bundle_boundaries, bundle_of

__all__ = ["ROUTES"]


async def look_up(call: Call) -> Answer:
    """200 for what exists or may be created; for a non-persistent topic always, it has no record to ask for."""
    topic = call.topic
    if topic.is_persistent:
        await call.rooms.lifecycle.check_servable(topic)
    else:
        await call.rooms.namespaces.get_policies(topic.namespace_name)
    addresses = call.rooms.addresses()
    return answer_json(
        {
            "brokerId": addresses.broker_id,
            "brokerUrl": addresses.service_url,
            "brokerUrlTls": addresses.service_url_tls,
            "httpUrl": addresses.web_url,
            "httpUrlTls": addresses.web_url_tls,
            "nativeUrl": addresses.service_url,
            "brokerUrlSsl": addresses.service_url_tls,
        }
    )


async def get_bundle(call: Call) -> Answer:
    topic = call.topic
    policies = await call.rooms.namespaces.get_policies(topic.namespace_name)
    stored = policies.other.get("bundles") or {}
    return answer_text(bundle_of(topic, stored.get("boundaries") or bundle_boundaries(BUNDLES_DEFAULT)))


_TOPIC: Final = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"

ROUTES: Final = (
    Route("GET", _TOPIC, look_up),
    Route("GET", f"{_TOPIC}/bundle", get_bundle),
)
