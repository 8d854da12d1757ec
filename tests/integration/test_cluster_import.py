"""The data directory of a standalone broker, imported into a cluster on a ZooKeeper and bookies in this process."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interpulse.broker.app import BrokerApp
from interpulse.broker.cluster_import import topic_copy
from interpulse.broker.cluster_import.topic_copy import TopicCopies
from interpulse.broker.cluster_stores import in_cluster
from interpulse.broker.config.config_sources import load_config
from interpulse.broker.tenancy.cluster_setup import NewCluster, set_up_cluster
from interpulse.cli.main import main
from interpulse.client import Client
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import PersistenceError, TopicTerminated
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.storage.bookkeeper.journal import BookKeeperJournal
from interpulse.storage.bookkeeper.records import id_of
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import NoNode
from tests.support.rest_client import call
from tests.support.scripted_bookie import scripted_bookies
from tests.support.scripted_zookeeper import scripted_zookeeper

Start = Callable[..., Awaitable[BrokerApp]]
Import = Callable[..., Awaitable[Result]]

SCHEMAS = ['{"type":"record","name":"R","fields":[]}', '{"type":"record","name":"R2","fields":[]}']
PARTS = {"subscription_type": "shared", "batch_index_ack_enabled": True}
BY_INDEX = {"acknowledgmentAtBatchIndexLevelEnabled": "true"}
PUBLISHED = 12
ACKNOWLEDGED = {0, 1, 2, 4, 9}


@pytest.fixture
async def nodes() -> AsyncIterator[ZooKeeperClient]:
    """A client of a ZooKeeper with the cluster lab and three bookies."""
    async with scripted_zookeeper() as zookeeper, AsyncExitStack() as running:
        servers = await zookeeper.listen()
        await set_up_cluster(servers, NewCluster("lab", ClusterData("http://127.0.0.1:1")))
        client = await ZooKeeperClient.connect(servers)
        running.push_async_callback(client.close)
        await running.enter_async_context(scripted_bookies(client, 3))
        yield client


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[BrokerApp]:
    """A standalone broker on `alone`."""
    app = BrokerApp(
        load_config(
            options={
                "dataDir": str(tmp_path / "alone"),
                "clusterName": "old",
                "brokerServicePort": "0",
                "webServicePort": "0",
                "brokerDeleteInactiveTopicsEnabled": "false",
                **BY_INDEX,
            }
        ).config
    )
    await app.start()
    yield app
    await app.stop()


@pytest.fixture
async def start(nodes: ZooKeeperClient, tmp_path: Path) -> AsyncIterator[Start]:
    """`await start()`: a broker of the cluster, stopped at the end."""
    async with AsyncExitStack() as running:

        async def start_broker() -> BrokerApp:
            given = {
                "clusterName": "lab",
                "metadataStoreUrl": f"zk:{nodes.servers}",
                "dataDir": str(tmp_path / "data"),
                "brokerServicePort": "0",
                "webServicePort": "0",
                **BY_INDEX,
            }
            app = BrokerApp(load_config(options=given, in_cluster=True).config, open_stores=in_cluster)
            await app.start()
            running.push_async_callback(app.stop)
            return app

        yield start_broker


@pytest.fixture
def run_import(nodes: ZooKeeperClient, tmp_path: Path) -> Import:
    """`await run_import(*more)`: the command, on the directory `alone`."""
    settings = tmp_path / "broker.conf"
    settings.write_text(
        f"clusterName=lab\nmetadataStoreUrl=zk:{nodes.servers}\n"
        "managedLedgerDefaultEnsembleSize=3\nmanagedLedgerDefaultWriteQuorum=3\nmanagedLedgerDefaultAckQuorum=2\n"
    )

    async def run(*more: str, data_dir: str = "alone") -> Result:
        command = ["cluster", "import", "--config", str(settings), "--data-dir", str(tmp_path / data_dir), *more]
        return await asyncio.to_thread(CliRunner().invoke, main, command)

    return run


async def done(app: BrokerApp, method: str, path: str, body: object = None) -> Any:
    reply = await call(app.web_url, method, path, body)
    assert reply.status < 300, (path, reply)
    return reply.json if method == "GET" else None


async def fill(app: BrokerApp) -> None:
    """Topics of every kind."""
    await done(app, "PUT", "tenants/shop", {"allowedClusters": ["old"], "adminRoles": ["alice"]})
    await done(app, "PUT", "namespaces/shop/orders")
    await done(app, "POST", "namespaces/shop/orders/retention", {"retentionTimeInMinutes": 60, "retentionSizeInMB": 9})
    await done(app, "POST", "namespaces/shop/orders/deduplication", True)
    topics = "persistent/shop/orders"
    await done(app, "PUT", f"{topics}/placed/partitions", 2)
    await done(app, "PUT", f"{topics}/empty", {"color": "blue"})
    await done(app, "PUT", f"{topics}/empty/subscription/waits")
    await done(app, "POST", f"{topics}/placed/maxProducers", 7)
    for text in SCHEMAS:
        schema = {"type": "JSON", "schema": text, "properties": {}}
        await done(app, "POST", "schemas/shop/orders/typed/schema", schema)
    async with Client(app.service_url) as client:
        await publish_and_acknowledge(app, client)
        await acknowledge_a_part_of_a_batch(client)
        named = SchemaInfo(SchemaType.STRING, name="has a name")
        async with await client.create_producer("shop/orders/ended", schema=named) as producer:
            await producer.send(b"last")
        await done(app, "POST", f"{topics}/ended/terminate")


async def publish_and_acknowledge(app: BrokerApp, client: Client) -> None:
    """Three ledgers of partition 1, some of its entries acknowledged by a shared subscription."""
    topic = "shop/orders/placed-partition-1"
    await (await client.subscribe(topic, "a b", subscription_type="shared")).close()
    for first in range(0, PUBLISHED, 4):
        async with await client.create_producer(topic, name="named", batching_enabled=False) as producer:
            for number in range(first, first + 4):
                await producer.send(b"%d" % number, properties={"n": str(number)})
        await done(app, "PUT", f"persistent/{topic}/unload")
    consumer = await client.subscribe(topic, "a b", subscription_type="shared")
    for _ in range(PUBLISHED):
        message = await consumer.receive()
        if int(message.content or b"") in ACKNOWLEDGED:
            consumer.acknowledge(message)
    await consumer.close()


async def acknowledge_a_part_of_a_batch(client: Client) -> None:
    """Three messages in one entry, of which the second is acknowledged."""
    topic = "shop/orders/batched"
    consumer = await client.subscribe(topic, "s", **PARTS)
    async with await client.create_producer(topic, batch_delay_ms=60_000) as producer:
        receipts = [asyncio.create_task(producer.send(b"%d" % number)) for number in range(3)]
        await asyncio.sleep(0)
        await producer.flush()
        await asyncio.gather(*receipts)
    messages = [await consumer.receive() for _ in range(3)]
    assert len({(each.id.ledger, each.id.entry) for each in messages}) == 1
    consumer.acknowledge(messages[1])
    await consumer.close()


def files_of(directory: Path) -> dict[str, tuple[str, int]]:
    """Every file with its content and the time of its last change."""
    return {
        str(path.relative_to(directory)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in directory.rglob("*")
        if path.is_file()
    }


async def ledgers(nodes: ZooKeeperClient) -> list[int]:
    """Every ledger there is."""
    names = await children(nodes, "/ledgers/00/0000")
    return sorted(number for name in names if (number := id_of(f"/ledgers/00/0000/{name}")) is not None)


async def under_way(nodes: ZooKeeperClient) -> list[str]:
    """The topics of a namespace whose import is noted."""
    return await children(nodes, "/interpulse/imports/shop/orders/persistent")


async def children(nodes: ZooKeeperClient, path: str) -> list[str]:
    try:
        return (await nodes.children(path)).names
    except NoNode:
        return []


async def test_directory_when_imported_then_the_cluster_has_all_of_it_and_the_directory_is_as_before(
    alone: BrokerApp, run_import: Import, start: Start, tmp_path: Path
) -> None:
    await fill(alone)
    await alone.stop()
    before = files_of(tmp_path / "alone")
    result = await run_import()
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert "namespace shop/orders: copied" in lines
    assert "schemas of persistent://shop/orders/typed: 2 copied" in lines
    placed = "persistent://shop/orders/placed-partition-1: 12 entries, 2 cursors copied and compared"
    assert placed in lines
    assert lines[-1].endswith(f"are in cluster lab, equal to those in {tmp_path / 'alone'}")
    assert files_of(tmp_path / "alone") == before

    again = await run_import()
    assert again.exit_code == 0, again.output
    assert placed.replace("copied and compared", "compared, was there already") in again.output.splitlines()
    assert "copied" not in again.output.replace("compared", "")

    app = await start()
    await check_documents(app)
    async with Client(app.service_url) as client:
        await check_topics(app, client)
    await app.stop()
    refused = await run_import()
    assert refused.exit_code == 3
    assert "the cluster has these topics already, with other content: persistent://shop/orders/" in refused.stderr


async def check_documents(app: BrokerApp) -> None:
    tenant = await done(app, "GET", "tenants/shop")
    assert tenant == {"allowedClusters": ["lab"], "adminRoles": ["alice"]}
    policies = await done(app, "GET", "namespaces/shop/orders")
    assert policies["replication_clusters"] == ["lab"]
    assert policies["retention_policies"] == {"retentionTimeInMinutes": 60, "retentionSizeInMB": 9}
    topics = "persistent/shop/orders"
    assert (await done(app, "GET", f"{topics}/placed/partitions"))["partitions"] == 2
    assert await done(app, "GET", f"{topics}/placed/maxProducers") == 7
    assert await done(app, "GET", f"{topics}/empty/properties") == {"color": "blue"}
    assert await done(app, "GET", f"{topics}/empty/subscriptions") == ["waits"]
    found = (await done(app, "GET", "schemas/shop/orders/typed/schemas"))["getSchemaResponses"]
    assert [(each["version"], each["data"]) for each in found] == list(enumerate(SCHEMAS))


async def check_topics(app: BrokerApp, client: Client) -> None:
    topic = "shop/orders/placed-partition-1"
    consumer = await client.subscribe(topic, "a b", subscription_type="shared")
    left = [number for number in range(PUBLISHED) if number not in ACKNOWLEDGED]
    assert [int((await consumer.receive()).content or b"") for _ in left] == left
    async with await client.create_reader(topic) as reader:
        messages = [await reader.read_next() for _ in range(PUBLISHED)]
    assert [(int(each.content or b""), each.properties) for each in messages] == [
        (number, {"n": str(number)}) for number in range(PUBLISHED)
    ]
    ids = [each.id for each in messages]
    assert [each.entry for each in ids] == [0, 1, 2, 3] * 3
    async with await client.create_producer(topic, name="named", batching_enabled=False) as producer:
        assert producer.last_sequence_id == PUBLISHED - 1  # a repeated one would be dropped
        await producer.send(b"after")
    assert (await consumer.receive()).content == b"after"
    consumer = await client.subscribe("shop/orders/batched", "s", **PARTS)
    assert [(await consumer.receive()).content for _ in range(2)] == [b"0", b"2"]
    with pytest.raises(TopicTerminated):
        await client.create_producer("shop/orders/ended")


async def test_import_when_interrupted_then_the_next_one_goes_on_and_leaves_no_ledger_behind(
    alone: BrokerApp, run_import: Import, nodes: ZooKeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(alone)
    await alone.stop()

    async def fails(self: TopicCopies, topic: TopicName, *rest: object) -> None:
        raise PersistenceError(f"no room for {topic.local_name}")

    with monkeypatch.context() as failing:
        failing.setattr(TopicCopies, "_commit", fails)
        result = await run_import()
    assert result.exit_code == 1
    assert "persistent://shop/orders/placed-partition-1: FAILED: no room for placed-partition-1" in result.output
    assert "topics could not be copied, as reported above" in result.stderr
    assert "placed-partition-1" in await under_way(nodes)
    left_behind = await ledgers(nodes)

    monkeypatch.setattr(topic_copy, "_COMMIT_BYTES_MAX", 10)  # each record in a commit of its own
    result = await run_import()
    assert result.exit_code == 0, result.output
    assert await under_way(nodes) == []
    there = await ledgers(nodes)
    schemas = 3
    assert len(there) == len(left_behind)
    assert len(set(there) & set(left_behind)) == schemas


async def test_directory_of_a_broker_that_was_killed_when_imported_then_has_what_was_acknowledged(
    alone: BrokerApp, run_import: Import, tmp_path: Path
) -> None:
    await fill(alone)
    shutil.copytree(tmp_path / "alone", tmp_path / "killed")
    with (tmp_path / "killed" / "log" / "0000000001.seg").open("ab") as segment:
        segment.write(b"torn")
    before = files_of(tmp_path / "killed")
    result = await run_import(data_dir="killed")
    assert result.exit_code == 0, result.output
    assert "placed-partition-1: 12 entries" in result.output
    assert files_of(tmp_path / "killed") == before


async def test_import_when_something_stands_in_its_way_then_names_it_and_writes_nothing(
    alone: BrokerApp, run_import: Import, start: Start, nodes: ZooKeeperClient, tmp_path: Path
) -> None:
    async def refusal(*more: str, exit_code: int = 3, data_dir: str = "alone") -> str:
        result = await run_import(*more, data_dir=data_dir)
        assert result.exit_code == exit_code, result.output
        return result.stderr

    await done(alone, "PUT", "persistent/public/default/x")
    await done(alone, "PUT", "persistent/public/default/p/partitions", 2)
    assert "is in use by another process" in await refusal(exit_code=2)
    await alone.stop()
    (tmp_path / "nothing").mkdir()
    assert "no broker has stored data there" in await refusal(exit_code=2, data_dir="nothing")
    assert "cluster west (clusterName) is not registered" in await refusal("--set", "clusterName=west")
    app = await start()
    assert "brokers of the cluster are running: 127.0.0.1:" in await refusal()
    await done(app, "PUT", "persistent/public/default/x", {"own": "yes"})
    await done(app, "PUT", "persistent/public/default/p/partitions", 3)
    await app.stop()
    assert "already, with other content: persistent://public/default/x; delete them" in await refusal()
    app = await start()
    await done(app, "DELETE", "persistent/public/default/x")
    await app.stop()
    assert "with other partitions or properties: persistent://public/default/p; delete" in await refusal()
    assert await ledgers(nodes) == []


async def compact_x(alone: BrokerApp) -> None:
    """Ten keys in two ledgers, then one of them and another in a third one behind the horizon."""
    async with (
        Client(alone.service_url) as client,
        await client.create_producer("x", batching_enabled=False) as producer,
    ):
        await done(alone, "POST", "persistent/public/default/x/compactionThreshold", 1_000_000)
        for number in range(20):
            await producer.send(b"%d" % number, key=f"k{number % 10}")
            if number == 14:
                await done(alone, "PUT", "persistent/public/default/x/unload")
        await done(alone, "PUT", "persistent/public/default/x/compaction")
        path = "persistent/public/default/x/compaction"
        while (await done(alone, "GET", path))["status"] != "SUCCESS":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await done(alone, "PUT", "persistent/public/default/x/unload")
        await producer.send(b"20", key="k0")
        await producer.send(b"21", key="new")


async def compacted_x(app: BrokerApp) -> list[int]:
    async with Client(app.service_url) as client, await client.create_reader("x", read_compacted=True) as reader:
        found = []
        while await reader.has_message_available():
            found.append(int((await reader.read_next()).content or b""))
        return found


@pytest.mark.parametrize("trimmed", [False, True])
async def test_topic_when_it_has_a_compacted_ledger_then_that_is_copied_and_compacted_on(
    alone: BrokerApp, run_import: Import, start: Start, trimmed: bool
) -> None:
    """``trimmed``: the compacted entries are of ledgers that are not there any more."""
    await compact_x(alone)
    if trimmed:
        await done(alone, "POST", "persistent/public/default/x/trim")
    kept = [*range(10, 22)]
    assert await compacted_x(alone) == kept
    await alone.stop()
    result = await run_import()
    assert result.exit_code == 0, result.output
    assert ("default/x: 22 entries, 1 cursors copied and compared" in result.output) is not trimmed
    again = await run_import()
    assert again.exit_code == 0, again.output
    assert "copied" not in again.output.replace("compared", "")
    app = await start()
    assert await compacted_x(app) == kept
    path = "persistent/public/default/x/compaction"
    await done(app, "PUT", path)
    while (await done(app, "GET", path))["status"] != "SUCCESS":  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert await compacted_x(app) == kept[1:]


async def test_topic_when_its_compacted_ledger_may_stay_behind_then_is_copied_without_it(
    alone: BrokerApp, run_import: Import, nodes: ZooKeeperClient
) -> None:
    await compact_x(alone)
    await alone.stop()
    result = await run_import("--without-compacted")
    assert result.exit_code == 0, result.output
    assert "persistent://public/default/x: 22 entries, 0 cursors copied and compared" in result.output
    assert await children(nodes, "/managed-ledgers/public/default/persistent/x") == []
    assert json.loads((await nodes.get("/admin/policies/public/default")).value)["replication_clusters"] == ["lab"]


async def test_settings_when_imported_then_those_that_the_cluster_has_stay(
    alone: BrokerApp, run_import: Import, nodes: ZooKeeperClient
) -> None:
    """Dynamic configuration and failure domains."""
    await done(alone, "POST", "brokers/configuration/dispatchThrottlingRatePerTopicInMsg/100")
    await done(alone, "POST", "brokers/configuration/maxTopicsPerNamespace/7")
    await done(alone, "POST", "clusters/old/failureDomains/one", {"brokers": ["a:1"]})
    await alone.stop()
    await nodes.create("/admin/configuration", b'{"maxTopicsPerNamespace":"9"}')
    for _ in range(2):
        result = await run_import()
        assert result.exit_code == 0, result.output
    assert json.loads((await nodes.get("/admin/configuration")).value) == {
        "dispatchThrottlingRatePerTopicInMsg": "100",
        "maxTopicsPerNamespace": "9",
    }
    found = (await nodes.get("/admin/clusters/lab/failureDomain/one")).value
    assert json.loads(found) == {"brokers": ["a:1"]}


async def test_topic_when_it_is_replicated_and_the_cluster_has_the_old_name_then_is_refused(
    alone: BrokerApp, run_import: Import, nodes: ZooKeeperClient
) -> None:
    west = {"serviceUrl": "http://127.0.0.1:1", "brokerServiceUrl": "pulsar://127.0.0.1:2"}
    await done(alone, "PUT", "clusters/west", west)
    await done(alone, "PUT", "persistent/public/default/x")
    await done(alone, "PUT", "persistent/public/default/x/subscription/pulsar.repl.west")
    await alone.stop()
    await set_up_cluster(nodes.servers, NewCluster("old", ClusterData("http://127.0.0.1:1")))
    result = await run_import("--set", "clusterName=old")
    assert result.exit_code == 3
    assert "other clusters would take what is sent under new positions for what they have" in result.stderr
    result = await run_import()
    assert result.exit_code == 0, result.output
    assert "cluster west: copied" in result.output


async def test_copy_when_a_bookie_has_other_bytes_then_the_topic_is_told_and_not_there(
    alone: BrokerApp, run_import: Import, nodes: ZooKeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(alone)
    await alone.stop()
    read = BookKeeperJournal.read

    async def altered(self: BookKeeperJournal, name: str, *rest: int) -> list[bytes]:
        entries = await read(self, name, *rest)
        return [entries[0][:-1] + b"?", *entries[1:]] if name.endswith("placed-partition-1") else entries

    monkeypatch.setattr(BookKeeperJournal, "read", altered)
    result = await run_import()
    assert result.exit_code == 1
    assert "1 topics could not be copied" in result.stderr
    assert "persistent://shop/orders/placed-partition-1: FAILED: the copy of ledger " in result.output
    assert "is not what was copied: the checksums of its entries differ" in result.output
    assert "placed-partition-1" not in await children(nodes, "/managed-ledgers/shop/orders/persistent")
