"""The replication job between a real Pulsar and a broker of ours, both ways at once, killed on the way."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import TopicName
from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.spark.replication_job import (
    PARTITIONS,
    Job,
    assert_exactly_once,
    configure,
    partitions,
    publish_keyed,
    read_all,
    stored_entries,
    wait_until,
)

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Address]:
    settings = {"clusterName": "ours", "allowAutoTopicCreation": "false", "brokerDeleteInactiveTopicsEnabled": "false"}
    with InProcessBroker(tmp_path / "ours", settings) as broker:
        yield Address(broker.service_url, broker.web_url)


def create(topic: str, *clusters: Address) -> None:
    """In a namespace of its own: the real Pulsar is shared, and the job switches de-duplication on there."""

    async def create_on(cluster: Address) -> None:
        async with AdminClient(cluster.web_url) as admin:
            await admin.namespaces.create(TopicName.parse(topic).namespace_name)
            await admin.topics.create_partitioned(topic, PARTITIONS)

    for cluster in clusters:
        asyncio.run(create_on(cluster))


def is_in_a_batch(state: Path) -> bool:
    """Whether the query has planned a batch that is not committed, and has committed one that was not its first."""
    planned, committed = (
        max((int(path.name) for path in (state / "checkpoint" / kind).glob("[0-9]*")), default=-1)
        for kind in ("offsets", "commits")
    )
    return planned > committed > 0


def is_killed_in_a_batch(job: Job, states: Sequence[Path]) -> bool:
    """Kill it in a batch of both queries; whether one of them is left. Java may end them before it notices."""
    job.start().kill(when=lambda: all(map(is_in_a_batch, states)))
    return any(map(is_in_a_batch, states))


def test_everything_arrives_exactly_once_and_nothing_comes_back_when_the_job_is_killed_in_a_batch(
    tmp_path: Path, real_pulsar: Address, ours: Address
) -> None:
    topic = f"persistent://public/{uuid.uuid4().hex[:8]}/flights"
    clusters = {"standalone": real_pulsar, "ours": ours}
    real_side, our_side = clusters.items()
    create(topic, *clusters.values())
    for cluster in clusters.values():
        publish_keyed(cluster, range(500), topic=topic)
        publish_keyed(cluster, range(500, 2500), topic=topic, batching_enabled=False)

    def stored() -> list[int]:
        return [stored_entries(cluster, *partitions(topic)) for cluster in clusters.values()]

    published = sum(stored())
    there, back = tmp_path / "there", tmp_path / "back"
    job = Job(
        configure(there, real_side, our_side, topic=topic),
        configure(back, our_side, real_side, topic=topic),
    )
    states = there / "state" / "ours", back / "state" / "standalone"
    try:
        assert any(is_killed_in_a_batch(job, states) for _ in range(2)), "Java has ended all batches before it noticed"
        job.start()
        wait_until(lambda: min(stored()) >= published)
        # Each direction has looked at all that the other one brought once it has copied what was published after that.
        for cluster in clusters.values():
            publish_keyed(cluster, range(2500, 2550), topic=topic, batching_enabled=False)
        wait_until(lambda: min(stored()) >= published + 100)
    finally:
        job.stop()
    for name, cluster in clusters.items():
        (other,) = clusters.keys() - {name}
        found = read_all(cluster, topic)
        assert_exactly_once(found, range(2550), source=other)
        assert_exactly_once(found, range(2550), source=None)
        assert len(found) == 2 * 2550
