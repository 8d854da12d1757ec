"""Subscriptions that come, change or go in the very moment in which their topic grows: each step in a set order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.model.names import NamespaceName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.storage.api import Put
from interpulse.storage.cursors import JSON_CURSORS
from tests.support.interleaved_writes import right_before_commit_of
from tests.support.lifecycle_bench import LifecycleBench, disorder, named
from tests.support.memory_storage import MemoryMetadataStore

X = named("x")
METADATA_KEY = keys.partitioned_topic(X)


@pytest.fixture
async def bench() -> LifecycleBench:
    """With a topic of two partitions that has the subscription ``old``."""
    bench = await LifecycleBench.first()
    await bench.namespaces.create(NamespaceName("public", "trial"), NamespacePolicies())
    await bench.lifecycle.create_partitioned(X, 2)
    for index in range(2):
        await (await bench.topic(X.partition(index))).create_subscription("old")
    return bench


async def subscriptions(bench: LifecycleBench, partition: int) -> dict[str, dict[str, str]]:
    """The stored subscriptions of one partition with their properties."""
    prefix = f"{keys.topic_record(X.partition(partition))}/"
    stored = {key.removeprefix(prefix): each for key, each in await bench.store.scan(prefix, limit=100)}
    return {
        name: dict(JSON_CURSORS.decode("sub", each.value).properties)
        for name, each in stored.items()
        if "." not in name
    }


async def create(bench: LifecycleBench) -> None:
    await (await bench.topic(X.partition(0))).create_subscription("new")


async def delete(bench: LifecycleBench) -> None:
    await (await bench.topic(X.partition(0))).delete_subscription("old")


async def give_properties(bench: LifecycleBench) -> None:
    topic = await bench.topic(X.partition(0))
    topic.subscription("old").properties_changed({"k": "v"})
    await topic.store_cursor(topic.subscription("old"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(create, {"old": {}, "new": {}}, id="created"),
        pytest.param(delete, {}, id="deleted"),
        pytest.param(give_properties, {"old": {"k": "v"}}, id="changed"),
    ],
)
async def test_expansion_when_subscriptions_of_the_first_partition_change_before_its_commit_then_it_has_the_newest(
    bench: LifecycleBench,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[LifecycleBench], Awaitable[None]],
    expected: dict[str, dict[str, str]],
) -> None:
    assert isinstance(bench.store, MemoryMetadataStore)
    right_before_commit_of(monkeypatch, bench.store, METADATA_KEY, lambda: change(bench))
    await bench.lifecycle.expand(X, 4)
    assert [await subscriptions(bench, index) for index in (0, 2, 3)] == [expected] * 3


async def test_expansion_by_force_when_the_stored_partition_is_being_deleted_then_no_cursor_is_left(
    bench: LifecycleBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(bench.store, MemoryMetadataStore)
    taken_over = keys.topic_record(X.partition(3))
    await bench.store.commit([Put(taken_over, b'{"ledgers": [], "properties": {}}')])
    right_before_commit_of(monkeypatch, bench.store, taken_over, lambda: bench.lifecycle.expand(X, 4, force=True))
    await bench.deletion.topic(X.partition(3), force=False)
    assert await disorder(bench.store) == []
    assert (await subscriptions(bench, 2), await subscriptions(bench, 3)) == ({"old": {}}, {})
