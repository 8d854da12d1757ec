"""A new replication job begins where its file says on a real Pulsar, and makes the namespaces that one lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.interop.conftest import RealPulsarFactory
from tests.support.pipeline_turns import (
    TOPIC,
    Broker,
    Job,
    cursors_are_put_where_the_pipeline_begins,
    namespaces_are_created,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def play(
    scenario: Callable[[Job, str], Awaitable[None]], directory: Path, east: Broker, west: Broker, cursor: str
) -> None:
    job = Job(directory, east, west)
    try:
        await job.east.topics.create_partitioned(TOPIC, 2)
        await scenario(job, cursor)
    finally:
        await job.pipeline.stop()
        await asyncio.gather(job.east.close(), job.west.close())


async def test_cursors_of_a_real_pulsar_are_put_where_the_pipeline_begins(
    tmp_path: Path, start_real_pulsar: RealPulsarFactory
) -> None:
    east = start_real_pulsar("east").address
    with InProcessBroker(tmp_path / "west", {"clusterName": "west"}) as west:
        await play(cursors_are_put_where_the_pipeline_begins, tmp_path / "job", east, west, "interpulse.t")


async def test_namespace_is_created_on_a_real_pulsar(tmp_path: Path, start_real_pulsar: RealPulsarFactory) -> None:
    west = start_real_pulsar("west").address
    with InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east:
        await play(namespaces_are_created, tmp_path / "job", east, west, "pulsar.repl.west")
