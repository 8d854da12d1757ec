"""Topics deleted as inactive, through the binary port: asking leaves them deleted, opening does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.model.errors import ServerError
from interpulse.model.names import TopicName
from interpulse.model.topics import Requester
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient

X = TopicName.parse("x")
P0, P1 = X.partition(0), X.partition(1)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    """Its checks are the test's, and inactive topics go at once."""
    settings = {
        "brokerDeleteInactiveTopicsFrequencySeconds": "1000000",
        "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": "0",
    }
    with InProcessBroker(tmp_path, settings) as started:
        yield started


def check_inactive(broker: InProcessBroker) -> None:
    broker.call(lambda app: app.context.inactive_topics.check())


def load(broker: InProcessBroker, *names: TopicName) -> None:
    async def work(app: BrokerApp) -> None:
        for name in names:
            await app.registry.open(name, by=Requester.ADMIN, create=True)

    broker.call(work)


def make_partitioned(broker: InProcessBroker, partitions: int) -> None:
    broker.call(lambda app: app.lifecycle.create_partitioned(X, partitions))


def forbid_creation(broker: InProcessBroker) -> None:
    broker.call(lambda app: app.context.dynamic.set("allowAutoTopicCreation", "false"))


def topics(broker: InProcessBroker) -> list[str]:
    names = broker.call(lambda app: app.lifecycle.list_topics(X.namespace_name, "persistent", include_system=False))
    return [name.local_name for name in names]


def metadata(client: RawClient, name: TopicName, *, create: bool) -> int | ServerError:
    answer: Any = client.ask(commands.partitioned_metadata(1, str(name), create=create))
    if answer.response == pb.CommandPartitionedTopicMetadataResponse.Failed:
        return ServerError(answer.error)
    return int(answer.partitions)


@pytest.mark.parametrize("auto_creation", [True, False], ids=["auto-creation", "no-auto-creation"])
def test_topic_when_it_went_then_asking_leaves_it_gone(broker: InProcessBroker, auto_creation: bool) -> None:
    load(broker, X)
    if not auto_creation:
        forbid_creation(broker)
    check_inactive(broker)
    with RawClient(broker.service_url) as client:
        assert metadata(client, X, create=False) == ServerError.TopicNotFound
        assert metadata(client, X, create=True) == (0 if auto_creation else ServerError.TopicNotFound)
        client.ask(commands.lookup(2, str(X)))
        assert topics(broker) == []
        answer = client.ask(commands.producer(3, 1, str(X)))
        assert (isinstance(answer, pb.CommandProducerSuccess), topics(broker) == ["x"]) == (auto_creation,) * 2


@pytest.mark.parametrize("auto_creation", [True, False], ids=["auto-creation", "no-auto-creation"])
def test_partition_when_it_went_then_asking_leaves_it_gone_and_opening_brings_it_back(
    broker: InProcessBroker, auto_creation: bool
) -> None:
    make_partitioned(broker, 2)
    load(broker, P0, P1)
    if not auto_creation:
        forbid_creation(broker)
    check_inactive(broker)
    with RawClient(broker.service_url) as client:
        assert metadata(client, X, create=True) == 2
        assert metadata(client, P0, create=False) == ServerError.TopicNotFound
        assert metadata(client, P0, create=True) == 0
        client.ask(commands.lookup(2, str(P0)))
        assert topics(broker) == []
        assert isinstance(client.ask(commands.producer(3, 1, str(P0))), pb.CommandProducerSuccess)
        assert topics(broker) == [P0.local_name]
        beyond = client.ask(commands.producer(4, 2, str(X.partition(2))))
        assert beyond.error == ServerError.TopicNotFound


def test_partitioned_topic_when_it_went_as_a_whole_then_none_of_its_partitions_comes_back(
    broker: InProcessBroker,
) -> None:
    broker.call(lambda app: app.context.dynamic.set("brokerDeleteInactivePartitionedTopicMetadataEnabled", "true"))
    forbid_creation(broker)
    make_partitioned(broker, 2)
    load(broker, P0, P1)
    check_inactive(broker)
    with RawClient(broker.service_url) as client:
        for name in (X, P0):
            assert metadata(client, name, create=True) == ServerError.TopicNotFound
            assert client.ask(commands.producer(3, 1, str(name))).error == ServerError.TopicNotFound


def test_producer_when_connected_then_its_topic_stays_until_it_leaves(broker: InProcessBroker) -> None:
    with RawClient(broker.service_url) as client:
        assert isinstance(client.ask(commands.producer(1, 1, str(X))), pb.CommandProducerSuccess)
        check_inactive(broker)
        assert topics(broker) == ["x"]
        client.ask(commands.close_producer(1, 2))
        check_inactive(broker)
        assert topics(broker) == []


def test_check_when_the_test_makes_none_then_the_broker_does(tmp_path: Path) -> None:
    settings = {"brokerDeleteInactiveTopicsFrequencySeconds": "1"}
    with InProcessBroker(tmp_path, settings) as broker, RawClient(broker.service_url) as client:
        assert isinstance(client.ask(commands.producer(1, 1, str(X))), pb.CommandProducerSuccess)
        gone = broker.call(deletion_of)
        client.ask(commands.close_producer(1, 2))
        broker.call(lambda app: gone.wait())
        assert topics(broker) == []


async def deletion_of(app: BrokerApp) -> Any:
    """Set when the record of the topic has gone."""
    import asyncio

    gone = asyncio.Event()

    def look(key: str) -> None:
        if X not in app.registry.names:
            gone.set()

    app.lifecycle._store.watch(f"/managed-ledgers/{X.log_name}", look)
    return gone
