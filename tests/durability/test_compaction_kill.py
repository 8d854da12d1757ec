"""kill -9 while a topic is compacted under load: what is read compacted always says the same as the topic itself."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pulsar
import pytest

from tests.support.official_client import RECEIVE_MS, admin, connected
from tests.support.soak import soak
from tests.support.standalone_process import StandaloneProcess, free_port

TOPIC = "persistent://public/default/compacted"
PATH = TOPIC.replace("://", "/")
KEYS = 300
KILLS = soak(4, otherwise=2)
SEED = 20

Table = dict[str, bytes]


def publish_with_tombstones(client: pulsar.Client, number: int, count: int) -> int:
    """Values and some tombstones, half of them in batches; every one of them acknowledged."""
    for batched in (False, True):
        producer = client.create_producer(TOPIC, batching_enabled=batched, block_if_queue_full=True)
        for _ in range(count // 2):
            number += 1
            content = b"" if number % 7 == 0 else b"%d" % number
            producer.send_async(content, lambda result, _: None, partition_key=f"k{number * 31 % KEYS}")
        producer.flush()
        producer.close()
    return number


def table_of(client: pulsar.Client, *, compacted: bool) -> tuple[Table, int]:
    """The newest value of every key, and how many messages that took; positions only grow."""
    reader = client.create_reader(TOPIC, pulsar.MessageId.earliest, is_read_compacted=compacted)
    table: Table = {}
    count, before = 0, (-1, -1, -2)
    while reader.has_message_available():
        message = reader.read_next(RECEIVE_MS)
        id_ = message.message_id()
        assert before < (id_.ledger_id(), id_.entry_id(), id_.batch_index())
        before = (id_.ledger_id(), id_.entry_id(), id_.batch_index())
        count += 1
        if message.data():
            table[message.partition_key()] = message.data()
        else:
            table.pop(message.partition_key(), None)
    reader.close()
    return table, count


def ended(web_url: str) -> str:
    deadline = time.monotonic() + 60
    while (status := admin(web_url, "GET", f"{PATH}/compaction")["status"]) == "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return str(status)


@pytest.mark.interop
@pytest.mark.slow
def test_broker_when_killed_while_it_compacts_then_the_compacted_topic_says_the_same(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    arguments = (
        *("--port", free_port()),
        *("--set", "defaultRetentionTimeInMinutes=-1", "--set", "defaultRetentionSizeInMB=-1"),
    )
    broker = StandaloneProcess(tmp_path / "data", *arguments)
    number = hit = 0
    try:
        with connected(broker.service_url) as client:
            for kill in range(KILLS):
                number = publish_with_tombstones(client, number, 800)
                admin(broker.web_url, "PUT", f"{PATH}/compaction")
                time.sleep(chance.random() * 0.1 * (kill > 0))  # anywhere in a compaction, which takes about so long
                hit += admin(broker.web_url, "GET", f"{PATH}/compaction")["status"] == "RUNNING"
                broker.kill()
                broker = StandaloneProcess(tmp_path / "data", *arguments)
                whole, _ = table_of(client, compacted=False)
                assert table_of(client, compacted=True)[0] == whole
            admin(broker.web_url, "PUT", f"{PATH}/compaction")
            assert ended(broker.web_url) == "SUCCESS"
            whole, messages = table_of(client, compacted=False)
            left, _ = table_of(client, compacted=True)
            assert left == whole
            assert messages == number
            inside = admin(broker.web_url, "GET", f"{PATH}/internalStats")
            assert inside["compactedLedger"]["entries"] <= len(whole)
        assert hit, "no kill came while the topic was compacted"
    finally:
        broker.stop()
