"""Exactly once without ceremony, without a JVM, on our broker."""

import pytest

from tests.scenarios.client import Cluster
from tests.scenarios.exactly_once import (
    KILLED_AT,
    copy_entries_exactly_once,
    copy_messages_exactly_once,
    copy_messages_with_a_killed_worker,
    refuse_a_topic_that_does_not_deduplicate,
    write_ids_of_the_user_exactly_once,
)


@pytest.fixture
def cluster(broker):
    return Cluster(broker.service_url, broker.web_url)


@pytest.mark.parametrize("kill_at", KILLED_AT)
async def test_messages_are_stored_once_when_the_query_is_killed(cluster, tmp_path, kill_at):
    await copy_messages_exactly_once(cluster, tmp_path, kill_at)


@pytest.mark.parametrize("kill_at", KILLED_AT)
async def test_entries_are_stored_once_when_the_query_is_killed(cluster, tmp_path, kill_at):
    await copy_entries_exactly_once(cluster, tmp_path, kill_at)


async def test_ids_of_the_user_are_stored_once_by_whichever_query(cluster, tmp_path):
    await write_ids_of_the_user_exactly_once(cluster, tmp_path)


async def test_topic_that_does_not_deduplicate_is_refused(cluster, tmp_path):
    await refuse_a_topic_that_does_not_deduplicate(cluster, tmp_path)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_messages_are_stored_once_when_a_worker_is_killed_in_the_middle_of_its_task(spark, cluster, tmp_path):
    await copy_messages_with_a_killed_worker(spark, cluster, tmp_path)
