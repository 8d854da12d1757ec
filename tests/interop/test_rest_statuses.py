"""The statuses of single calls on a real Pulsar and on ours: one row for each thing that clients meet."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.support.official_client import connected
from tests.support.rest_client import Reply, call, call_real

pytestmark = [pytest.mark.interop, pytest.mark.slow]

Call = tuple[str, str, Any]
DONE: Final = (200, 204)

_T: Final = "persistent/{tenant}/a"
_N: Final = "namespaces/{tenant}/a"
_TOPIC: Final[Call] = ("PUT", f"{_T}/t", None)
_PARTITIONED: Final[Call] = ("PUT", f"{_T}/p/partitions", 2)
_SUBSCRIPTION: Final[Call] = ("PUT", f"{_T}/t/subscription/s", None)
_WEST: Final[tuple[Call, ...]] = (
    ("PUT", "clusters/{west}", {"serviceUrl": "http://127.0.0.1:1", "brokerServiceUrl": "pulsar://127.0.0.1:1"}),
    ("PUT", "clusters/{east}", {"serviceUrl": "http://127.0.0.1:1", "brokerServiceUrl": "pulsar://127.0.0.1:1"}),
    ("POST", "tenants/{tenant}", {"adminRoles": [], "allowedClusters": ["standalone", "{west}", "{east}"]}),
)
_ON_WEST: Final[Call] = ("PUT", "namespaces/{tenant}/b", {"replication_clusters": ["standalone", "{west}"]})
_CREATION_OFF: Final[Call] = ("POST", f"{_N}/autoTopicCreation", {"allowAutoTopicCreation": False})


def _schema(kind: str) -> dict[str, Any]:
    definition = {"type": "record", "name": "A", "fields": [{"name": "a", "type": kind}]}
    return {"type": "AVRO", "schema": json.dumps(definition), "properties": {}}


_SCHEMA: Final[Call] = ("POST", "schemas/{tenant}/a/t/schema", _schema("int"))


@dataclass(frozen=True)
class Row:
    """A call after others, and its status: on ours, and on a real Pulsar where we differ for the ``reason``."""

    name: str
    call: Call
    ours: int
    before: tuple[Call, ...] = ()
    real: int = 0
    reason: str = ""
    attached: str = ""
    begin: str = ""
    body: str | None = None


def _unset(path: str, body: str = "", *, topic: bool = False) -> Row:
    root = f"{_T}/t" if topic else _N
    kind = "topic" if topic else "namespace"
    return Row(f"unset {path} of a {kind}", ("GET", f"{root}/{path}", None), 200, (_TOPIC,), body=body)


ROWS: Final = [
    Row("delete with a producer", ("DELETE", f"{_T}/t", None), 412, (_TOPIC,), attached="producer"),
    Row("delete with a consumer", ("DELETE", f"{_T}/t", None), 412, (_TOPIC,), attached="consumer"),
    Row("delete with an idle subscription", ("DELETE", f"{_T}/t", None), 204, (_TOPIC, _SUBSCRIPTION)),
    Row(
        "delete a replicated topic",
        ("DELETE", "persistent/{tenant}/b/t", None),
        422,
        (*_WEST, _ON_WEST, ("PUT", "persistent/{tenant}/b/t", None)),
        attached="replicator",
    ),
    Row("create a topic that exists", _TOPIC, 409, (_TOPIC,)),
    Row("create a topic over a partitioned one", ("PUT", f"{_T}/p", None), 409, (_PARTITIONED,)),
    Row("create a partitioned topic over a topic", ("PUT", f"{_T}/t/partitions", 2), 409, (_TOPIC,)),
    Row("create a partitioned topic that exists", _PARTITIONED, 409, (_PARTITIONED,)),
    Row("create a partition that exists", ("PUT", f"{_T}/p-partition-1", None), 409, (_PARTITIONED,)),
    Row("create a partition beyond", ("PUT", f"{_T}/p-partition-2", None), 412, (_PARTITIONED,)),
    Row("create a partition of nothing", ("PUT", f"{_T}/p-partition-1", None), 412),
    Row("create a partitioned topic called a partition", ("PUT", f"{_T}/x-partition-0/partitions", 2), 412),
    Row("fewer partitions than now", ("POST", f"{_T}/p/partitions", 1), 422, (_PARTITIONED,)),
    Row("grow a topic", ("POST", f"{_T}/t/partitions", 3), 409, (_TOPIC,)),
    Row("grow what is missing", ("POST", f"{_T}/none/partitions", 3), 409),
    Row("no partitions", ("PUT", f"{_T}/p/partitions", 0), 406),
    Row("topic above the limit", _TOPIC, 409, (("PUT", f"{_T}/o", None), ("POST", f"{_N}/maxTopicsPerNamespace", 1))),
    Row("partitions above the limit", _PARTITIONED, 412, (("POST", f"{_N}/maxTopicsPerNamespace", 1),)),
    Row("create a subscription on an absent topic", _SUBSCRIPTION, 204),
    Row("create a subscription where topics are not created", _SUBSCRIPTION, 412, (_CREATION_OFF,)),
    Row("create a subscription twice", _SUBSCRIPTION, 409, (_TOPIC, _SUBSCRIPTION)),
    Row(
        "delete a subscription with a consumer",
        ("DELETE", f"{_T}/t/subscription/s", None),
        412,
        (_TOPIC,),
        attached="consumer",
    ),
    Row("delete a missing subscription", ("DELETE", f"{_T}/t/subscription/none", None), 404, (_TOPIC,)),
    Row(
        "policy of a partition",
        ("GET", f"{_T}/p-partition-0/messageTTL", None),
        412,
        (_PARTITIONED,),
        begin="Not allowed to set/get topic policy for a partition",
    ),
    Row("policy of an absent topic", ("GET", f"{_T}/none/messageTTL", None), 404),
    Row(
        "test of an incompatible schema",
        ("POST", "schemas/{tenant}/a/t/compatibility", _schema("string")),
        200,
        (_TOPIC, _SCHEMA),
        real=500,
        reason="Java and Go admin clients read compatibility: false and fail at a 500",
    ),
    Row(
        "test of a compatible schema",
        ("POST", "schemas/{tenant}/a/t/compatibility", _schema("int")),
        202,
        (_TOPIC, _SCHEMA),
    ),
    Row(
        "post an incompatible schema",
        ("POST", "schemas/{tenant}/a/t/schema", _schema("string")),
        409,
        (_TOPIC, _SCHEMA),
    ),
    Row(
        "tenant with an unknown cluster",
        ("PUT", "tenants/{tenant}-b", {"adminRoles": [], "allowedClusters": ["none"]}),
        412,
    ),
    Row(
        "bad tenant name",
        ("PUT", "tenants/{tenant}%20b", {"adminRoles": [], "allowedClusters": ["standalone"]}),
        412,
    ),
    Row("delete a tenant that holds something", ("DELETE", "tenants/{tenant}", None), 409),
    Row("delete a namespace that holds something", ("DELETE", _N, None), 409, (_TOPIC,)),
    Row("delete a namespace on several clusters", ("DELETE", "namespaces/{tenant}/b", None), 412, (*_WEST, _ON_WEST)),
    Row(
        "delete a cluster in use",
        ("DELETE", "clusters/{west}", None),
        412,
        (*_WEST, _ON_WEST),
        real=204,
        reason="real leaves namespaces behind that name an unknown cluster, and their replication fails for good",
    ),
    Row("replication to an unknown cluster", ("POST", f"{_N}/replication", ["none"]), 403),
    Row(
        "allowed clusters with a peer",
        ("POST", "namespaces/{tenant}/b/allowedClusters", ["standalone", "{west}", "{east}"]),
        409,
        (*_WEST, ("POST", "clusters/{west}/peers", ["{east}"]), _ON_WEST),
    ),
    Row(
        "negative limit of topics",
        ("POST", f"{_N}/maxTopicsPerNamespace", -1),
        412,
        begin="maxTopicsPerNamespace must be 0 or more",
    ),
    Row(
        "all schemas of a topic without one",
        ("GET", "schemas/{tenant}/a/t/schemas", None),
        200,
        (_TOPIC,),
        body='{"getSchemaResponses":[]}',
    ),
    Row(
        "lookup where the cluster does not serve",
        ("GET", "/lookup/v2/topic/persistent/{tenant}/b/t", None),
        412,
        (*_WEST, ("PUT", "namespaces/{tenant}/b", {"replication_clusters": ["{west}"]})),
    ),
    Row(
        "lookup of a name of four parts",
        ("GET", "/lookup/v2/topic/persistent/{tenant}/standalone/a/t", None),
        412,
        real=404,
        reason="the name is wrong, nothing is missing",
    ),
    Row("skip on a partitioned topic", ("POST", f"{_T}/p/subscription/s/skip/1", None), 405, (_PARTITIONED,)),
    *(
        _unset(path)
        for path in (
            "messageTTL",
            "retention",
            "persistence",
            "deduplication",
            "autoTopicCreation",
            "maxProducersPerTopic",
            "publishRate",
            "inactiveTopicPolicies",
        )
    ),
    _unset("subscriptionTypesEnabled", "[]"),
    _unset("backlogQuotaMap", "{}"),
    _unset("properties", "{}"),
    _unset("maxTopicsPerNamespace", "0"),
    _unset("offloadThreshold", "-1"),
    _unset("schemaCompatibilityStrategy", '"UNDEFINED"'),
    _unset("isAllowAutoUpdateSchema", "true"),
    *(_unset(path, topic=True) for path in ("messageTTL", "retention", "maxProducers")),
    _unset("backlogQuotaMap", "{}", topic=True),
    Row(
        "unset subscriptionTypesEnabled of a topic with another policy",
        ("GET", f"{_T}/t/subscriptionTypesEnabled", None),
        200,
        (_TOPIC, ("POST", f"{_T}/t/maxProducers", 3)),
        body="[]",
    ),
    Row(
        "unset subscriptionTypesEnabled of a topic without policies",
        ("GET", f"{_T}/t/subscriptionTypesEnabled", None),
        200,
        (_TOPIC,),
        real=204,
        reason="real answers the empty list as soon as the topic has had any policy",
    ),
    Row(
        "peek past the end",
        ("GET", f"{_T}/t/subscription/s/position/1", None),
        404,
        (_TOPIC, _SUBSCRIPTION),
        begin="Message not found",
    ),
    Row(
        "peek with a missing subscription",
        ("GET", f"{_T}/t/subscription/none/position/1", None),
        200,
        (_TOPIC, _SUBSCRIPTION),
        attached="message",
    ),
    Row("unknown dynamic configuration", ("POST", "brokers/configuration/noSuchKey/1", None), 412),
    Row(
        "clear a backlog that not every topic has",
        ("POST", f"{_N}/clearBacklog/s", None),
        204,
        (_TOPIC, ("PUT", f"{_T}/u", None), _SUBSCRIPTION),
        real=500,
        reason="topics without the subscription do not matter",
    ),
]


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    with InProcessBroker(tmp_path_factory.mktemp("statuses"), settings={"replicationJob": "external"}) as broker:
        yield Address(broker.service_url, broker.web_url)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_status_when_called_on_ours_then_as_written(row: Row, own_broker: Address) -> None:
    await _check(row, own_broker, row.ours, call_ours)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_status_when_called_on_real_then_as_written(row: Row, real_pulsar: Address) -> None:
    assert bool(row.real) == bool(row.reason), "a difference has a reason"
    await _check(row, real_pulsar, row.real or row.ours, call_real)


async def call_ours(web_url: str, method: str, path: str, body: Any, *, expected: Collection[int]) -> Reply:
    return await call(web_url, method, path, body)


async def _check(row: Row, broker: Address, status: int, ask: Callable[..., Awaitable[Reply]]) -> None:
    unique = uuid.uuid4().hex[:8]
    names = {"tenant": f"t-{unique}", "west": f"west-{unique}", "east": f"east-{unique}"}
    begin: tuple[Call, ...] = (
        ("PUT", "tenants/{tenant}", {"adminRoles": [], "allowedClusters": ["standalone"]}),
        ("PUT", "namespaces/{tenant}/a", None),
    )
    for step in (*begin, *row.before):
        reply = await _call(partial(ask, broker.web_url, expected=DONE), step, names)
        assert reply.status in DONE, (step, reply)
    with ExitStack() as clients:
        _attach(clients, row.attached, broker.service_url, f"persistent://{names['tenant']}/a/t")
        if row.attached == "replicator":
            stats: Call = ("GET", "persistent/{tenant}/b/t/stats", None)
            await _call(partial(ask, broker.web_url, expected=DONE), stats, names)
        reply = await _call(partial(ask, broker.web_url, expected=(status,)), row.call, names)
    assert reply.status == status, reply
    if row.begin:
        assert reply.reason.startswith(row.begin)
    if row.body is not None:
        assert reply.body.decode().replace(" ", "") == row.body


async def _call(ask: Callable[[str, str, Any], Awaitable[Reply]], step: Call, names: dict[str, str]) -> Reply:
    method, path, body = step
    for key, name in names.items():
        path = path.replace(f"{{{key}}}", name)
        body = None if body is None else json.loads(json.dumps(body).replace(f"{{{key}}}", name))
    return await ask(method, path, body)


def _attach(clients: ExitStack, what: str, service_url: str, topic: str) -> None:
    """A producer, a consumer of the subscription ``s``, or a producer that has sent a message."""
    if what in ("", "replicator"):
        return
    client = clients.enter_context(connected(service_url))
    if what == "consumer":
        client.subscribe(topic, "s")
        return
    producer = client.create_producer(topic)
    if what == "message":
        producer.send(b"a message")
