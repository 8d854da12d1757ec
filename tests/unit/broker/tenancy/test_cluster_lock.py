"""The lock of a cluster: one broker at a time, through sessions that end and processes that are killed."""

from __future__ import annotations

import asyncio
import json

import pytest

from interpulse.broker.tenancy.cluster_lock import ClusterLock
from interpulse.model.errors import PreconditionFailed
from interpulse.storage.api import Delete, Put
from interpulse.storage.memory import MemoryMetadataStore
from tests.support.waiting import SECONDS_MAX, eventually

KEY = "/interpulse/broker"


class Bench:
    def __init__(self) -> None:
        self.metadata = MemoryMetadataStore()
        self.lost: list[str] = []

    def lock(self, broker_id: str) -> ClusterLock:
        return ClusterLock(self.metadata, broker_id, lambda: self.lost.append(broker_id))

    async def owner(self) -> str | None:
        stored = await self.metadata.get(KEY)
        return json.loads(stored.value)["brokerId"] if stored else None


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def taken_by_another_process(bench: Bench, broker_id: str) -> None:
    """A key that does not belong to this store's session; the memory store has one session, so it lasts."""
    await bench.metadata.commit([Put(KEY, json.dumps({"brokerId": broker_id}).encode())])


async def test_lock_when_another_broker_has_it_then_is_refused_with_the_remedy(bench: Bench) -> None:
    await taken_by_another_process(bench, "a:8080")
    with pytest.raises(PreconditionFailed, match=r"broker a:8080 serves this cluster, and a second one \(b:8080\)"):
        await bench.lock("b:8080").take()
    assert await bench.owner() == "a:8080"


async def test_lock_of_an_earlier_process_at_this_address_is_taken_over(bench: Bench) -> None:
    await taken_by_another_process(bench, "a:8080")
    lock = bench.lock("a:8080")
    await lock.take()
    await lock.release()
    assert await bench.owner() is None


async def test_lock_when_released_then_another_broker_gets_it(bench: Bench) -> None:
    first = bench.lock("a:8080")
    await first.take()
    await first.release()
    assert await bench.owner() is None
    await bench.lock("b:8080").take()
    assert await bench.owner() == "b:8080"


async def test_lock_when_the_session_is_renewed_then_is_taken_again(bench: Bench) -> None:
    lock = bench.lock("a:8080")
    await lock.take()
    bench.metadata.expire_session()
    assert await bench.owner() is None
    async with asyncio.timeout(SECONDS_MAX):
        while await bench.owner() != "a:8080":  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert bench.lost == []
    await lock.release()
    assert await bench.owner() is None


async def test_lock_when_another_broker_was_faster_after_the_session_then_this_one_stops(bench: Bench) -> None:
    lock = bench.lock("a:8080")
    await lock.take()
    bench.metadata.expire_session()
    await taken_by_another_process(bench, "b:8080")
    await eventually(lambda: bench.lost)
    assert bench.lost == ["a:8080"]
    await lock.release()
    assert await bench.owner() == "b:8080"
    await bench.metadata.commit([Delete(KEY)])


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (
            {"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"},
            "Extens",
        ),
        ({"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"}, "broker r:8080"),
    ],
    ids=["extensible", "modular"],
)
async def test_lock_when_a_real_broker_is_registered_then_is_refused(
    bench: Bench, report: dict[str, str], reason: str
) -> None:
    await bench.metadata.commit([Put("/loadbalance/brokers/r:8080", json.dumps(report).encode())])
    with pytest.raises(PreconditionFailed, match=reason):
        await bench.lock("a:8080").take()
