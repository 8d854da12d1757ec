"""Exactly once without ceremony, on a real Pulsar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.interop.real_pulsar import Address
from tests.scenarios.client import Cluster
from tests.scenarios.exactly_once import (
    KILLED_AT,
    copy_entries_exactly_once,
    copy_messages_exactly_once,
    copy_messages_with_a_killed_worker,
    refuse_a_topic_that_does_not_deduplicate,
    write_ids_of_the_user_exactly_once,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture
def cluster(real_pulsar: Address) -> Cluster:
    return Cluster(real_pulsar.service_url, real_pulsar.web_url)


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    from interpulse.spark.session import start_session

    session = start_session("tests", master="local[2,4]", driver_memory="700m", directory=tmp_path / "spark", conf={})
    yield session
    session.stop()


@pytest.mark.parametrize("kill_at", KILLED_AT)
async def test_messages_and_entries_are_stored_once_when_the_query_is_killed(
    cluster: Cluster, tmp_path: Path, kill_at: str
) -> None:
    await copy_messages_exactly_once(cluster, tmp_path / "messages", kill_at)
    await copy_entries_exactly_once(cluster, tmp_path / "entries", kill_at)


async def test_ids_of_the_user_are_stored_once_by_whichever_query(cluster: Cluster, tmp_path: Path) -> None:
    await write_ids_of_the_user_exactly_once(cluster, tmp_path)


async def test_topic_that_does_not_deduplicate_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    await refuse_a_topic_that_does_not_deduplicate(cluster, tmp_path)


@pytest.mark.spark
@pytest.mark.timeout(900)
async def test_messages_are_stored_once_when_a_worker_is_killed_in_the_middle_of_its_task(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    await copy_messages_with_a_killed_worker(spark, cluster, tmp_path / "checkpoint")
