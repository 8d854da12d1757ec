"""The replication job as its own process between two clusters: exactly once, in order, whatever is killed."""

import signal
import time
from collections import Counter

import psutil
import pytest

from interpulse.model.names import TopicName
from interpulse.spark.state_files import LaneFiles
from interpulse.testing import InProcessBroker
from tests.spark.replication_job import (
    PARTITIONS,
    TOPIC,
    Job,
    assert_exactly_once,
    publish,
    read_all,
    wait_until,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]


# What has no subscription lies there while a job starts, which may take a minute on a busy machine.
KEPT = {"brokerDeleteInactiveTopicsEnabled": "false"}


@pytest.fixture
def east(tmp_path):
    with InProcessBroker(tmp_path / "east", {"clusterName": "east", **KEPT}) as broker:
        broker.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(TOPIC), PARTITIONS))
        yield broker


@pytest.fixture
def west(tmp_path):
    settings = {"clusterName": "west", "allowAutoTopicCreation": "false", **KEPT}
    with InProcessBroker(tmp_path / "west", settings) as broker:
        yield broker


@pytest.fixture
def job(tmp_path, east, west):
    job = Job(tmp_path, east, west)
    yield job
    job.stop()


def stored(broker):
    async def count(app):
        topics = [app.registry.get(TopicName.parse(TOPIC).partition(index)) for index in range(PARTITIONS)]
        return sum(topic.stats()["msgInCounter"] for topic in topics if topic is not None)

    return broker.call(count)


def test_everything_arrives_exactly_once_when_the_job_is_killed_mid_batch(job, east, west):
    publish(east, range(100))
    job.start()
    wait_until(lambda: job.lines("progress"))
    publish(east, range(100, 5100), batching_enabled=False)
    publish(east, range(5100, 10_100))
    wait_until(lambda: stored(west) > 1500)
    family = job.family()
    job.process.kill()
    job.process.wait()
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in family[1:]), 20)
    job.start()
    wait_until(lambda: stored(west) >= 10_100)
    job.stop()
    assert_exactly_once(read_all(west), 10_100)
    assert job.lines("provisioned")[0]["what"].startswith("flights created with 4 partitions")


def test_job_when_told_to_stop_then_leaves_no_process(job, east, west):
    publish(east, range(100))
    job.start()
    wait_until(lambda: stored(west) == 100)
    family = job.family()
    job.process.send_signal(signal.SIGTERM)
    assert job.process.wait(30) == 0
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in family), 30)


def test_job_when_told_to_stop_while_spark_starts_then_leaves_no_process_either(job, east, west):
    job.start()
    wait_until(lambda: len(job.family()) > 1)
    family = job.family()
    job.process.send_signal(signal.SIGTERM)
    assert job.process.wait(30) == 0
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in family), 30)


def test_target_that_is_away_for_a_while_is_caught_up_with(job, east, west):
    publish(east, range(100))
    job.start()
    wait_until(lambda: stored(west) == 100)
    port = west.service_url.rpartition(":")[2], west.web_url.rpartition(":")[2]
    west.stop()
    publish(east, range(100, 1100), batching_enabled=False)
    wait_until(lambda: job.lines("error") or job.lines("disconnected"))
    settings = {"clusterName": "west", "brokerServicePort": port[0], "webServicePort": port[1], **KEPT}
    with InProcessBroker(west.app.data_dir, settings) as again:
        wait_until(lambda: len(read_all(again)) >= 1100)
        job.stop()
        assert_exactly_once(read_all(again), 1100)


def test_partition_that_the_target_refuses_is_held_until_it_can_be_written_and_the_others_go_on(job, east, west):
    refused = TopicName.parse(TOPIC).partition(0)
    publish(east, range(100))
    job.start()
    wait_until(lambda: stored(west) == 100)
    west.call(lambda app: app.registry.get(refused).terminate())
    publish(east, range(100, 1100), batching_enabled=False)
    files = LaneFiles(str(job.config.parent / "state" / "west"))
    wait_until(lambda: str(refused) in files.held())
    publish(east, range(1100, 1200), batching_enabled=False)
    wait_until(lambda: sum(int(message.content) >= 1100 for message in read_all(west)) >= 50)
    assert "terminated" in files.held()[str(refused)].reason
    west.call(lambda app: app.registry.delete(refused, force=True))
    west.call(lambda app: app.lifecycle.create_missed_partitions(TopicName.parse(TOPIC)))
    wait_until(lambda: not files.held())
    job.stop()
    numbers = Counter(int(message.content) for message in read_all(west))
    assert set(numbers) >= set(range(100, 1200))
    assert max(numbers.values()) == 1


def test_nothing_comes_back_when_both_directions_run(tmp_path, east, west):
    there = Job(tmp_path, east, west)
    back_directory = tmp_path / "back"
    back_directory.mkdir()
    back = Job(back_directory, east, west)
    swapped = back.config.read_text().replace('"east"', '"?"').replace('"west"', '"east"').replace('"?"', '"west"')
    for one, other in ((east.service_url, west.service_url), (east.web_url, west.web_url)):
        swapped = swapped.replace(one, "<>").replace(other, one).replace("<>", other)
    back.config.write_text(swapped)
    publish(east, range(500))
    there.start()
    back.start()
    try:
        wait_until(lambda: stored(west) >= 500 and len(back.lines("progress")) >= 2)
        time.sleep(3)  # long enough for many more micro-batches
        assert len(read_all(east)) == 500
        assert_exactly_once(read_all(west), 500)
    finally:
        there.stop()
        back.stop()


def test_job_refuses_a_cluster_by_a_name_that_is_not_its_own(tmp_path, east, west):
    misnamed = Job(tmp_path, east, west, source="best")
    assert misnamed.start().process.wait(60) == 2
    told = misnamed.output.with_suffix(".err").read_text()
    assert f"[source] cluster: the cluster at {east.web_url} calls itself east, not best" in told
