"""The replication job writes topics under other names, where one of the clusters is a real Pulsar."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.interop.conftest import RealPulsarFactory
from tests.support.pipeline_turns import OTHER, PLAIN, TOPIC, Broker, Job, topics_are_written_under_other_names

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def write_under_other_names(directory: Path, east: Broker, west: Broker, cursor: str) -> None:
    job = Job(directory, east, west)
    try:
        await job.east.topics.create_partitioned(TOPIC, 2)
        for name in (OTHER, PLAIN):
            await job.east.topics.create(name)
        await topics_are_written_under_other_names(job, cursor)
    finally:
        await job.pipeline.stop()
        await asyncio.gather(job.east.close(), job.west.close())


async def test_topics_are_written_to_a_real_pulsar_under_the_names_that_rules_give(
    tmp_path: Path, start_real_pulsar: RealPulsarFactory
) -> None:
    west = start_real_pulsar("west").address
    with InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east:
        await write_under_other_names(tmp_path / "job", east, west, "pulsar.repl.west")


async def test_topics_of_a_real_pulsar_are_written_under_the_names_that_rules_give(
    tmp_path: Path, start_real_pulsar: RealPulsarFactory
) -> None:
    east = start_real_pulsar("east").address
    with InProcessBroker(tmp_path / "west", {"clusterName": "west"}) as west:
        await write_under_other_names(tmp_path / "job", east, west, "interpulse.t")
