"""kill -9 of the broker while it creates, grows and deletes: the next start finds everything done or nothing."""

from __future__ import annotations

import http.client
import math
import random
import threading
import time
from pathlib import Path

import pulsar
import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.storage.metadata.sqlite import SqliteMetadataStore
from tests.support.lifecycle_bench import disorder
from tests.support.official_client import connected
from tests.support.rest_client import Reply, call
from tests.support.soak import soak
from tests.support.standalone_process import StandaloneProcess

pytestmark = pytest.mark.slow

ARGUMENTS = ("--set", "forceDeleteNamespaceAllowed=true")
NAMESPACE = NamespaceName("public", "doomed")
X = TopicName.parse("public/doomed/x")
SECONDS_MAX = 120
SEED = 7
ATTEMPTS = soak(6, otherwise=4)
KILLS_INSIDE = soak(8, otherwise=2)
"""How many kills in the middle of a deletion are enough."""


async def ask(broker: StandaloneProcess, method: str, path: str, body: object = None) -> Reply:
    return await call(broker.web_url, method, path, body)


def killed_while(broker: StandaloneProcess, method: str, path: str, body: bytes, delay: float = math.inf) -> float:
    """Send one request, and kill the broker so many seconds later or after its answer; the seconds that took."""

    def send() -> None:
        host = broker.web_url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=SECONDS_MAX)
        try:
            connection.request(method, f"/admin/v2/{path}", body, {"Content-Type": "application/json"})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return  # it was killed before it could answer
        finally:
            connection.close()

    sender = threading.Thread(target=send)
    begun = time.monotonic()
    sender.start()
    sender.join(min(delay, SECONDS_MAX))
    passed = time.monotonic() - begun
    broker.kill()
    sender.join()
    return passed


async def stored(data_dir: Path) -> tuple[PartitionedTopicMetadata | None, int, list[str]]:
    """Of a broker that is down: the metadata of the topic, how many partitions are stored, and what is wrong."""
    store = await SqliteMetadataStore.open(data_dir / "metadata.sqlite")
    try:
        metadata = await store.get(keys.partitioned_topic(X))
        found = await store.scan(keys.partition_records(X), limit=100_000)
        partitions = sum(key.count("/") == 5 for key, _ in found)
        return PartitionedTopicMetadata.load(metadata.value) if metadata else None, partitions, await disorder(store)
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "before", "after"),
    [
        pytest.param("PUT", "persistent/public/doomed/x/partitions", b"3000", 0, 3000, id="create"),
        pytest.param("POST", "persistent/public/doomed/x/partitions", b"3000", 1000, 3000, id="expand"),
        pytest.param("DELETE", "persistent/public/doomed/x/partitions", b"", 1000, 0, id="delete"),
    ],
)
async def test_partitioned_topic_when_the_broker_is_killed_then_whole_or_not_there(
    tmp_path: Path, method: str, path: str, body: bytes, before: int, after: int
) -> None:
    """The first kill comes at once, the second after the answer, and each other one between the nearest two whose
    outcomes differ."""
    seen = set()
    delay, latest_before, earliest_after = 0.0, 0.0, math.inf
    for attempt in range(ATTEMPTS):
        data_dir = tmp_path / str(attempt)
        broker = StandaloneProcess(data_dir, *ARGUMENTS)
        assert (await ask(broker, "PUT", f"namespaces/{NAMESPACE}")).status == 204
        if method != "PUT":
            assert (await ask(broker, "PUT", path, 1000)).status == 204
        passed = killed_while(broker, method, path, body, delay)
        metadata, partitions, wrong = await stored(data_dir)
        assert wrong == []
        assert (metadata.partitions if metadata else 0) == partitions
        assert partitions == after if attempt == 1 else partitions in (before, after)
        seen.add(partitions)
        if partitions == before:
            latest_before = max(latest_before, passed)
        else:
            earliest_after = min(earliest_after, passed)
        delay = math.inf if attempt == 0 else (latest_before + earliest_after) / 2
    assert seen == {before, after}


async def test_namespace_when_the_broker_is_killed_while_deleting_it_then_the_next_start_finishes(
    tmp_path: Path,
) -> None:
    dice = random.Random(SEED)
    begun, too_soon, too_late = 0, 0.0, 0.4
    for attempt in range(8):
        if begun == KILLS_INSIDE:
            break
        data_dir = tmp_path / str(attempt)
        broker = StandaloneProcess(data_dir, *ARGUMENTS)
        assert (await ask(broker, "PUT", f"namespaces/{NAMESPACE}")).status == 204
        assert (await ask(broker, "PUT", "persistent/public/doomed/x/partitions", 5000)).status == 204
        delay = dice.uniform(too_soon, too_late)
        killed_while(broker, "DELETE", f"namespaces/{NAMESPACE}?force=true", b"", delay)
        _, partitions, _ = await stored(data_dir)
        begun += 0 < partitions < 5000
        if partitions == 5000:
            too_soon, too_late = delay, max(too_late, 2 * delay)
        elif partitions == 0:
            too_late = delay
        with StandaloneProcess(data_dir, *ARGUMENTS) as broker:
            await finished(broker)
            status = (await ask(broker, "GET", f"namespaces/{NAMESPACE}")).status
            names = (await ask(broker, "GET", f"persistent/{NAMESPACE}")).json
            assert (status, len(names)) == (200, 5000) or status == 404
            if status == 404:
                assert (await ask(broker, "PUT", f"namespaces/{NAMESPACE}")).status == 204
                assert (await ask(broker, "GET", f"persistent/{NAMESPACE}")).json == []
        _, _, wrong = await stored(data_dir)
        assert wrong == []
    assert begun, "no kill came in the middle of a deletion"


async def finished(broker: StandaloneProcess) -> None:
    """Until no deletion of an earlier life is under way."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        policies = await ask(broker, "GET", f"namespaces/{NAMESPACE}")
        if policies.status == 404 or not policies.json["deleted"]:
            return
    raise AssertionError("the deletion is not finished")


@pytest.mark.interop
async def test_truncated_topic_when_the_broker_is_killed_then_nothing_comes_back(tmp_path: Path) -> None:
    def read_all(client: pulsar.Client) -> list[bytes]:
        reader = client.create_reader("t", pulsar.MessageId.earliest)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60_000).data())
        reader.close()
        return found

    broker = StandaloneProcess(tmp_path / "data")
    with connected(broker.service_url) as client:
        consumer, producer = client.subscribe("t", "s"), client.create_producer("t")
        for number in range(300):
            producer.send(b"%d" % number)
        assert consumer.receive(60_000).data() == b"0"
        assert (await ask(broker, "DELETE", "persistent/public/default/t/truncate")).status == 204
        broker.kill()
    with StandaloneProcess(tmp_path / "data") as broker, connected(broker.service_url) as client:
        assert read_all(client) == []
        consumer, producer = client.subscribe("t", "s"), client.create_producer("t")
        producer.send(b"after")
        assert consumer.receive(60_000).data() == b"after"
        assert read_all(client) == [b"after"]
