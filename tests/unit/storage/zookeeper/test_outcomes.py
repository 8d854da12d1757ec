"""No commit is lost or applied twice, however often connections break: on the scripted ZooKeeper and on a real one."""

from __future__ import annotations

import asyncio
import random
import uuid

import pytest

from interpulse.storage.cas import advance_counter
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.store import ZooKeeperMetadataStore


@pytest.mark.parametrize("seed", range(3))
async def test_counter_when_connections_break_at_any_moment_then_every_number_comes_once(
    zookeeper_address: str, seed: int
) -> None:
    chosen = random.Random(seed)
    place = f"{zookeeper_address}/{uuid.uuid4()}"
    stores = [await ZooKeeperMetadataStore.open(await ZooKeeperClient.connect(place), watched=["/t"]) for _ in range(2)]
    numbers: list[int] = []

    async def advance(store: ZooKeeperMetadataStore) -> None:
        for _ in range(15):
            number = await advance_counter(store, "/t/n", 1, start=0)
            numbers.append(number)

    async def break_connections() -> None:
        while True:
            await asyncio.sleep(chosen.uniform(0, 0.02))
            chosen.choice(stores).client._link._end_connection("the test ends it")

    breaking = asyncio.create_task(break_connections())
    async with asyncio.timeout(60):
        await asyncio.gather(*(advance(store) for store in stores for _ in range(3)))
    breaking.cancel()
    await asyncio.wait([breaking])
    assert sorted(numbers) == list(range(90))
    for store in stores:
        await store.close()
