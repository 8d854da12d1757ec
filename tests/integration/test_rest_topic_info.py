"""What is recorded of a topic, told over REST without loading it, and topics chosen by their properties."""

from __future__ import annotations

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.client import AdminClient
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


# --- topics by their properties (PIP-452)

ODD = {"k,=": "a+b %2C", "env": "prod"}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"env": "prod"}, ["odd", "p-partition-0", "p-partition-1", "plain"]),
        ({"env": "prod", "team": "a"}, ["p-partition-0", "p-partition-1"]),
        (ODD, ["odd"]),
        ({"env": "dev"}, []),
        ({}, ["none", "odd", "p-partition-0", "p-partition-1", "plain"]),
    ],
)
async def test_topics_when_listed_by_properties_then_those_that_have_all_of_them(
    broker: RestBroker, wanted: dict[str, str], found: list[str]
) -> None:
    async with AdminClient(broker.web_url) as admin:
        await admin.topics.create_partitioned("demo/a/p", 2, properties={"env": "prod", "team": "a"})
        for name, properties in {"plain": {"env": "prod"}, "none": {}, "odd": ODD}.items():
            await admin.topics.create(f"demo/a/{name}", properties)
        listed = await admin.topics.list("demo/a", properties=wanted)
    assert listed == [f"persistent://demo/a/{name}" for name in found]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("env=prod", 200),
        ("env%3Dprod", 200),
        ("", 200),
        (",", 200),
        ("%20env%3Dprod%20,", 200),
        ("env", 400),
        ("=prod", 400),
        ("env=prod,team", 400),
    ],
)
async def test_topics_when_properties_are_no_pairs_then_are_refused_and_none_is_left_out(
    broker: RestBroker, query: str, status: int
) -> None:
    answer = await call(broker.web_url, "GET", f"persistent/demo/a?properties={query}")
    assert answer.status == status
    if status == 400:
        assert answer.json["reason"].startswith("properties has to be key=value,key=value, not ")
