"""The replication job on a Spark standalone cluster of three processes, whose machines and driver die under load."""

import pytest

from interpulse.model.names import TopicName
from interpulse.spark.class_archive.archive import java_options
from interpulse.testing import InProcessBroker
from tests.spark.replication_job import (
    PARTITIONS,
    TOPIC,
    Job,
    Load,
    assert_exactly_once,
    configure,
    read_all,
    stored_entries,
    wait_until,
)
from tests.spark.standalone_cluster import EXECUTOR_MB, spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.slow]

KEPT = {
    "brokerDeleteInactiveTopicsEnabled": "false",
    "retentionCheckIntervalInSeconds": "3600",
    "brokerDeduplicationEnabled": "true",
}


def test_job_when_a_machine_and_the_driver_die_then_everything_arrives_once_and_in_order(tmp_path):
    with (
        spark_cluster(tmp_path / "spark", machines=2) as cluster,
        InProcessBroker(tmp_path / "east", {"clusterName": "east", **KEPT}) as east,
        InProcessBroker(tmp_path / "west", {"clusterName": "west", **KEPT}) as west,
    ):
        east.call(lambda app: app.lifecycle.create_partitioned(TopicName.parse(TOPIC), PARTITIONS))
        executors = {
            "spark.executor.memory": f"{EXECUTOR_MB}m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": java_options(),
        }
        sides = ("east", east), ("west", west)
        job = Job(configure(tmp_path, *sides, master=cluster.master, conf=executors, entries_per_batch=2000))

        def copied_more(count=500):
            """Beyond what was there when it was asked for."""
            before = stored_entries(west)
            wait_until(lambda: stored_entries(west) >= before + count)

        try:
            with Load(east) as load:
                job.start()
                copied_more()
                wait_until(lambda: len(cluster.busy_machines()) == 2)
                cluster.kill_a_busy_machine()
                copied_more()
                job.kill(when=lambda: True)
                job.start()
                copied_more()
            wait_until(lambda: stored_entries(west) >= load.count)
        finally:
            job.stop()
        assert cluster.state()["aliveworkers"] == 1
        assert_exactly_once(read_all(west), range(load.count))
    assert not any(machine.is_running() for machine in cluster.machines)
