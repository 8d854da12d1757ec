"""REST calls about the replication clusters of single topics."""

from __future__ import annotations

from typing import Final

from interpulse.broker.rest.http.call import DONE, TOPIC_PATH, Answer, Call, Route, answer_json
from interpulse.broker.rest.http.required_permissions import on_policy
from interpulse.rules.effective_policies import topic_level
from interpulse.rules.replication import effective_replication_clusters


async def get_clusters(call: Call) -> Answer:
    """Return the clusters set for the topic, or with ``applied`` the ones in force."""
    record = await call.context.topic_policies.record_of_existing(call.topic)
    everywhere = call.flag("isGlobal")
    if call.flag("applied"):
        namespace = await call.context.namespaces.get_policies(call.topic.namespace_name)
        own_level = topic_level(record, everywhere=everywhere)
        return answer_json(sorted(effective_replication_clusters(own_level, namespace)))
    own = record.level(everywhere=everywhere).replication_clusters
    return answer_json(None if own is None else sorted(own))


async def set_clusters(call: Call) -> Answer:
    await call.context.topic_clusters.set(call.topic, call.strings(), everywhere=call.flag("isGlobal"))
    return DONE


async def remove_clusters(call: Call) -> Answer:
    await call.context.topic_clusters.clear(call.topic, everywhere=call.flag("isGlobal"))
    return DONE


_PATH: Final = f"{TOPIC_PATH}/replication"

ROUTES: Final = (
    Route("GET", _PATH, get_clusters, on_policy),
    Route("POST", _PATH, set_clusters, on_policy),
    Route("DELETE", _PATH, remove_clusters, on_policy),
)
