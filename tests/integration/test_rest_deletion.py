"""Deleting topics, namespaces and tenants over REST."""

from __future__ import annotations

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.live.api import ProducerRequest
from interpulse.model.names import NamespaceName, TopicName
from tests.support.rest_broker import RestBroker
from tests.support.rest_client import call

DEMO = NamespaceName("demo", "a")
STRING_SCHEMA = {"type": "STRING", "schema": "", "properties": {}}


class SilentSink:
    """A producer's connection without a client."""

    def producer_closed(self, producer_id: int) -> None:
        """The broker sent the producer away."""


pytestmark = pytest.mark.usefixtures("demo_namespace")


async def attach_producer(broker: RestBroker, name: str) -> None:
    topic = await broker.context.registry.open(TopicName.parse(name))
    await topic.add_producer(ProducerRequest(1, name="p"), SilentSink())  # type: ignore[arg-type]


async def test_topic_in_use_is_deleted_only_by_force(broker: RestBroker) -> None:
    await attach_producer(broker, "demo/a/x")
    assert (await call(broker.web_url, "DELETE", "persistent/demo/a/x")).status == 412
    assert (await call(broker.web_url, "DELETE", "persistent/demo/a/x?force=true")).status == 204
    assert (await call(broker.web_url, "GET", "persistent/demo/a")).json == []


async def test_partitioned_topic_with_one_partition_in_use_is_left_whole(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/demo/a/p/partitions", 3)
    await attach_producer(broker, "demo/a/p-partition-2")
    assert (await call(broker.web_url, "DELETE", "persistent/demo/a/p/partitions")).status == 412
    assert len((await call(broker.web_url, "GET", "persistent/demo/a")).json) == 3
    assert (await call(broker.web_url, "GET", "persistent/demo/a/p/partitions")).json == {
        "partitions": 3,
        "deleted": False,
    }
    assert (await call(broker.web_url, "DELETE", "persistent/demo/a/p/partitions?force=true")).status == 204
    assert (await call(broker.web_url, "GET", "persistent/demo/a/partitioned")).json == []


async def test_schemas_go_with_the_topic_but_not_with_one_partition(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/demo/a/p/partitions", 2)
    await call(broker.web_url, "POST", "schemas/demo/a/p/schema", STRING_SCHEMA)
    await call(broker.web_url, "DELETE", "persistent/demo/a/p-partition-1")
    assert (await call(broker.web_url, "GET", "schemas/demo/a/p/schema")).status == 200
    await call(broker.web_url, "DELETE", "persistent/demo/a/p/partitions")
    assert (await call(broker.web_url, "GET", "schemas/demo/a/p/schema")).status == 404


async def test_namespace_with_topics_is_deleted_only_by_force_and_where_allowed(
    broker: RestBroker,
) -> None:
    await call(broker.web_url, "PUT", "persistent/demo/a/x")
    await call(broker.web_url, "PUT", "persistent/demo/a/p/partitions", 2)
    assert (await call(broker.web_url, "DELETE", "namespaces/demo/a")).status == 409
    assert (await call(broker.web_url, "PUT", "persistent/demo/a/y")).status == 204
    assert (await call(broker.web_url, "DELETE", "namespaces/demo/a?force=true")).status == 405
    await call(broker.web_url, "POST", "brokers/configuration/forceDeleteNamespaceAllowed/true")
    assert (await call(broker.web_url, "DELETE", "namespaces/demo/a?force=true")).status == 204
    assert (await call(broker.web_url, "GET", "namespaces/demo/a")).status == 404
    assert await broker.store.children(keys.namespace_records(DEMO)) == []


async def test_namespace_created_again_is_empty(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/demo/a/x")
    await call(broker.web_url, "POST", "schemas/demo/a/x/schema", STRING_SCHEMA)
    await call(broker.web_url, "POST", "schemas/demo/a/never-a-topic/schema", STRING_SCHEMA)
    await call(broker.web_url, "DELETE", "persistent/demo/a/x")
    assert (await call(broker.web_url, "DELETE", "namespaces/demo/a")).status == 204
    await call(broker.web_url, "PUT", "namespaces/demo/a")
    assert (await call(broker.web_url, "GET", "persistent/demo/a")).json == []
    assert (await call(broker.web_url, "GET", "schemas/demo/a/never-a-topic/schema")).status == 404


async def test_tenant_is_deleted_with_its_namespaces_only_by_force(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/demo/a/x")
    assert (await call(broker.web_url, "DELETE", "tenants/demo")).status == 409
    assert (await call(broker.web_url, "DELETE", "tenants/demo?force=true")).status == 405
    await call(broker.web_url, "POST", "brokers/configuration/forceDeleteTenantAllowed/true")
    assert (await call(broker.web_url, "DELETE", "tenants/demo?force=true")).status == 204
    assert (await call(broker.web_url, "GET", "tenants")).json == ["public", "pulsar"]


async def test_loaded_topic_that_is_neither_used_nor_stored_does_not_keep_its_namespace(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "non-persistent/demo/a/n")
    assert (await call(broker.web_url, "DELETE", "namespaces/demo/a")).status == 204
