"""Reading by publish time, on ours and on a real Pulsar."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pyarrow as pa
import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.clock import now_ms
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.spark.options.option import OptionError
from interpulse.spark.writing.sink import write_rows
from interpulse.spark.writing.write_options import parse_write_options
from interpulse.wire import pulsar_api_pb2 as pb
from tests.scenarios.client import Cluster
from tests.support.spark_source import read_batch


async def read_between_times(cluster: Cluster) -> None:
    """Of two partitions, the first has a message every ten seconds, the second only an old one."""
    topic = f"persistent://public/default/times-{uuid4().hex[:8]}"
    begin = now_ms() // 1000 * 1000 - 100_000
    async with AdminClient(cluster.web_url) as admin:
        await admin.topics.create_partitioned(topic, 2)
        for index in range(2):
            await admin.topics.create_subscription(f"{topic}-partition-{index}", "keep", MessageId.of(EARLIEST))
    for index, times in enumerate(([begin + 10_000 * step for step in range(5)], [begin])):
        publish_at(cluster, f"{topic}-partition-{index}", times)

    def read(**options: str) -> list[int]:
        rows = read_batch({"service.url": cluster.service_url, "topic": topic, **options})
        return sorted((int(row["__publishTime"].timestamp() * 1000) - begin) // 1000 for row in rows)

    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    assert read() == [0, 0, 10, 20, 30, 40]
    assert read(startingTime=str(begin)) == [0, 0, 10, 20, 30, 40]
    assert read(startingTime=str(begin + 10_001), **latest) == [20, 30, 40]
    moment = datetime.fromtimestamp((begin + 30_000) / 1000, UTC).isoformat()
    assert read(startingTime=moment, **latest) == [30, 40]
    assert read(endingTime=str(begin + 20_000)) == [0, 0, 10]
    assert read(startingTime=str(begin + 10_000), endingTime=moment, **latest) == [10, 20]
    assert read(endingTime=f'{{"{topic}": {{"0": {begin + 10_000}}}}}') == [0, 0]
    assert read(startingTime=f'{{"{topic}-partition-0": {begin + 40_000}}}') == [0, 40]
    with pytest.raises(OptionError, match=rf"at or after it in {topic}-partition-1 at {begin + 1}; .*Strategy=latest"):
        read(startingTime=str(begin + 1))
    assert read(startingTime=str(now_ms() + 60_000), **latest) == []


def publish_at(cluster: Cluster, topic: str, times: list[int]) -> None:
    """Entries that say that they were published at these times."""
    metadata = [pb.MessageMetadata(producer_name="app", sequence_id=0, publish_time=each) for each in times]
    options = parse_write_options({"service.url": cluster.service_url, "mode": "entry"})
    rows = {
        "__topic": [topic] * len(times),
        "__ledgerId": [1] * len(times),
        "__entryId": list(range(len(times))),
        "__metadata": [each.SerializeToString() for each in metadata],
        "__payload": [b"x"] * len(times),
    }
    write_rows(options, iter([pa.record_batch(rows)]), {})
