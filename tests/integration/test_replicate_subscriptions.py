"""Subscriptions that go along with their topics, and heartbeats, between two brokers of ours without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from interpulse.spark.job.heartbeat import send_heartbeats
from interpulse.spark.job.pipeline_config import HeartbeatSettings
from interpulse.spark.job.selection import select
from interpulse.testing import InProcessBroker
from tests.support.pipeline_turns import BY_HAND, TOPIC, Job, is_ready, subscriptions_go_along


@pytest.fixture
async def job(tmp_path: Path) -> AsyncIterator[Job]:
    with (
        InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east,
        InProcessBroker(tmp_path / "west", {"clusterName": "west"}) as west,
    ):
        job = Job(tmp_path / "job", east, west)
        await job.east.topics.create_partitioned(TOPIC, 2)
        yield job
        await job.pipeline.stop()
        await asyncio.gather(job.east.close(), job.west.close())


async def test_subscriptions_go_along(job: Job) -> None:
    await subscriptions_go_along(job, "pulsar.repl.west", into_use=True)


async def test_heartbeats_tell_how_long_they_took(job: Job) -> None:
    settings = HeartbeatSettings(namespace="public/default", interval_ms=50)
    job.pipeline = job.selecting(BY_HAND, heartbeat=settings)
    config = job.pipeline.route.config
    beating = asyncio.create_task(send_heartbeats(config, job.east))
    topic = config.heartbeat_topic
    assert topic is not None
    async with asyncio.timeout(60):
        while not job.events or job.events[-1]["event"] != "heartbeat":
            ((_, selection),) = (await select(replace(config, target=job.clusters["west"]), job.east)).items()
            if topic in selection.topics:
                await job.pipeline.update({topic: 0})
                (records,) = job.pipeline.records().values()
                if all(map(is_ready, records)):
                    await job.copy(topic)
            await asyncio.sleep(0.05)
    beating.cancel()
    assert str(topic) == "persistent://public/default/__interpulse_heartbeat-t"
    assert 0 <= job.events[-1]["delayMs"] < 60_000
    assert job.events[-1]["cluster"] == "west"
