"""200 producers and 200 consumers of all types, while connections break and the broker restarts.

That takes half a minute, and in `make soak` three minutes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from pathlib import Path

import pytest

from tests.durability.soundness import World
from tests.support.soak import soak
from tests.support.standalone_process import StandaloneProcess, free_port

log = logging.getLogger(__name__)

SEED = int(os.environ.get("SOUNDNESS_SEED", "20"))
ENDS = [StandaloneProcess.stop, StandaloneProcess.kill] * soak(2, otherwise=1)
LIFE_SECONDS = soak(20, otherwise=6)
LAST_LIFE_SECONDS = soak(80, otherwise=16)
HAPPENED_AT_LEAST = soak((50, 50, 10_000), otherwise=(10, 10, 2_000))
"""Disconnections, seeks and messages, on a machine that is busy."""
LAST_LIFE_MB_MAX = 40
SETTLE_SECONDS_MAX = 120


async def play(directory: Path) -> tuple[World, float]:
    """What happened, and by how much the broker grew in the second half of its last life, in MB."""
    async with World(directory, free_port(), SEED, topics=50, per_topic=4, peers=8) as world:
        for end in ENDS:
            await world.disturb(LIFE_SECONDS)
            await world.restart_broker(end)  # type: ignore[arg-type]
        await world.disturb(LAST_LIFE_SECONDS / 2)
        warm_mb = world.broker_memory_mb()
        await world.disturb(LAST_LIFE_SECONDS / 2)
        grown_mb = world.broker_memory_mb() - warm_mb
        begun = time.monotonic()
        await world.settle(SETTLE_SECONDS_MAX)
        log.info("settled seconds=%.1f", time.monotonic() - begun)
    return world, grown_mb


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_clients_of_all_types_when_everything_breaks_then_nothing_is_lost_and_order_holds(tmp_path: Path) -> None:
    """SOUNDNESS_SEED plays another game."""
    with asyncio.Runner(debug=False) as runner:  # with it 400 clients would not keep up
        world, grown_mb = runner.run(play(tmp_path / "data"))
    stored = sum(map(len, world.ledger.stored.values()))
    log.info(
        "played seed=%d messages=%d repeats=%d seeks=%d disconnections=%d restarts=%d grown_mb=%.1f",
        SEED,
        stored,
        world.ledger.repeats,
        world.seeks,
        world.disconnections,
        world.restarts,
        grown_mb,
    )
    assert world.ledger.missing() == {}
    assert world.ledger.broken == []
    assert grown_mb < LAST_LIFE_MB_MAX
    assert world.restarts == len(ENDS)
    happened = world.disconnections, world.seeks, stored
    assert all(count > floor for count, floor in zip(happened, HAPPENED_AT_LEAST, strict=True)), happened
