"""Creating by asking: many callers at once create no topic too many, and none that was not asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from interpulse.broker import metadata_paths as keys
from interpulse.broker.app import BrokerApp
from interpulse.cli.main import main
from interpulse.client import AdminClient, Client
from interpulse.model.names import TopicName
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import our_broker, put
from tests.front_ends.players import Players, word_for_frame
from tests.front_ends.records import OUR_EMPTY_TOPIC, prepared, stored_below
from tests.front_ends.rows import BASE_NAME, FAST_FRONT_ENDS, NO_METADATA, OK, OUTSIDE, TENANT, TWO, Case, Row
from tests.front_ends.table import ROWS
from tests.support import commands
from tests.support.raw_client import RawClient

CALLERS = 100
QUESTIONS_WITHOUT_EFFECT = frozenset({"partitions", "partitions body", "lookup", "http lookup"})
X = TopicName.parse(f"persistent://{TENANT}/{TWO}/x")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    """A broker with the namespaces of the table."""
    with our_broker(tmp_path) as broker:
        yield broker


def everything(broker: InProcessBroker) -> dict[str, bytes]:
    return broker.call(lambda app: stored_below(app.registry.metadata, "/"))


def watched(broker: InProcessBroker) -> list[str]:
    """The keys of partition metadata that are stored from now on, once for each time."""
    stored: list[str] = []

    async def watch(app: BrokerApp) -> None:
        app.registry.metadata.watch(keys.PARTITIONED_TOPICS, stored.append)

    broker.call(watch)
    return stored


def answers_of_connections(broker: InProcessBroker) -> list[int]:
    """Each caller has a connection of its own; all have asked before one reads its answer."""
    clients = [RawClient(broker.service_url) for _ in range(CALLERS)]
    try:
        for client in clients:
            client.send(commands.partitioned_metadata(1, str(X)))
        return [client.receive().command.partitionMetadataResponse.partitions for client in clients]
    finally:
        for client in clients:
            client.close()


def answers_of_one_connection(broker: InProcessBroker) -> list[int]:
    with RawClient(broker.service_url) as client:
        client.send(*(commands.partitioned_metadata(number, str(X)) for number in range(CALLERS)))
        return [client.receive().command.partitionMetadataResponse.partitions for _ in range(CALLERS)]


def answers_of_rest(broker: InProcessBroker) -> list[int]:
    async def ask() -> list[int]:
        async with AdminClient(broker.web_url) as admin:
            found = await asyncio.gather(*(admin.topics.partitioned_metadata(X, create=True) for _ in range(CALLERS)))
            return [each.partitions for each in found]

    return asyncio.run(ask())


def answers_of_all(broker: InProcessBroker) -> list[int]:
    """Half of them over the binary protocol, half over REST."""

    async def ask() -> list[int]:
        clients = [Client(url) for url in (broker.service_url, broker.web_url)]
        try:
            found = await asyncio.gather(
                *(clients[number % 2].get_partitions_for_topic(str(X), create=True) for number in range(CALLERS))
            )
        finally:
            for client in clients:
                await client.close()
        return [len(names) for names in found]

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "callers", [answers_of_connections, answers_of_one_connection, answers_of_rest, answers_of_all]
)
def test_partitioned_topic_when_100_ask_for_it_at_once_then_one_record_and_one_answer(
    broker: InProcessBroker, callers: Callable[[InProcessBroker], list[int]]
) -> None:
    stored = watched(broker)
    assert callers(broker) == [2] * CALLERS
    assert stored == [keys.partitioned_topic(X)]
    assert PartitionedTopicMetadata.load(everything(broker)[stored[0]]) == PartitionedTopicMetadata(2)


def test_store_when_not_asked_to_create_then_stays_as_it_is(tmp_path: Path) -> None:
    cases = [case for row in ROWS for case in row.cases(FAST_FRONT_ENDS) if case.question in QUESTIONS_WITHOUT_EFFECT]
    with our_broker(tmp_path, cases) as broker, Players(broker.service_url, broker.web_url) as players:
        before = everything(broker)
        for case in cases:
            players.ask(case)
        assert everything(broker) == before


def test_partition_when_the_metadata_has_just_grown_then_is_served_at_once(broker: InProcessBroker) -> None:
    """Whatever grew it: nothing of what was read before a refusal is kept for the next question."""
    new = Row("fresh", "x-partition-3", {"producer": OK}, there="x=3 x-partition-3")
    case = Case(new, "binary", "producer")
    put(broker, prepared([case], "standalone", OUR_EMPTY_TOPIC))
    with Players(broker.service_url, broker.web_url) as players:
        assert players.ask(case) == OUTSIDE
        put(broker, {keys.partitioned_topic(case.base): PartitionedTopicMetadata(4).dump()})
        assert players.ask(case) == OK


def test_states_when_made_on_a_stopped_broker_then_are_seen_after_its_start(tmp_path: Path) -> None:
    """Lost metadata, an orphan partition and both kinds of one name, each made with ``interpulse metadata``."""
    with InProcessBroker(tmp_path) as broker:
        create(broker, {"lost": 2, "orphan": 1, "both": 1})
    metadata(tmp_path, "delete", keys.partitioned_topic(TopicName.parse("lost")))
    metadata(tmp_path, "put", keys.topic_record(TopicName.parse("orphan-partition-7")), OUR_EMPTY_TOPIC.decode())
    metadata(tmp_path, "put", keys.topic_record(TopicName.parse("both")), OUR_EMPTY_TOPIC.decode())
    with InProcessBroker(tmp_path) as broker:
        assert produce(broker, "lost-partition-0") == NO_METADATA
        assert produce(broker, "orphan-partition-7") == OUTSIDE
        assert produce(broker, "both") == BASE_NAME
        create(broker, {"lost": 2})
        assert produce(broker, "lost-partition-0") == OK


def create(broker: InProcessBroker, topics: dict[str, int]) -> None:
    async def create_all() -> None:
        async with AdminClient(broker.web_url) as admin:
            for name, partitions in topics.items():
                await admin.topics.create_partitioned(name, partitions)

    asyncio.run(create_all())


def produce(broker: InProcessBroker, topic: str) -> str:
    with RawClient(broker.service_url) as client:
        return word_for_frame(client.ask(commands.producer(1, 1, topic)))


def metadata(data_dir: Path, verb: str, *arguments: str) -> None:
    result = CliRunner().invoke(main, ["metadata", verb, "--data-dir", str(data_dir), *arguments])
    assert result.exit_code == 0, result.stderr
