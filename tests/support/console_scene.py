"""What the console is looked at with: topics that go and topics that do not, and names of somebody who means ill."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from interpulse.broker import metadata_paths as keys
from interpulse.broker.app import BrokerApp
from interpulse.broker.replication.remote_topics import RemoteState
from interpulse.broker.rest.http.admin_calls import AdminCalls, SentCall
from interpulse.broker.rest.server import ROUTES
from interpulse.model.names import NamespaceName, TopicName
from interpulse.storage.api import Put
from tests.support.waiting import eventually

HOSTILE: Final = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "'><svg/onload=alert(1)>",
    "{{ 7 * 7 }}{% include 'x' %}",
    "javascript:alert(1)",
    "\u202egnp.exe",
    "a\u0000b\u001b[31m",
    "\u200binvisible\ufeff",
    "%2e%2e%2f%00",
    "&lt;b&gt;&amp;",
    "tab\tline\nfeed",
    "x" * 700,
)
"""Of topics, subscriptions, producers and properties; what cannot be the name of a topic is refused by the broker."""

HOSTILE_SUBSCRIPTIONS: Final = tuple(name for name in HOSTILE if "\0" not in name)
"""The broker takes no others."""

NAMESPACE: Final = NamespaceName("shop", "orders")
_REMOTES: Final = ("oslo", "tokyo")
_LONG: Final = "shipped-with-a-long-name-that-tells-everything-there-is-to-tell-about-what-is-in-this-topic"


@dataclass(frozen=True)
class Scene:
    """``topics`` are those with hostile names that could be created."""

    plain: TopicName
    partitioned: TopicName
    topics: tuple[TopicName, ...]
    messages: tuple[str, ...] = ()
    """Ids of messages in `plain` whose keys, properties and contents are hostile."""


async def set_scene(app: BrokerApp, *, hostile: bool = True) -> Scene:
    """Needs a broker that provisions, with no job of its own. Nothing is replicated: what is told of it is made up."""
    calls = AdminCalls(app.context, ROUTES)

    async def call(method: str, path: str, body: Any = None) -> None:
        async def read_body() -> bytes:
            return b"" if body is None else json.dumps(body).encode()

        await calls.answer(SentCall(method, f"/admin/v2/{path}", read_body=read_body))

    local = app.config.cluster_name
    for cluster in _REMOTES:
        urls = {"serviceUrl": "http://127.0.0.1:1", "brokerServiceUrl": "pulsar://127.0.0.1:1"}
        await call("PUT", f"clusters/{cluster}", urls)
    await call("PUT", "tenants/shop", {"allowedClusters": [local, *_REMOTES]})
    await call("PUT", f"namespaces/{NAMESPACE}")
    for name in ("created", "paid", "returned", _LONG):
        await call("PUT", f"persistent/{NAMESPACE}/{name}")
    await call("PUT", f"persistent/{NAMESPACE}/events/partitions", 4)
    await call("POST", f"persistent/{NAMESPACE}/created/messageTTL?messageTTL=3600")
    for subscription in ("billing", *(HOSTILE_SUBSCRIPTIONS if hostile else ())):
        twice = quote(quote(subscription, safe=""), safe="")
        await call("PUT", f"persistent/{NAMESPACE}/created/subscription/{twice}")
    topics = [await _create(app, name) for name in HOSTILE] if hostile else []
    await _replicate(app)
    await app.context.replication_status.report(NAMESPACE, _records(app, hostile))
    return Scene(_topic("created"), _topic("events"), tuple(name for name in topics if name is not None))


def _topic(name: str) -> TopicName:
    return TopicName.of("persistent", NAMESPACE.tenant, NAMESPACE.local, name)


async def _create(app: BrokerApp, name: str) -> TopicName | None:
    topic = TopicName.of("persistent", "public", "default", name.replace("/", "|"))
    if not topic.creatable:
        return None
    await app.lifecycle.create_plain(topic, properties={name: name})
    return topic


async def _replicate(app: BrokerApp) -> None:
    """The policy is written past the check that the other clusters can be reached."""
    key, store = keys.namespace_policies(NAMESPACE), app.parts.base.stores.metadata
    stored = await store.get(key)
    assert stored is not None
    policies = json.loads(stored.value) | {"replication_clusters": [app.config.cluster_name, *_REMOTES]}
    await store.commit([Put(key, json.dumps(policies).encode())], {key: stored.version})
    await eventually(lambda: len(app.parts.replication.remote_topics.topics()) >= 5)
    await app.parts.replication.remote_topics.stop()
    for pairs in app.parts.replication.remote_topics._pairs.values():
        for pair in pairs.values():
            pair.state = RemoteState(0, ready=True)
    app.parts.replication.remote_topics._away.clear()
    line = {
        "batchId": 71,
        "batchMs": 812,
        "phasesMs": {
            "triggerExecution": 812,
            "addBatch": 601,
            "latestOffset": 88,
            "walCommit": 51,
            "queryPlanning": 40,
        },
    }
    app.parts.replication.supervisor._view = replace(app.parts.replication.supervisor.view, progress={"tokyo": line})


def _records(app: BrokerApp, hostile: bool) -> list[dict[str, Any]]:
    now = app.parts.base.clock.now_ms()
    day, hours, minutes = now - 86_400_000, now - 7_500_000, now - 900_000

    def record(topic: str, cluster: str, state: str, **values: Any) -> dict[str, Any]:
        return {"topic": str(_topic(topic)), "cluster": cluster, "state": state, **values}

    going = {"since": day, "lagSeconds": 3.2, "msgRateOut": 412.5, "msgThroughputOut": 52_100.0}
    away = {
        "since": now - 120_000,
        "reason": "cannot connect to 127.0.0.1:1: connection refused",
        "remedy": "see that oslo is up and its addresses right (clusters get oslo); it is tried again by itself",
        "nextRetryAt": now + 42_000,
        "lagMessages": 5_500,
        "lagSeconds": 121.0,
    }
    events = _topic("events")
    return [
        record("created", "tokyo", "REPLICATING", lagMessages=1_200, **going),
        record("paid", "tokyo", "REPLICATING", since=day, lagMessages=0, lagSeconds=0, msgRateOut=20.0),
        record(
            "events",
            "tokyo",
            "HELD",
            since=hours,
            reason=f"{events} is a partitioned topic of 4 partitions on the source cluster and a partitioned topic of "
            "8 partitions on the remote cluster",
            remedy="make the partition counts equal: expand the smaller one (topics update-partitioned-topic "
            f"{events} -p 8, here)",
            lagMessages=90_211,
            lagSeconds=7_400.0,
        ),
        record(
            "returned",
            "tokyo",
            "HELD",
            since=minutes,
            reason="the remote cluster refuses version 3 of the schema: field amount has no default"
            + ("".join(HOSTILE) if hostile else ""),
            remedy=f"delete the schema that stands in the way there (schemas delete {_topic('returned')})",
            lagMessages=2_010,
            lagSeconds=880.0,
        ),
        *(record(topic, "oslo", "DISCONNECTED", **away) for topic in ("created", "paid", "returned", _LONG)),
    ]
