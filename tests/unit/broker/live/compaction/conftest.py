"""Compaction is the same for topics of a broker that is alone, and for those that brokers share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.broker.live.conftest import LiveBench, running


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[LiveBench]:
    async with running(LiveBench(shared=request.param)) as bench:
        yield bench
