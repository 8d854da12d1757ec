"""The record of namespace isolation policies. What the admin API answers stands in ``tests/scripts/rest``."""

from __future__ import annotations

import asyncio
import json

import pytest

from interpulse.broker.tenancy.clusters import Clusters
from interpulse.broker.tenancy.isolation_policies import IsolationPolicyRecords
from interpulse.broker.tenancy.namespaces import bootstrap
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import MetadataError
from interpulse.model.isolation import IsolationPolicy
from interpulse.storage.api import Put
from tests.support.memory_storage import MemoryMetadataStore

KEY = "/admin/clusters/east/namespaceIsolationPolicies"
POLICY = IsolationPolicy(("t/.*",), ("a",), (), {"min_limit": "1", "usage_threshold": "80"})
STORED = POLICY.to_json()


@pytest.fixture
async def store() -> MemoryMetadataStore:
    store = MemoryMetadataStore()
    await bootstrap(store, local_cluster="east", cluster=ClusterData())
    return store


@pytest.fixture
def records(store: MemoryMetadataStore) -> IsolationPolicyRecords:
    return IsolationPolicyRecords(store, Clusters(store))


async def stored(store: MemoryMetadataStore) -> object:
    found = await store.get(KEY)
    assert found is not None
    return json.loads(found.value)


async def test_policy_when_set_then_stands_at_pulsars_place_and_others_stay_as_they_were(
    store: MemoryMetadataStore, records: IsolationPolicyRecords
) -> None:
    assert await records.in_force("east") == {}
    theirs = STORED | {"unknown": {"a": 1}}
    await store.commit([Put(KEY, json.dumps({"theirs": theirs}).encode())])
    assert await records.put("east", "p", POLICY) is None
    assert await records.put("east", "p", POLICY) == POLICY
    assert await stored(store) == {"theirs": theirs, "p": STORED}
    assert list(await records.in_force("east")) == ["theirs", "p"]
    await records.delete("east", "p")
    assert await stored(store) == {"theirs": theirs}
    assert await records.in_force("east") == {"theirs": POLICY}


async def test_policies_when_set_at_the_same_time_then_none_is_lost(records: IsolationPolicyRecords) -> None:
    await asyncio.gather(*(records.put("east", str(number), POLICY) for number in range(5)))
    assert len(await records.list("east")) == 5


@pytest.mark.parametrize("value", [b"x", b"[]", b'{"p":1}', b'{"p":{"namespaces":7}}'])
async def test_record_when_it_is_of_another_form_then_is_left_as_it_is(
    store: MemoryMetadataStore, records: IsolationPolicyRecords, value: bytes
) -> None:
    await store.commit([Put(KEY, value)])
    with pytest.raises(MetadataError, match="namespaceIsolationPolicies are invalid"):
        await records.put("east", "q", POLICY)
    found = await store.get(KEY)
    assert found is not None
    assert found.value == value


async def test_record_when_the_node_is_empty_then_there_are_none(
    store: MemoryMetadataStore, records: IsolationPolicyRecords
) -> None:
    await store.commit([Put(KEY, b"")])
    assert await records.list("east") == {}
