"""The replication job between a real Pulsar and a broker of ours, in both directions, killed on the way."""

import asyncio
import uuid

import psutil
import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import TopicName
from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.spark import replication_job
from tests.spark.replication_job import Job, assert_exactly_once, publish, read_all, stored_entries, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.slow]


@pytest.fixture
def topic(monkeypatch):
    """In a namespace of this test's own: the real Pulsar is shared, and the job switches de-duplication on there."""
    name = f"persistent://public/{uuid.uuid4().hex[:8]}/flights"
    monkeypatch.setattr(replication_job, "TOPIC", name)
    return name


@pytest.fixture
def ours(tmp_path):
    settings = {"clusterName": "ours", "allowAutoTopicCreation": "false", "brokerDeleteInactiveTopicsEnabled": "false"}
    with InProcessBroker(tmp_path / "ours", settings) as broker:
        yield Address(broker.service_url, broker.web_url)


def create(source, target, topic):
    async def ask():
        async with AdminClient(source.web_url) as admin, AdminClient(target.web_url) as other:
            for each in (admin, other):
                await each.namespaces.create(TopicName.parse(topic).namespace_name)
            await admin.topics.create_partitioned(topic, replication_job.PARTITIONS)

    asyncio.run(ask())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("direction", ["from-real", "to-real"])
def test_everything_arrives_exactly_once_when_the_job_is_killed(tmp_path, topic, real_pulsar, ours, direction):
    source, target = (real_pulsar, ours) if direction == "from-real" else (ours, real_pulsar)
    names = ("standalone", "ours") if direction == "from-real" else ("ours", "standalone")
    create(source, target, topic)
    publish(source, range(100))
    job = Job(tmp_path, source, target, *names)
    try:
        job.start()
        wait_until(lambda: job.lines("progress"))
        publish(source, range(100, 3100), batching_enabled=False)
        publish(source, range(3100, 6100))
        wait_until(lambda: stored_entries(target) > 500)
        family = job.family()
        job.process.kill()
        job.process.wait()
        wait_until(lambda: not any(psutil.pid_exists(pid) for pid in family[1:]), 20)
        job.start()
        wait_until(lambda: stored_entries(target) == stored_entries(source))
    finally:
        job.stop()
    assert_exactly_once(read_all(target), 6100, names[0])
