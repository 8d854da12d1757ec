"""The client object."""

import asyncio

import pytest

from interpulse.client import Client
from interpulse.model.errors import AlreadyClosed, InvalidTopicName, NotAllowed, NotSupported
from interpulse.sync import Client as BlockingClient
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.scripted_broker import ScriptedBroker
from tests.support.stub_web import StubWeb


def test_client_when_made_then_opens_nothing_and_needs_no_event_loop() -> None:
    assert Client("pulsar://127.0.0.1:1").config.service_url == "pulsar://127.0.0.1:1"
    with pytest.raises(ValueError, match="service URL"):
        Client("localhost")


async def test_client_when_closed_then_everything_it_made_is_closed_with_it() -> None:
    async with ScriptedBroker() as broker:
        client = Client(broker.url)
        producer = await client.create_producer("t")
        await client.subscribe("t", "s")
        await client.create_reader("t")
        future = await producer.enqueue(b"on its way")
        await client.close()
        assert future.result().entry == 0
        assert broker.count(pb.BaseCommand.CLOSE_PRODUCER) == 1
        assert broker.count(pb.BaseCommand.CLOSE_CONSUMER) == 2
        with pytest.raises(AlreadyClosed):
            await client.create_producer("t")


async def test_client_when_a_message_failed_while_closing_then_says_so_and_is_closed_all_the_same() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.SEND] = lambda peer, frame: peer.say(
            commands.send_error(frame.command.send.producer_id, frame.command.send.sequence_id, 22, "no")
        )
        client = Client(broker.url)
        producer = await client.create_producer("t")
        await producer.enqueue(b"x")
        with pytest.raises(NotAllowed):
            await client.close()
        assert broker.count(pb.BaseCommand.CLOSE_PRODUCER) == 1


async def test_partitions_of_a_topic_are_complete_names() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.partitions["persistent://public/default/p"] = 2
        assert await client.get_partitions_for_topic("t", create=False) == ["persistent://public/default/t"]
        assert await client.get_partitions_for_topic(" p ", create=True) == [
            "persistent://public/default/p-partition-0",
            "persistent://public/default/p-partition-1",
        ]
        with pytest.raises(InvalidTopicName):
            await client.get_partitions_for_topic("a/b", create=False)


async def test_partitions_when_not_told_whether_to_create_then_warns_and_may_create() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        with pytest.warns(DeprecationWarning, match="create=False") as warned:
            await client.get_partitions_for_topic("t")
        assert warned[0].filename == __file__
        (asked,) = broker.all_of(pb.BaseCommand.PARTITIONED_METADATA)
        assert asked.partitionMetadata.metadata_auto_creation_enabled


async def test_partitions_on_a_broker_older_than_pip_344_need_a_fallback() -> None:
    async with ScriptedBroker(pb.FeatureFlags()) as broker, Client(broker.url) as client:
        with pytest.raises(NotSupported, match="PIP-344"):
            await client.get_partitions_for_topic("t", create=False)
        assert broker.count(pb.BaseCommand.PARTITIONED_METADATA) == 0
        names = await client.get_partitions_for_topic("t", create=False, fallback_on_old_broker=True)
        assert names == ["persistent://public/default/t"]


async def test_blocking_client_asks_for_partitions_as_the_other_one_does() -> None:
    async with ScriptedBroker(pb.FeatureFlags()) as broker:
        broker.partitions["persistent://public/default/p"] = 1

        def ask() -> None:
            with BlockingClient(broker.url) as client:
                with pytest.raises(NotSupported, match="PIP-344"):
                    client.get_partitions_for_topic("t", create=False)
                with pytest.warns(DeprecationWarning, match="create=False") as warned:
                    client.get_partitions_for_topic("t")
                assert warned[0].filename == __file__
                names = client.get_partitions_for_topic("p", create=False, fallback_on_old_broker=True)
                assert names == ["persistent://public/default/p-partition-0"]

        await asyncio.to_thread(ask)


def test_blocking_client_over_http_asks_without_creating_whatever_the_age_of_the_broker(web: StubWeb) -> None:
    web.answer("GET", "/admin/v2/persistent/public/default/t/partitions", {"partitions": 1})
    with BlockingClient(web.url) as client:
        names = client.get_partitions_for_topic("t", create=False)
    assert names == ["persistent://public/default/t-partition-0"]
    assert web.last.target.endswith("?checkAllowAutoCreation=false")
