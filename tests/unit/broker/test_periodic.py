"""A run of a periodic task that fails does not end those after it."""

import asyncio
import logging

import pytest

from interpulse.broker.periodic import run_periodically


async def test_work_goes_on_after_a_run_that_failed(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[int] = []
    third_run = asyncio.Event()

    async def work() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            raise ZeroDivisionError("of the first run")
        if len(runs) == 3:
            third_run.set()

    with caplog.at_level(logging.ERROR):
        task = asyncio.create_task(run_periodically("upkeep", lambda: 0, work))
        await asyncio.wait_for(third_run.wait(), 60)
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    (record,) = caplog.records
    assert "task=upkeep" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)
