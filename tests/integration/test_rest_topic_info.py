"""What is recorded of a topic, told over REST without loading it."""

from __future__ import annotations

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.model.names import TopicName
from interpulse.storage.api import Delete
from tests.support.rest_broker import RestBroker
from tests.support.rest_client import call

X = TopicName.parse("demo/a/x")


pytestmark = pytest.mark.usefixtures("demo_namespace")


async def published(broker: RestBroker, name: TopicName) -> None:
    """Store an entry, and close the topic again."""
    topic = await broker.context.registry.open(name)
    topic.log.append(b"entry")  # type: ignore[union-attr]
    await broker.context.registry.unload(name)


async def test_topic_when_refused_then_its_ledgers_and_cursors_are_told_all_the_same(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/demo/a/x/partitions", 1)
    await call(broker.web_url, "PUT", "persistent/demo/a/x-partition-0/subscription/s%201")
    await published(broker, X.partition(0))
    await broker.store.commit([Delete(keys.partitioned_topic(X))])
    assert (await call(broker.web_url, "GET", "persistent/demo/a/x-partition-0/stats")).status == 409
    info = (await call(broker.web_url, "GET", "persistent/demo/a/x-partition-0/internal-info")).json
    assert list(info) == ["version", "ledgers", "cursors"]
    (ledger,) = info["ledgers"]
    assert ledger.keys() == {"ledgerId", "timestamp", "isOffloaded"}, "its entries are counted when it is full"
    assert list(info["cursors"]) == ["s 1"]
    assert info["cursors"]["s 1"].keys() == {"cursorsLedgerId", "markDelete"}
    assert broker.context.registry.get(X.partition(0)) is None


async def test_partitioned_topic_when_asked_about_then_each_stored_partition_is_told(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/demo/a/x/partitions", 3)
    await call(broker.web_url, "DELETE", "persistent/demo/a/x-partition-1")
    info = (await call(broker.web_url, "GET", "persistent/demo/a/x/internal-info")).json
    assert list(info["partitions"]) == [str(X.partition(0)), str(X.partition(2))]
    assert info["partitions"][str(X.partition(0))]["cursors"] == {}


@pytest.mark.parametrize(
    ("path", "status"),
    [("persistent/demo/a/none", 404), ("non-persistent/demo/a/none", 405), ("persistent/a/b/c", 404)],
)
async def test_topic_when_nothing_is_recorded_then_is_refused(broker: RestBroker, path: str, status: int) -> None:
    assert (await call(broker.web_url, "GET", f"{path}/internal-info")).status == status


async def test_subscriptions_when_topics_are_not_loaded_then_are_listed_all_the_same(broker: RestBroker) -> None:
    await call(broker.web_url, "POST", "namespaces/demo/a/deduplication", True)
    await call(broker.web_url, "PUT", "persistent/demo/a/x/partitions", 2)
    for name in ("s", "pulsar.repl.west"):
        await call(broker.web_url, "PUT", f"persistent/demo/a/x/subscription/{name}")
    await call(broker.web_url, "PUT", "persistent/demo/a/x-partition-1/subscription/t")
    asked = [f"persistent/demo/a/{name}/subscriptions" for name in ("x", "x-partition-0", "x-partition-1")]
    loaded = [(await call(broker.web_url, "GET", path)).json for path in asked]
    for index in range(2):
        await broker.context.registry.unload(X.partition(index))
    assert (
        [(await call(broker.web_url, "GET", path)).json for path in asked] == loaded == [["s", "t"], ["s"], ["s", "t"]]
    )
    assert not broker.context.registry.names
    assert (await call(broker.web_url, "GET", "persistent/demo/a/none/subscriptions")).status == 404
