"""Calls that race with each other over REST, on a store that takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.model.names import NamespaceName
from interpulse.storage.api import Change
from tests.support.memory_storage import MemoryMetadataStore
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call

DEMO = NamespaceName("demo", "a")


@pytest.fixture
async def broker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RestBroker]:
    commit = MemoryMetadataStore.commit

    async def slow_commit(
        self: MemoryMetadataStore, changes: Sequence[Change], expect: Mapping[str, int | None] = {}
    ) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        await commit(self, changes, expect)

    monkeypatch.setattr(MemoryMetadataStore, "commit", slow_commit)
    async with rest_broker() as started:
        await call(started.web_url, "PUT", "tenants/demo", {"allowedClusters": ["standalone"]})
        await call(started.web_url, "PUT", "namespaces/demo/a")
        yield started


async def test_one_of_many_creations_of_a_name_wins(broker: RestBroker) -> None:
    kinds = [("demo/a/x", None), ("demo/a/x/partitions", 3)] * 10
    replies = await asyncio.gather(*(call(broker.web_url, "PUT", f"persistent/{path}", body) for path, body in kinds))
    assert sorted(reply.status for reply in replies) == [204] + [409] * 19
    topics = (await call(broker.web_url, "GET", "persistent/demo/a")).json
    partitioned = (await call(broker.web_url, "GET", "persistent/demo/a/partitioned")).json
    assert (len(topics), len(partitioned)) in ((1, 0), (3, 1))


async def test_namespace_deleted_under_creations_is_empty_when_it_comes_back(broker: RestBroker) -> None:
    await call(broker.web_url, "POST", "brokers/configuration/forceDeleteNamespaceAllowed/true")

    async def create(number: int) -> int:
        plain = await call(broker.web_url, "PUT", f"persistent/demo/a/x{number}")
        await call(broker.web_url, "PUT", f"persistent/demo/a/p{number}/partitions", 2)
        return plain.status

    creations = [asyncio.create_task(create(number)) for number in range(30)]
    await asyncio.sleep(0.02)
    deleted = await call(broker.web_url, "DELETE", "namespaces/demo/a?force=true")
    statuses = set(await asyncio.gather(*creations))
    assert deleted.status == 204
    assert statuses <= {204, 404}
    assert await broker.store.children(keys.namespace_records(DEMO)) == []
    await call(broker.web_url, "PUT", "namespaces/demo/a")
    assert (await call(broker.web_url, "GET", "persistent/demo/a")).json == []
    assert (await call(broker.web_url, "GET", "persistent/demo/a/partitioned")).json == []


async def test_topic_created_and_deleted_at_once_is_whole_or_gone(broker: RestBroker) -> None:
    for _ in range(5):
        await asyncio.gather(
            *(call(broker.web_url, "PUT", "persistent/demo/a/p/partitions", 3) for _ in range(3)),
            *(call(broker.web_url, "DELETE", "persistent/demo/a/p/partitions?force=true") for _ in range(3)),
        )
        metadata = await call(broker.web_url, "GET", "persistent/demo/a/p/partitions")
        topics = (await call(broker.web_url, "GET", "persistent/demo/a")).json
        assert (metadata.status, len(topics)) in ((200, 3), (404, 0))
        if metadata.status == 200:
            assert metadata.json == {"partitions": 3, "deleted": False}


async def test_expansion_that_races_ends_at_the_largest_count_with_all_partitions(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/demo/a/p/partitions", 1)
    await call(broker.web_url, "PUT", "persistent/demo/a/p/subscription/s")
    counts = [4, 2, 6, 3, 5]
    await asyncio.gather(*(call(broker.web_url, "POST", "persistent/demo/a/p/partitions", count) for count in counts))
    assert (await call(broker.web_url, "GET", "persistent/demo/a/p/partitions")).json["partitions"] == 6
    assert len((await call(broker.web_url, "GET", "persistent/demo/a")).json) == 6
    stats = (await call(broker.web_url, "GET", "persistent/demo/a/p/partitioned-stats")).json
    assert all(list(each["subscriptions"]) == ["s"] for each in stats["partitions"].values())


async def test_value_of_a_property_that_many_remove_is_told_to_one(broker: RestBroker) -> None:
    path = "namespaces/demo/a/property/k"
    await call(broker.web_url, "PUT", f"{path}/v")
    replies = await asyncio.gather(*(call(broker.web_url, "DELETE", path) for _ in range(8)))
    assert sorted(reply.body for reply in replies) == [b""] * 7 + [b"v"]
