"""REST calls about the state of replication."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.call import DONE, Answer, Call, Route, answer_json
from interpulse.model.errors import InvalidRequest

__all__ = ["ROUTES"]


async def get_namespace_status(call: Call) -> Answer:
    return answer_json(await call.rooms.replication_status.of_namespace(call.namespace))


async def get_topic_status(call: Call) -> Answer:
    return answer_json(await call.rooms.replication_status.of_topic(call.topic))


async def get_topics_with_clusters(call: Call) -> Answer:
    """With one question what a replication job would have to ask of every topic."""
    await call.rooms.namespaces.get_policies(call.namespace)
    own = await call.rooms.topic_policies.replication_clusters(call.namespace)
    return answer_json({str(topic): sorted(own[topic]) for topic in sorted(own, key=str)})


async def get_global_policies(call: Call) -> Answer:
    """What a replication job carries to the other clusters."""
    await call.rooms.namespaces.get_policies(call.namespace)
    found = await call.rooms.topic_policies.set_everywhere(call.namespace)
    return answer_json({str(topic): found[topic].to_json() for topic in sorted(found, key=str)})


async def report_status(call: Call) -> Answer:
    records = call.json()
    if not isinstance(records, list):
        raise InvalidRequest("The body must be an array of status records")
    await call.rooms.replication_status.report(call.namespace, records)
    return DONE


_NAMESPACE: Final = "/admin/v2/namespaces/{tenant}/{namespace}/replication/status"
_TOPIC: Final = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/replication/status"

ROUTES: Final = (
    Route("GET", _NAMESPACE, get_namespace_status),
    Route("GET", "/admin/v2/namespaces/{tenant}/{namespace}/replication/topics", get_topics_with_clusters),
    Route("GET", "/admin/v2/namespaces/{tenant}/{namespace}/replication/globalTopicPolicies", get_global_policies),
    Route("POST", _NAMESPACE, report_status),
    Route("GET", _TOPIC, get_topic_status),
    Route("POST", _TOPIC, report_status),
)
