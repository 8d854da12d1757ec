"""A broker whose metadata are nodes of a tree, which others may change: a ZooKeeper in the process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.topics import deletion
from interpulse.model.names import NamespaceName, TopicName
from interpulse.storage.relocated import RelocatedMetadataStore
from interpulse.storage.zookeeper import link
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.store import WATCHED, ZooKeeperMetadataStore
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call
from tests.support.scripted_zookeeper import ScriptedZooKeeper, scripted_zookeeper
from tests.support.waiting import eventually

DEMO = NamespaceName("demo", "a")
_ELSEWHERE = {"/ledgers": "/elsewhere/ledgers", keys.TOPIC_RECORDS: "/elsewhere/records"}
_SETTINGS = replace(BrokerConfig(), force_delete_namespace_allowed=True)


@pytest.fixture
async def zookeeper() -> AsyncIterator[ScriptedZooKeeper]:
    async with scripted_zookeeper() as running:
        yield running


@pytest.fixture
async def broker(zookeeper: ScriptedZooKeeper) -> AsyncIterator[RestBroker]:
    client = await ZooKeeperClient.connect(await zookeeper.listen())
    store = await ZooKeeperMetadataStore.open(client, watched=(*WATCHED, "/elsewhere"))
    async with rest_broker(_SETTINGS, provisioning=True, metadata=RelocatedMetadataStore(store, _ELSEWHERE)) as started:
        await call(started.web_url, "PUT", "tenants/demo", {"allowedClusters": ["standalone"]})
        await call(started.web_url, "PUT", "namespaces/demo/a")
        yield started
    await store.close()


async def test_cluster_when_topics_elsewhere_have_policies_then_deleted(broker: RestBroker) -> None:
    await call(
        broker.web_url, "PUT", "clusters/west", {"serviceUrl": "http://west:1", "brokerServiceUrl": "pulsar://w:2"}
    )
    await call(broker.web_url, "PUT", "persistent/demo/a/x")
    assert (await call(broker.web_url, "POST", "persistent/demo/a/x/maxProducers", 3)).status == 204
    assert (await call(broker.web_url, "DELETE", "clusters/west")).status == 204


async def test_namespace_when_it_holds_more_than_one_page_then_deleted_from_below(
    broker: RestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "_KEYS_AT_ONCE", 3)
    for name in ("p", "p-q", "q"):
        await call(broker.web_url, "PUT", f"persistent/demo/a/{name}/partitions", 4)
        await call(broker.web_url, "PUT", f"persistent/demo/a/{name}-partition-0/subscription/s")
        assert (await call(broker.web_url, "POST", f"persistent/demo/a/{name}/maxProducers", 3)).status == 204
    assert (await call(broker.web_url, "DELETE", "namespaces/demo/a?force=true")).status == 204
    metadata = broker.app.parts.base.stores.metadata
    for prefix in keys.namespace_contents(DEMO):
        assert await metadata.scan(prefix, limit=9) == []
    assert (await call(broker.web_url, "PUT", "namespaces/demo/a")).status == 204


async def test_topic_when_its_partitions_are_more_than_one_commit_takes_then_created_and_deleted(
    broker: RestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "REQUEST_BYTES_MAX", 100_000)  # of a real one: some 6,000 partitions
    assert (await call(broker.web_url, "PUT", "persistent/demo/a/p/partitions", 1000)).status == 204
    metadata = broker.app.parts.base.stores.metadata
    assert len(await metadata.children(keys.topic_records(DEMO, "persistent"))) == 1000
    assert (await call(broker.web_url, "GET", "persistent/demo/a/p/partitions")).json["partitions"] == 1000
    assert (await call(broker.web_url, "DELETE", "persistent/demo/a/p/partitions")).status == 204
    assert await metadata.children(keys.topic_records(DEMO, "persistent")) == []


async def test_settings_when_another_broker_changes_them_then_in_force_here(
    zookeeper: ScriptedZooKeeper, broker: RestBroker
) -> None:
    other = await ZooKeeperClient.connect(await zookeeper.listen())
    await other.create(keys.CONFIGURATION, b'{"maxTopicsPerNamespace":"1"}')
    await eventually(lambda: broker.app.context.dynamic.config.max_topics_per_namespace == 1)
    assert (await call(broker.web_url, "PUT", "persistent/demo/a/x")).status == 204
    assert (await call(broker.web_url, "PUT", "persistent/demo/a/y")).status == 409
    zookeeper.shut = True
    zookeeper.cut()
    await other.close()
    znode = zookeeper.nodes[keys.CONFIGURATION]
    znode.value, znode.version = b"{}", znode.version + 1
    zookeeper.shut = False
    await eventually(lambda: broker.app.context.dynamic.config.max_topics_per_namespace == 0)
    assert (await call(broker.web_url, "PUT", "persistent/demo/a/y")).status == 204


async def test_topics_when_the_connection_breaks_again_and_again_then_each_is_created_once(
    zookeeper: ScriptedZooKeeper, broker: RestBroker
) -> None:
    for number in range(20):
        zookeeper.losing["multi"] = number % 2
        zookeeper.dropping["multi"] = (number + 1) % 2
        assert (await call(broker.web_url, "PUT", f"persistent/demo/a/x{number}")).status == 204
    assert len((await call(broker.web_url, "GET", "persistent/demo/a")).json) == 20
    topic = await broker.context.registry.open(TopicName.parse("demo/a/x1"))
    assert str(topic.name) == "persistent://demo/a/x1"
