"""Namespaces to adjust: what differs between two clusters, how it is asked for, and what an operator sees of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.joined_clusters import done, join_both
from tests.support.rest_broker import RestBroker
from tests.support.rest_client import Reply, call
from tests.support.stub_web import Answer, Asked, StubWeb, passed_on

REPLICATION = "namespaces/demo/a/replication"
PREVIEW = f"{REPLICATION}?preview=true"
ADJUST = f"{REPLICATION}?adjustNamespaceLevelPoliciesAutomatically=true"
POLICIES = "/admin/v2/namespaces/demo/a"


async def differ(east: RestBroker, west: RestBroker) -> None:
    """Everything that can be adjusted, at the broker's and at the namespace's level."""
    await join_both(east, west)
    for name in ("p", "__change_events"):
        await done(east, "PUT", f"persistent/demo/a/{name}/partitions", 4)
        await done(west, "PUT", f"persistent/demo/a/{name}/partitions", 2)
    await done(east, "POST", "brokers/configuration/allowAutoTopicCreationType/partitioned")
    await done(east, "POST", "brokers/configuration/defaultNumPartitions/3")
    body = {"allowAutoTopicCreation": False}
    await done(west, "POST", "namespaces/demo/a/autoTopicCreation", body)
    await done(east, "PUT", "namespaces/demo/a/schemaCompatibilityStrategy", "BACKWARD")
    await done(
        east, "POST", "namespaces/demo/a/isAllowAutoUpdateSchema?allowAutoUpdateSchemaWithReplicator=false", False
    )


async def stored(east: RestBroker) -> list[str]:
    return list((await call(east.web_url, "GET", REPLICATION)).json)


async def state(broker: RestBroker) -> dict[str, Any]:
    """What an operator can see of the namespace and its topics."""
    policies = (await done(broker, "GET", "namespaces/demo/a")).json
    names = (await done(broker, "GET", "persistent/demo/a/partitioned?includeSystemTopic=true")).json
    counts = {}
    for name in names:
        path = name.replace("://", "/")
        counts[name] = (await done(broker, "GET", f"{path}/partitions")).json["partitions"]
    return {"policies": policies, "counts": counts}


def kinds(reply: Reply, part: str = "changes") -> list[str]:
    (west,) = reply.json["clusters"]
    return [each["kind"] for each in west[part]]


ALL_CHANGES = [
    "AUTO_TOPIC_CREATION",
    "IS_ALLOW_AUTO_UPDATE_SCHEMA",
    "SCHEMA_COMPATIBILITY_STRATEGY",
    "TOPIC_PARTITIONS",
    "TOPIC_PARTITIONS",
]


@contextmanager
def in_between(west: RestBroker, meet: Callable[[Asked], None]) -> Iterator[str]:
    """The address of a proxy before west, which shows ``meet`` each request first."""

    def answer(asked: Asked) -> Answer:
        meet(asked)
        return passed_on(asked, west.web_url)

    with StubWeb(otherwise=answer) as web:
        yield web.url
