"""The replication job as its own process between two clusters of ours; killed it is in tests/interop."""

import signal

import pytest

from interpulse.model.names import TopicName
from interpulse.spark.state_files import LaneFiles
from interpulse.testing import InProcessBroker
from tests.spark.replication_job import (
    PARTITIONS,
    TOPIC,
    Job,
    assert_exactly_once,
    configure,
    publish_keyed,
    read_all,
    stored_entries,
    wait_until,
    wait_until_gone,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]


# What has no subscription lies there while a job starts, which may take a minute on a busy machine.
KEPT = {"brokerDeleteInactiveTopicsEnabled": "false", "retentionCheckIntervalInSeconds": "3600"}


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
    job = Job(configure(tmp_path, ("east", east), ("west", west)))
    yield job
    job.stop()


def test_job_outlives_what_happens_to_its_target_and_leaves_no_process_when_told_to_stop(job, tmp_path, east, west):
    publish_keyed(east, range(100))
    job.start()
    wait_until(lambda: job.lines("provisioned"))
    wait_until(lambda: len(read_all(west)) >= 100)
    assert job.lines("provisioned")[0]["what"].startswith("flights created with 4 partitions")
    catch_up_with_a_target_that_was_away(job, east, west)
    hold_a_refused_partition_while_the_others_go_on(LaneFiles(str(tmp_path / "state" / "west")), east, west)
    family = job.family()
    assert len(family) > 1, "Java is among them"
    job.process.send_signal(signal.SIGTERM)
    assert job.process.wait(180) == 0
    wait_until_gone(family)


def catch_up_with_a_target_that_was_away(job, east, west):
    west.stop()
    publish_keyed(east, range(100, 1100), batching_enabled=False)
    wait_until(lambda: job.lines("error") or job.lines("disconnected"))
    west.restart()
    wait_until(lambda: stored_entries(west) >= stored_entries(east))
    assert_exactly_once(read_all(west), range(1100))


def hold_a_refused_partition_while_the_others_go_on(files, east, west):
    refused = TopicName.parse(TOPIC).partition(0)
    west.call(lambda app: app.registry.get(refused).terminate())
    gone = {number for number, partition in numbers_of(west) if partition == refused}
    publish_keyed(east, range(1100, 2100), batching_enabled=False)
    wait_until(lambda: str(refused) in files.held())
    assert "terminated" in files.held()[str(refused)].reason
    publish_keyed(east, range(2100, 2200), batching_enabled=False)
    after = {number for number, partition in numbers_of(east) if number >= 2100 and partition != refused}
    wait_until(lambda: after <= {number for number, _ in numbers_of(west)})
    wait_until(lambda: str(refused) in files.held())  # a batch that begins tries it once more
    west.call(lambda app: app.registry.delete(refused, force=True))
    west.call(lambda app: app.lifecycle.create_missed_partitions(TopicName.parse(TOPIC)))
    wait_until(lambda: not files.held())
    expected = set(range(2200)) - gone
    wait_until(lambda: expected <= {number for number, _ in numbers_of(west)})  # the next batch may have the last ones
    assert_exactly_once(read_all(west), expected)


def numbers_of(broker):
    return [(int(message.content or b""), TopicName.parse(message.topic)) for message in read_all(broker)]


def test_job_when_told_to_stop_while_spark_starts_then_leaves_no_process_either(job, east, west):
    job.start()
    wait_until(lambda: len(job.family()) > 1)
    family = job.family()
    job.process.send_signal(signal.SIGTERM)
    assert job.process.wait(180) == 0
    wait_until_gone(family)


def test_job_refuses_a_cluster_by_a_name_that_is_not_its_own(tmp_path, east, west):
    misnamed = Job(configure(tmp_path, ("best", east), ("west", west)))
    assert misnamed.start().process.wait(180) == 2
    assert f"[source] cluster: the cluster at {east.web_url} calls itself east, not best" in misnamed.errors()
