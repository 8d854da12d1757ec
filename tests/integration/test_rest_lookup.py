"""HTTP lookup: one topic, many topics in one call (PIP-35), and bundles."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.model.clusters import ClusterData
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import Reply, call

TOPICS = "/lookup/v2/topics"
X = "persistent://public/default/x"


async def post(broker: RestBroker, body: Any) -> Reply:
    return await call(broker.web_url, "POST", TOPICS, body)


async def test_batch_when_all_is_well_then_groups_like_single_answers(broker: RestBroker) -> None:
    single = await call(broker.web_url, "GET", "/lookup/v2/topic/persistent/public/default/x")
    reply = await post(broker, {"topics": [X, "y", X]})
    assert reply.status == 200
    expected = single.json | {"response": "Connect", "authoritative": True, "topics": [X, "y"]}
    assert reply.json == {"groups": [expected], "failures": [], "partitions": {}}
    assert list(single.json) == ["brokerId", "brokerUrl", "httpUrl", "nativeUrl", "brokerUrlSsl"]
    assert single.json["brokerId"] == urlsplit(broker.web_url).netloc


async def test_batch_when_one_name_has_many_partitions_then_all_of_them_are_answered() -> None:
    async with rest_broker(BrokerConfig(max_topics_per_batch_lookup=2)) as broker:
        assert (await call(broker.web_url, "PUT", "non-persistent/public/default/p/partitions", 1500)).status == 204
        name = "non-persistent://public/default/p"
        reply = await post(broker, {"topics": [name], "expandPartitions": True})
        assert (reply.json["failures"], reply.json["partitions"]) == ([], {name: 1500})
        assert [len(group["topics"]) for group in reply.json["groups"]] == [1500]


async def test_batch_when_topics_fail_then_code_status_and_reason_of_each(broker: RestBroker) -> None:
    reply = await post(broker, {"topics": ["a/b", "no/such/t", "x"], "createIfMissing": False})
    assert reply.status == 200
    assert reply.json["groups"] == []
    failures = [(f["error"], f["code"], f["status"], f["topics"]) for f in reply.json["failures"]]
    assert failures == [
        ("InvalidTopicName", 17, 412, ["a/b"]),
        ("TopicNotFound", 11, 404, ["no/such/t"]),
        ("TopicNotFound", 11, 404, ["x"]),
    ]
    assert all(failure["reason"] for failure in reply.json["failures"])


async def test_batch_when_partitions_are_wanted_then_named_and_counted(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/public/default/p/partitions", 2)
    reply = await post(broker, {"topics": ["p"], "expandPartitions": True})
    base = "persistent://public/default/p"
    assert reply.json["groups"][0]["topics"] == [f"{base}-partition-0", f"{base}-partition-1"]
    assert reply.json["partitions"] == {"p": 2}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(None, id="nothing"),
        pytest.param(b"{", id="no-json"),
        pytest.param([X], id="an-array"),
        pytest.param({}, id="without-topics"),
        pytest.param({"topics": []}, id="no-topics"),
        pytest.param({"topics": X}, id="a-text"),
        pytest.param({"topics": None}, id="null"),
        pytest.param({"topics": [X], "authoritative": "yes"}, id="flag-as-text"),
    ],
)
async def test_batch_when_malformed_or_empty_then_400_with_a_reason(broker: RestBroker, body: Any) -> None:
    reply = await post(broker, body)
    assert (reply.status, bool(reply.reason)) == (400, True)


async def test_batch_when_too_many_topics_then_413_names_the_limit() -> None:
    async with rest_broker(BrokerConfig(max_topics_per_batch_lookup=2)) as broker:
        assert (await post(broker, {"topics": ["a", "b"]})).status == 200
        reply = await post(broker, {"topics": ["a", "b", "c"]})
        assert (reply.status, "at most 2" in reply.reason) == (413, True)


async def test_batch_when_no_permit_is_left_then_503() -> None:
    async with rest_broker(BrokerConfig(max_concurrent_lookup_request=0)) as broker:
        assert (await post(broker, {"topics": [X]})).status == 503
        single = await call(broker.web_url, "GET", "/lookup/v2/topic/persistent/public/default/x")
        assert (single.status, single.reason) == (503, "Failed due to too many pending lookup requests")


async def test_batch_when_the_broker_is_not_ready_then_503(broker: RestBroker) -> None:
    broker.app.ready = False
    assert (await post(broker, {"topics": [X]})).status == 503


async def test_batch_when_switched_off_then_404_as_at_older_brokers() -> None:
    async with rest_broker(BrokerConfig(supports_batch_lookup=False)) as broker:
        reply = await post(broker, {"topics": [X]})
        assert (reply.status, "supportsBatchLookup" in reply.reason) == (404, True)


async def test_batch_when_asked_in_another_way_then_405(broker: RestBroker) -> None:
    assert (await call(broker.web_url, "GET", TOPICS)).status == 405


@pytest.fixture
async def moved() -> AsyncIterator[RestBroker]:
    """A broker whose namespace ``public/moved`` is served by the peer cluster ``west``."""
    async with rest_broker() as broker:
        context, namespace = broker.context, NamespaceName("public", "moved")
        local = await context.clusters.get("standalone")
        await context.clusters.put("standalone", ClusterData(local.service_url, peer_cluster_names=("west",)))
        west = ClusterData(service_url="http://west:8080", broker_service_url="pulsar://west:6650")
        await context.clusters.put("west", west)
        await context.namespaces.create(namespace, NamespacePolicies())
        await context.namespaces.update_policies(namespace, lambda old: old.changed(replication_clusters=("west",)))
        yield broker


async def test_lookups_when_a_peer_cluster_has_the_namespace_then_redirect_or_group(moved: RestBroker) -> None:
    path = "/lookup/v2/topic/persistent/public/moved/a+b"
    single = await call(moved.web_url, "GET", path)
    assert (single.status, single.headers["Location"]) == (307, f"http://west:8080{path}?authoritative=true")
    reply = await post(moved, {"topics": ["public/moved/t", "x"]})
    assert reply.status == 200
    groups = {group["brokerUrl"]: (group["response"], group["topics"]) for group in reply.json["groups"]}
    assert groups == {
        "pulsar://west:6650": ("Redirect", ["public/moved/t"]),
        moved.app.service_url: ("Connect", ["x"]),
    }


@pytest.mark.parametrize(
    ("method", "below", "query", "body"),
    [
        ("GET", "/partitions", "?checkAllowAutoCreation=true", None),
        ("PUT", "/partitions", "", 3),
        ("PUT", "", "", None),
    ],
    ids=["pip344-peer-cluster", "create-partitioned-peer-cluster", "create-peer-cluster"],
)
async def test_topic_when_a_peer_cluster_has_its_namespace_then_redirect(
    moved: RestBroker, method: str, below: str, query: str, body: int | None
) -> None:
    path = f"/admin/v2/persistent/public/moved/a+b{below}"
    reply = await call(moved.web_url, method, path + query, body)
    assert (reply.status, reply.headers["Location"]) == (307, f"http://west:8080{path}{query}")
    listed = await call(moved.web_url, "GET", "persistent/public/moved")
    assert listed.json == []


def get_with_header(web_url: str, path: str, header: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(web_url).netloc, timeout=60)
    try:
        connection.request("GET", path, headers={"x-pulsar-listenername": header})
        return connection.getresponse().status
    finally:
        connection.close()


async def test_listener_when_unknown_then_refused_whichever_way_it_is_named(broker: RestBroker) -> None:
    path = "/lookup/v2/topic/persistent/public/default/x"
    assert (await call(broker.web_url, "GET", f"{path}?listenerName=inside")).status == 500
    assert await asyncio.to_thread(get_with_header, broker.web_url, path, "inside") == 500
    assert await asyncio.to_thread(get_with_header, broker.web_url, path, "") == 200
    reply = await post(broker, {"topics": ["x"], "listenerName": "inside"})
    assert [(f["code"], f["status"]) for f in reply.json["failures"]] == [(6, 500)]
    assert (await post(broker, {"topics": ["x"], "listenerName": None})).json["groups"]


async def test_bundle_when_the_namespace_has_boundaries_then_is_one_of_those(broker: RestBroker) -> None:
    bundles = {"numBundles": 2, "boundaries": ["0x00000000", "0x10000000", "0xffffffff"]}
    created = await call(broker.web_url, "PUT", "namespaces/public/b", {"bundles": bundles})
    assert created.status == 204
    stored = await call(broker.web_url, "GET", "namespaces/public/b/bundles")
    assert stored.json == bundles
    path = "/lookup/v2/topic/persistent/public/{}/t/bundle"
    found = await call(broker.web_url, "GET", path.format("b"))
    assert found.body in (b"0x00000000_0x10000000", b"0x10000000_0xffffffff")
    assert (await call(broker.web_url, "GET", path.format("nope"))).body == b"0x00000000_0xffffffff"


@pytest.mark.parametrize(
    "bundles", [{"numBundles": 2**40}, {"numBundles": 1, "boundaries": ["0x00000000", "0x10000000"]}]
)
async def test_namespace_when_its_bundles_cannot_be_then_400(broker: RestBroker, bundles: dict[str, Any]) -> None:
    reply = await call(broker.web_url, "PUT", "namespaces/public/b", json.loads(json.dumps({"bundles": bundles})))
    assert (reply.status, "undle" in reply.reason) == (400, True)
