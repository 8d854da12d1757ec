"""The replication job carries subscriptions along, where one of the clusters is a real Pulsar."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.interop.conftest import RealPulsarFactory
from tests.support.pipeline_turns import TOPIC, Broker, Job, subscriptions_go_along

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def carry_along(directory: Path, east: Broker, west: Broker, cursor: str) -> None:
    job = Job(directory, east, west)
    try:
        await job.east.topics.create_partitioned(TOPIC, 2)
        await subscriptions_go_along(job, cursor)
    finally:
        await job.pipeline.stop()
        await asyncio.gather(job.east.close(), job.west.close())


async def test_subscriptions_go_along_to_a_real_pulsar(tmp_path: Path, start_real_pulsar: RealPulsarFactory) -> None:
    west = start_real_pulsar("west").address
    with InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east:
        await carry_along(tmp_path / "job", east, west, "pulsar.repl.west")


async def test_subscriptions_go_along_from_a_real_pulsar(tmp_path: Path, start_real_pulsar: RealPulsarFactory) -> None:
    east = start_real_pulsar("east").address
    with InProcessBroker(tmp_path / "west", {"clusterName": "west"}) as west:
        await carry_along(tmp_path / "job", east, west, "interpulse.t")
