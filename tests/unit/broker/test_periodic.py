"""A run of a periodic task that fails does not end those after it."""

import asyncio
import logging

import pytest

from interpulse.broker.periodic import run_periodically
from interpulse.storage.zookeeper.errors import NotConnected


async def three_runs(failure: Exception) -> None:
    """Let the first of three runs fail."""
    runs: list[int] = []
    third_run = asyncio.Event()

    async def work() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            raise failure
        if len(runs) == 3:
            third_run.set()

    task = asyncio.create_task(run_periodically("upkeep", lambda: 0, work))
    await asyncio.wait_for(third_run.wait(), 60)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_work_when_the_metadata_cannot_be_reached_then_one_line_names_the_store_and_the_remedy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        await three_runs(NotConnected("zk1:2181,zk2:2181", 30.0, "reading /x"))
    (record,) = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)
    assert "task=upkeep" in record.getMessage()
    assert "zk1:2181,zk2:2181" in record.getMessage()
    assert "Check that they run" in record.getMessage()


async def test_work_goes_on_after_a_run_that_failed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        await three_runs(ZeroDivisionError("of the first run"))
    (record,) = caplog.records
    assert "task=upkeep" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)
