"""A broker whose files cannot grow any more: refuses, serves what it has, forgets nothing it acknowledged."""

from __future__ import annotations

import contextlib
import time
import urllib.error
import urllib.request
from pathlib import Path

import pulsar
import pytest

from interpulse.model.errors import ServerError
from interpulse.storage.api import MetadataFull, Put
from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from interpulse.wire import pulsar_api_pb2 as pb
from tests.durability.small_disk import SmallDisk
from tests.support import commands
from tests.support.raw_client import RawClient, entry
from tests.support.standalone_process import StandaloneProcess

TOPIC = "persistent://public/default/full"
REST = "/admin/v2/persistent/public/default/full"
PAYLOAD = b"x" * 10_000
FILE_BYTES_MAX = 2 * 1024 * 1024


PATIENCE_SECONDS = 120


def answer(url: str, method: str = "GET") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=PATIENCE_SECONDS) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def metric(web_url: str, name: str) -> int:
    lines = answer(f"{web_url}/metrics")[1].splitlines()
    (line,) = (line for line in lines if line.startswith(name + "{"))
    return int(line.rpartition(" ")[2])


def wait_until_ready(web_url: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while answer(f"{web_url}/readyz")[0] != 200:
        assert time.monotonic() < until, "there is room, and the broker does not see it"
        time.sleep(0.05)


def send_when_let_in(producer: pulsar.Producer, payload: bytes) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            producer.send(payload)
            return
        except pulsar.ProducerBlockedQuotaExceededException:
            assert time.monotonic() < until, "the producer does not come back"


def fill_with_messages(producer: pulsar.Producer) -> list[bytes]:
    """What was acknowledged before the broker refused."""
    acknowledged: list[bytes] = []
    with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):  # noqa: PT012 - all but the last find room
        while True:
            payload = b"%d " % len(acknowledged) + 10 * PAYLOAD
            producer.send(payload)
            acknowledged.append(payload)
    assert acknowledged
    return acknowledged


def publish_until_refused(client: RawClient) -> tuple[int, int]:
    """How many entries were acknowledged, and the error that ended it."""
    acknowledged = 0
    while True:
        client.send(commands.send(1, acknowledged, entry(PAYLOAD, sequence_id=acknowledged)))
        command = client.receive().command
        if command.type != pb.BaseCommand.SEND_RECEIPT:
            break
        acknowledged += 1
    while command.type != pb.BaseCommand.SEND_ERROR:
        command = client.receive().command
    return acknowledged, command.send_error.error


def test_broker_when_its_disk_is_full_then_persistence_error_and_acknowledged_entries_stay(tmp_path: Path) -> None:
    with StandaloneProcess(tmp_path / "data", file_bytes_max=FILE_BYTES_MAX) as broker:
        with RawClient(broker.service_url) as client:
            client.ask(commands.producer(1, 1, TOPIC))
            acknowledged, error = publish_until_refused(client)
        assert error == ServerError.PersistenceError
        assert acknowledged > 100
        with RawClient(broker.service_url) as client:
            assert client.ask(commands.lookup(1, TOPIC)).request_id == 1
    with StandaloneProcess(tmp_path / "data") as broker, RawClient(broker.service_url) as client:
        client.ask(commands.subscribe(1, 1, TOPIC, "s", durable=False, initial_position=pb.CommandSubscribe.Earliest))
        client.send(commands.flow(1, acknowledged))
        for number in range(acknowledged):
            frame = client.receive()
            assert bytes(frame.entry or b"") == entry(PAYLOAD, sequence_id=number)


def test_broker_when_its_file_system_is_full_then_says_so_and_goes_on_by_itself_when_there_is_room(
    disk: SmallDisk,
) -> None:
    acknowledged: list[bytes] = []

    def send(producer: pulsar.Producer) -> None:
        payload = b"%d " % len(acknowledged) + PAYLOAD
        producer.send(payload)
        acknowledged.append(payload)

    with StandaloneProcess(disk.directory) as broker:
        client = pulsar.Client(broker.service_url)
        client.subscribe(TOPIC, "s")
        producer = client.create_producer(TOPIC, batching_enabled=False)
        for _ in range(20):
            send(producer)
        assert metric(broker.web_url, "interpulse_data_directory_full") == 0
        assert metric(broker.web_url, "interpulse_data_directory_free_bytes") > 1_000_000
        disk.fill()
        # Whoever gets no answer has pulsar.Timeout. Some messages may still find room.
        with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):  # noqa: PT012
            while True:
                send(producer)
        with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
            client.create_producer(f"{TOPIC}-other")
        for path in ("readyz", "admin/v2/brokers/health", "admin/v2/brokers/ready"):
            status, reason = answer(f"{broker.web_url}/{path}")
            assert (status, "out of room" in reason) == (503, True)
        assert answer(f"{broker.web_url}/livez") == (200, "ok")
        assert metric(broker.web_url, "interpulse_data_directory_full") == 1
        for number in range(10_000):
            status, reason = answer(f"{broker.web_url}{REST}-new-{number}", "PUT")
            if status != 204:
                break
        assert (status, "full" in reason) == (503, True), "what cannot be stored is refused with its reason"
        for method, path in (("DELETE", "truncate"), ("DELETE", "subscription/s"), ("DELETE", "")):
            status, reason = answer(f"{broker.web_url}{REST}/{path}".rstrip("/"), method)
            assert (status, "full" in reason) == (503, True), path
        disk.make_room()
        wait_until_ready(broker.web_url)
        send_when_let_in(producer, b"again")
        send(producer)
        broker.kill()
        client.shutdown()
    with StandaloneProcess(disk.directory) as broker:
        client = pulsar.Client(broker.service_url)
        consumer = client.subscribe(TOPIC, "s")
        wanted = set(acknowledged)
        while wanted:
            wanted.discard(consumer.receive(PATIENCE_SECONDS * 1000).data())
        client.close()


async def test_metadata_when_its_file_system_is_full_then_typed_error_and_every_commit_that_went_through_stays(
    disk: SmallDisk,
) -> None:
    said: list[str] = []
    path = disk.directory / "metadata.sqlite"
    store = await SqliteMetadataStore.open(path, on_full=said.append)
    stored: dict[str, bytes] = {}

    async def put(number: int) -> None:
        key, value = f"/key/{number}", b"%d" % number * 2000
        await store.commit([Put(key, value)])
        stored[key] = value

    for number in range(20):
        await put(number)
    disk.fill()
    with pytest.raises(MetadataFull, match="full"):  # noqa: PT012 - some may still find room
        for number in range(20, 100_000):
            await put(number)
    assert said
    assert "full" in said[0]
    disk.make_room()
    await put(-1)
    await store.close()
    again = await SqliteMetadataStore.open(path)
    assert {key: value.value for key, value in (await again.get_many(list(stored))).items()} == stored
    await again.close()


def test_broker_when_only_its_reserve_is_left_then_consumers_make_room_and_nothing_is_lost_by_a_kill(
    disk: SmallDisk,
) -> None:
    other = f"{TOPIC}-other"
    with StandaloneProcess(disk.directory) as broker:
        client = pulsar.Client(broker.service_url)
        client.subscribe(TOPIC, "s")
        client.subscribe(other, "s")
        client.create_producer(other).send(b"other")
        acknowledged = fill_with_messages(client.create_producer(TOPIC, batching_enabled=False))
        assert metric(broker.web_url, "interpulse_data_directory_free_bytes") > 1_000_000
        broker.kill()
        client.shutdown()
    with StandaloneProcess(disk.directory) as broker:
        assert answer(f"{broker.web_url}/readyz")[0] == 503
        client = pulsar.Client(broker.service_url)
        with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
            client.create_producer(TOPIC)
        consumer = client.subscribe([TOPIC, other], "s")
        wanted = {*acknowledged, b"other"}
        while wanted:
            message = consumer.receive(PATIENCE_SECONDS * 1000)
            wanted.discard(message.data())
            consumer.acknowledge(message)
        with contextlib.suppress(pulsar.Timeout):  # what was refused may have been stored all the same
            while True:
                consumer.acknowledge(consumer.receive(100))
        wait_until_ready(broker.web_url)
        send_when_let_in(client.create_producer(TOPIC), b"again")
        while consumer.receive(PATIENCE_SECONDS * 1000).data() != b"again":
            pass
        client.close()
    log = broker.log.read_text()
    assert "fenced" not in log
    assert "not stored" not in log


@pytest.mark.slow
def test_broker_when_only_its_reserve_is_left_then_every_remedy_works_and_the_producer_goes_on_by_itself(
    disk: SmallDisk,
) -> None:
    with StandaloneProcess(disk.directory) as broker:
        client = pulsar.Client(broker.service_url)
        for name in ("s", "idle"):
            client.subscribe(TOPIC, name).close()
        producer = client.create_producer(TOPIC, batching_enabled=False)
        for remedies in (
            [("POST", "subscription/s/skip_all"), ("POST", "subscription/idle/skip/100000")],
            [("POST", "subscription/s/expireMessages/1"), ("POST", "subscription/idle/expireMessages/1")],
            [("POST", "subscription/s/skip_all"), ("DELETE", "subscription/idle")],
            [("DELETE", "truncate")],
            [("DELETE", "?force=true")],
        ):
            fill_with_messages(producer)
            time.sleep(1.1)  # what expires has to be older than a second
            assert answer(f"{broker.web_url}/readyz")[0] == 503
            for method, path in remedies:
                separator = "" if path.startswith("?") else "/"
                status, reason = answer(f"{broker.web_url}{REST}{separator}{path}", method)
                assert status == 204, reason
            wait_until_ready(broker.web_url)
            send_when_let_in(producer, b"again")
        client.close()
    assert "fenced" not in broker.log.read_text()
