"""``produce`` and ``consume`` against our broker, beside the official client."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pulsar
import pytest

from interpulse.client import AdminClient, Client
from interpulse.sync import Client as SyncClient
from interpulse.testing import InProcessBroker
from tests.support.cli_cluster import CliCluster
from tests.support.waiting import until


@pytest.fixture
def cluster(pulsar_broker: InProcessBroker) -> CliCluster:
    return CliCluster(pulsar_broker.web_url, pulsar_broker.service_url)


def test_messages_when_produced_to_partitions_then_are_consumed_in_order_of_their_key(cluster: CliCluster) -> None:
    cluster.run("topics create-partitioned-topic keyed -p 4")
    cluster.run("topics create-subscription keyed -s s -m earliest")
    cluster.produce("keyed", "-m", "1,2,3,4,5", "-k", "one", "-n", "10")
    contents = cluster.consume("keyed", "-s", "s", "-n", "50")
    assert contents == [f"[one], properties:[], content:{number}" for number in [1, 2, 3, 4, 5] * 10]


def test_pattern_when_given_then_all_its_topics_are_consumed(cluster: CliCluster) -> None:
    for name in ("many-a", "many-b", "other"):
        cluster.produce(name, "-m", name)
    contents = cluster.consume("public/default/many-.", "--regex", "-s", "s", "-p", "earliest", "-n", "2")
    assert sorted(row.rpartition(":")[2] for row in contents) == ["many-a", "many-b"]


async def publish_when_consumed(cluster: CliCluster, consumed: str, topic: str) -> None:
    async with AdminClient(cluster.web_url) as admin, Client(cluster.service_url) as client:
        async with asyncio.timeout(60):
            while not (await admin.topics.stats(consumed))["subscriptions"]:  # noqa: ASYNC110  # the command acts
                await asyncio.sleep(0.02)
        async with await client.create_producer(topic) as producer:
            await producer.send(b"late")


def test_pattern_when_a_topic_comes_later_then_it_is_consumed_too(cluster: CliCluster) -> None:
    cluster.produce("late-a", "-m", "early")
    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(asyncio.run, publish_when_consumed(cluster, "late-a", "late-b"))
        contents = cluster.consume("late-.", "--regex", "-s", "s", "-p", "earliest", "-n", "2")
        publishing.result()
    assert [row.rpartition(":")[2] for row in contents] == ["early", "late"]


def test_files_when_produced_then_each_is_a_message(cluster: CliCluster, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"a,b")
    (tmp_path / "two").write_bytes(b"c")
    cluster.produce("files", "-f", f"{tmp_path}/one,{tmp_path}/two", "-db")
    contents = cluster.consume("files", "-s", "s", "-p", "Earliest", "-n", "2")
    assert [row.rpartition(":")[2] for row in contents] == ["a,b", "c"]


@pytest.mark.interop
def test_messages_when_produced_then_the_official_client_reads_them(cluster: CliCluster) -> None:
    cluster.produce("mixed", "-m", "hello", "-k", "key", "-p", "a=b", "--disable-replication")
    client = pulsar.Client(cluster.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        reader = client.create_reader("mixed", pulsar.MessageId.earliest)
        message = reader.read_next(60_000)
        assert (message.data(), message.partition_key(), message.properties()) == (b"hello", "key", {"a": "b"})
        producer = client.create_producer("mixed")
        producer.send(b"back", partition_key="k2")
    finally:
        client.close()
    contents = cluster.consume("mixed", "-s", "s", "-p", "Earliest", "-n", "2")
    assert contents == ["[key], properties:[a=b], content:hello", "[k2], properties:[], content:back"]


def test_consume_when_topic_may_not_be_created_then_says_so(cluster: CliCluster) -> None:
    cluster.run("namespaces set-auto-topic-creation public/default -d")
    with pytest.raises(AssertionError, match="Error: "):
        cluster.consume("absent", "-s", "s", "--timeout", "2")


def test_listener_when_unknown_to_the_broker_then_says_so(cluster: CliCluster) -> None:
    cluster.produce("listened", "-m", "x")
    with pytest.raises(AssertionError, match=r"Error: .*outside"):
        cluster.produce("listened", "-m", "x", "--listener-name", "outside", "--timeout", "3")


@contextmanager
def interpulse(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, which does not outlive a test that fails."""
    program = str(Path(sys.executable).with_name("interpulse"))
    pipe = subprocess.PIPE
    with subprocess.Popen([program, *arguments], text=True, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()  # nothing happens to one that has ended


def test_standard_input_when_produced_then_each_line_is_a_message_as_soon_as_it_is_there(cluster: CliCluster) -> None:
    cluster.run("topics create lines")
    cluster.run("topics create-subscription lines -s s")
    with interpulse("produce", "lines", "-f", "-", "-k", "k", "--url", cluster.service_url) as sending:
        assert sending.stdin is not None
        sending.stdin.write("a,b\n\n")
        sending.stdin.flush()
        assert cluster.consume("lines", "-s", "s", "-n", "2") == [
            f"[k], properties:[], content:{text}" for text in ("a,b", "")
        ]
        _, error = sending.communicate("last", timeout=60)
    assert (sending.returncode, error) == (0, "3 messages successfully produced\n")


def test_file_as_standard_input_when_produced_then_each_line_is_a_message(cluster: CliCluster, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("1\n2\r\n3")
    program = str(Path(sys.executable).with_name("interpulse"))
    with (tmp_path / "rows").open() as rows:
        command = [program, "produce", "rows", "-f", "-", "--url", cluster.service_url]
        subprocess.run(command, stdin=rows, check=True, capture_output=True, timeout=60)
    contents = cluster.consume("rows", "-s", "s", "-p", "Earliest", "-n", "3")
    assert [row.rpartition(":")[2] for row in contents] == ["1", "2", "3"]


def test_produce_when_interrupted_then_says_how_many_are_acknowledged(cluster: CliCluster) -> None:
    cluster.run("topics create slow")
    cluster.run("topics create-subscription slow -s s")
    arguments = ("produce", "slow", "-m", "x", "-n", "100000", "-r", "50", "--url", cluster.service_url)
    with interpulse(*arguments) as sending:
        cluster.consume("slow", "-s", "s", "-n", "3")
        sending.send_signal(signal.SIGINT)
        _, error = sending.communicate(timeout=60)
    count, words = error.splitlines()[0].split(" of 100000 messages acknowledged")
    assert 1 <= int(count) < 100_000  # the receipt of what was consumed last may still be on its way
    assert words in ("", "; 1 more may be stored although no acknowledgement came")
    assert sending.returncode == 1


def test_messages_when_wanted_as_json_then_each_line_is_an_object(cluster: CliCluster) -> None:
    cluster.produce("objects", "-m", "a,b", "-p", "x=1")
    rows = cluster.consume_raw("objects", "-p", "Earliest", "-n", "2", "-o", "json").splitlines()
    assert [json.loads(row)["content"] for row in rows] == ["a", "b"]
    assert cluster.json("topics stats objects")["subscriptions"].keys() == {"interpulse-consume"}


def test_produce_when_the_topic_keeps_nothing_then_says_so(cluster: CliCluster) -> None:
    warned = cluster.produce("unkept", "-m", "x", "--admin-url", cluster.web_url)
    assert "Warning: persistent://public/default/unkept has neither a subscription nor retention" in warned
    cluster.run("topics create-subscription unkept -s s")
    assert cluster.produce("unkept", "-m", "x", "--admin-url", cluster.web_url) == "1 messages successfully produced\n"


RECORD = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'


@pytest.mark.parametrize("encoding", ["separated", "inline"])
def test_keys_and_values_when_produced_in_a_schema_then_are_read_by_it(cluster: CliCluster, encoding: str) -> None:
    keys = ["-ks", "string", "-kvet", encoding, "-kvk", "k"]
    cluster.produce("pairs", "-vs", f"avro:{RECORD}", *keys, "-s", "", "-m", '{"a": 1}', "-m", '{"a": 2}')
    rows = cluster.rows("read", "pairs", "-m", "earliest", "-n", "2", "-st", "auto_consume")
    key = "{value=k, type=class java.lang.String}"
    assert [row.partition("content:")[2] for row in rows if "content:" in row] == [
        f"{{key={key}, value={{a={number}}}}}" for number in (1, 2)
    ]


def test_read_when_begun_at_a_message_then_leaves_no_subscription(cluster: CliCluster) -> None:
    cluster.produce("plain", "-m", "1,2,3", "-db")
    (first, *_) = [json.loads(row) for row in cluster.rows("read", "plain", "-m", "earliest", "-o", "json")]
    ledger, entry, *_ = first["messageId"].split(":")
    for flags, content in (([], "2"), (["-i"], "1")):
        (row,) = cluster.rows("read", "plain", "-m", f"{ledger}:{entry}", *flags, "-o", "json")
        assert json.loads(row)["content"] == content
    assert cluster.run("topics subscriptions plain") == ""


def test_consume_when_bounded_by_times_then_prints_what_was_published_between(cluster: CliCluster) -> None:
    cluster.run("topics create-subscription timed -s s -m earliest")
    cluster.produce("timed", "-m", "1,2,3", "-db", "-r", "50")
    rows = [json.loads(row) for row in cluster.rows("read", "timed", "-m", "earliest", "-n", "3", "-o", "json")]
    times = [round(datetime.fromisoformat(row["publishTime"]).timestamp() * 1000) for row in rows]
    bounds = ["-stp", str(times[1]), "-etp", str(times[1])]
    consumed = cluster.rows("consume", "timed", "-s", "s", "-n", "0", *bounds, "-o", "json")
    expected = [row["content"] for row, at in zip(rows, times, strict=True) if at == times[1]]  # a late one has company
    assert "2" in expected
    assert [json.loads(row)["content"] for row in consumed] == expected


def test_subscription_when_it_is_not_durable_then_ends_with_its_consumer(cluster: CliCluster) -> None:
    cluster.produce("passing", "-m", "1,2")
    for _ in range(2):
        rows = cluster.consume("passing", "-s", "s", "-m", "NonDurable", "-p", "Earliest", "-n", "2", "-t", "Shared")
        assert [row.rpartition(":")[2] for row in rows] == ["1", "2"]
    assert cluster.run("topics subscriptions passing") == ""


def test_topics_when_listed_by_bundle_then_each_is_in_one(cluster: CliCluster) -> None:
    names = [f"persistent://public/default/split-{number}" for number in range(16)]
    for name in names:
        cluster.run(f"topics create {name}")
    ends = cluster.json("namespaces bundles public/default")["boundaries"]
    listed = [
        cluster.run(f"topics list public/default -td persistent -b {lower}_{upper}").split()
        for lower, upper in pairwise(ends)
    ]
    assert sorted(name for part in listed for name in part) == sorted(names)
    assert all(
        cluster.run(f"topics bundle-range {part[0]}").strip() == f"{ends[at]}_{ends[at + 1]}"
        for at, part in enumerate(listed)
        if part
    )
    assert cluster.attempt("topics list public/default -b 0x00000000_0x00000001")[0] == 1


def test_consume_when_the_broker_goes_and_comes_back_then_tells_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("interpulse.client.outages._LOGGED_AFTER_S", 0)
    with InProcessBroker(tmp_path) as broker, ThreadPoolExecutor(1) as pool:
        cluster = CliCluster(broker.web_url, broker.service_url)
        cluster.run("topics create lost")
        cluster.run("topics create-subscription lost -s s")
        consuming = pool.submit(cluster.consume, "lost", "-s", "s", "-n", "1")
        until(lambda: cluster.json("topics stats lost")["subscriptions"]["s"]["consumers"])
        broker.restart()
        with SyncClient(broker.service_url) as client, client.create_producer("lost") as producer:
            producer.send(b"late")
        assert [row.rpartition(":")[2] for row in consuming.result()] == ["late"]
        told = [record.getMessage() for record in caplog.records if record.name == "interpulse.client.outages"]
        assert len(told) == 2
        assert told[0].startswith(f"cluster does not answer, waiting for it place={broker.service_url} ")
        assert told[1].startswith(f"cluster answers again place={broker.service_url} ")


@pytest.mark.slow
def test_produce_when_the_broker_stays_away_then_ends_after_the_timeout(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker:
        cluster = CliCluster(broker.web_url, broker.service_url)
        cluster.run("topics create gone")
        cluster.run("topics create-subscription gone -s s")
        arguments = ("produce", "gone", "-m", "x", "-n", "1000000", "-r", "50", "--timeout", "8")
        with interpulse(*arguments, "--url", broker.service_url) as sending:
            until(lambda: cluster.json("topics stats gone")["msgInCounter"])
            broker.stop()
            _, error = sending.communicate(timeout=120)
    assert sending.returncode == 5
    assert error.count(" cluster does not answer, waiting for it place=") == 1
    assert " of 1000000 messages acknowledged; " in error
    assert error.endswith("gone: no receipt within 8 s\n")
