"""Lookups over the binary protocol: PIP-344 with new and old brokers, redirects, proxies."""

from collections.abc import Callable

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.binary_lookup import BinaryLookup
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import (
    AuthenticationError,
    AuthorizationError,
    IncompatibleSchema,
    InvalidTopicName,
    NotAllowed,
    NotSupported,
    TopicNotFound,
    UnknownError,
    UnsupportedVersion,
)
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker

TOPIC = TopicName.parse("t")
ErrorFrame = Callable[[int, int, str], bytes]


def binary(broker: ScriptedBroker, **options: object) -> tuple[BinaryLookup, ConnectionPool]:
    config = ClientConfig(broker.url, backoff_initial_ms=1, **options)  # type: ignore[arg-type]
    pool = ConnectionPool(config)
    return BinaryLookup(config, pool), pool


async def test_partitions_when_asked_without_creating_then_says_so_on_the_wire() -> None:
    async with ScriptedBroker() as broker:
        broker.partitions[str(TOPIC)] = 3
        lookup, pool = binary(broker)
        assert await lookup.partitions(TOPIC, create=False) == 3
        assert await lookup.partitions(TOPIC, create=True) == 3
        asked = [command.partitionMetadata for command in broker.all_of(pb.BaseCommand.PARTITIONED_METADATA)]
        assert [request.metadata_auto_creation_enabled for request in asked] == [False, True]
        await pool.close()


async def test_partitions_when_the_broker_is_older_than_pip_344_then_not_supported_and_nothing_asked() -> None:
    async with ScriptedBroker(pb.FeatureFlags()) as broker:
        lookup, pool = binary(broker)
        with pytest.raises(NotSupported):
            await lookup.partitions(TOPIC, create=False)
        assert broker.count(pb.BaseCommand.PARTITIONED_METADATA) == 0
        assert await lookup.partitions(TOPIC, create=False, fallback_on_old_broker=True) == 0
        (request,) = broker.all_of(pb.BaseCommand.PARTITIONED_METADATA)
        assert request.partitionMetadata.metadata_auto_creation_enabled
        await pool.close()


async def test_partitions_when_absent_then_topic_not_found_names_the_topic_at_once() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = lambda peer, frame: peer.say(
            commands.partitioned_metadata_error(frame.command.partitionMetadata.request_id, 11, "")
        )
        lookup, pool = binary(broker)
        with pytest.raises(TopicNotFound, match="persistent://public/default/t"):
            await lookup.partitions(TOPIC, create=False)
        assert broker.count(pb.BaseCommand.PARTITIONED_METADATA) == 1
        await pool.close()


async def test_partitions_when_a_proxy_answers_with_a_lookup_response_then_the_code_counts() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = lambda peer, frame: peer.say(
            commands.lookup_error(frame.command.partitionMetadata.request_id, 11, "gone")
        )
        lookup, pool = binary(broker)
        with pytest.raises(TopicNotFound, match="gone"):
            await lookup.partitions(TOPIC, create=True)
        await pool.close()


async def test_lookup_when_the_broker_is_not_ready_then_asks_again() -> None:
    async with ScriptedBroker() as broker:
        failures = iter([6, 1])

        def fail_twice(peer: Peer, frame: Frame) -> None:
            code = next(failures, None)
            if code is None:
                peer.answer(frame)
            else:
                peer.say(commands.lookup_error(frame.command.lookupTopic.request_id, code, "later"))

        broker.scripts[pb.BaseCommand.LOOKUP] = fail_twice
        lookup, pool = binary(broker)
        assert await lookup.broker(TOPIC) == BrokerAddress.parse(broker.url)
        assert broker.count(pb.BaseCommand.LOOKUP) == 3
        await pool.close()


FINAL = {
    3: AuthenticationError,
    4: AuthorizationError,
    10: UnsupportedVersion,
    11: TopicNotFound,
    17: InvalidTopicName,
    18: IncompatibleSchema,
    22: NotAllowed,
}


@pytest.mark.parametrize("code", [1, 6, 14])
@pytest.mark.parametrize("answer", [commands.partitioned_metadata_error, commands.lookup_error])
async def test_partitions_when_the_failure_may_pass_then_asks_again(code: int, answer: ErrorFrame) -> None:
    async with ScriptedBroker() as broker:
        failures = iter([code, code])

        def fail_twice(peer: Peer, frame: Frame) -> None:
            if next(failures, None) is None:
                peer.answer(frame)
            else:
                peer.say(answer(frame.command.partitionMetadata.request_id, code, "later"))

        broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = fail_twice
        lookup, pool = binary(broker)
        assert await lookup.partitions(TOPIC, create=False) == 0
        assert broker.count(pb.BaseCommand.PARTITIONED_METADATA) == 3
        await pool.close()


@pytest.mark.parametrize("code", FINAL)
@pytest.mark.parametrize("answer", [commands.partitioned_metadata_error, commands.lookup_error])
async def test_partitions_when_the_failure_is_final_then_asks_once(code: int, answer: ErrorFrame) -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = lambda peer, frame: peer.say(
            answer(frame.command.partitionMetadata.request_id, code, "no")
        )
        lookup, pool = binary(broker)
        with pytest.raises(FINAL[code]):
            await lookup.partitions(TOPIC, create=True)
        assert broker.count(pb.BaseCommand.PARTITIONED_METADATA) == 1
        await pool.close()


@pytest.mark.parametrize("answer", [commands.partitioned_metadata_error, commands.lookup_error])
async def test_lookup_when_refused_with_either_type_of_answer_then_the_code_counts(answer: ErrorFrame) -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
            answer(frame.command.lookupTopic.request_id, 11, "gone")
        )
        lookup, pool = binary(broker)
        with pytest.raises(TopicNotFound, match="gone"):
            await lookup.broker(TOPIC)
        await pool.close()


async def test_partitions_when_the_answer_is_no_count_then_is_not_taken_for_zero() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = lambda peer, frame: peer.say(
            commands.lookup_response(frame.command.partitionMetadata.request_id, broker_url=broker.url)
        )
        lookup, pool = binary(broker)
        with pytest.raises(UnknownError):
            await lookup.partitions(TOPIC, create=False)
        await pool.close()


async def test_partitions_when_the_connection_breaks_then_asks_over_a_new_one() -> None:
    async with ScriptedBroker() as broker:

        def break_once(peer: Peer, frame: Frame) -> None:
            del broker.scripts[pb.BaseCommand.PARTITIONED_METADATA]
            peer.drop()

        broker.scripts[pb.BaseCommand.PARTITIONED_METADATA] = break_once
        lookup, pool = binary(broker)
        assert await lookup.partitions(TOPIC, create=False) == 0
        assert len(broker.peers) == 2
        await pool.close()


async def test_lookup_when_redirected_then_asks_there_with_the_authority_it_was_given() -> None:
    async with ScriptedBroker() as owner, ScriptedBroker() as first:
        first.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
            commands.lookup_response(
                frame.command.lookupTopic.request_id, broker_url=owner.url, redirect=True, authoritative=True
            )
        )
        lookup, pool = binary(first)
        assert await lookup.broker(TOPIC) == BrokerAddress.parse(owner.url)
        (asked,) = owner.all_of(pb.BaseCommand.LOOKUP)
        assert asked.lookupTopic.authoritative
        assert not first.all_of(pb.BaseCommand.LOOKUP)[0].lookupTopic.authoritative
        await pool.close()


async def test_lookup_when_redirected_for_ever_then_gives_up() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
            commands.lookup_response(frame.command.lookupTopic.request_id, broker_url=broker.url, redirect=True)
        )
        lookup, pool = binary(broker, lookup_redirects_max=3)
        with pytest.raises(UnknownError, match="redirects"):
            await lookup.broker(TOPIC)
        assert broker.count(pb.BaseCommand.LOOKUP) == 4
        await pool.close()


async def test_lookup_when_told_to_stay_behind_the_service_url_then_keeps_its_address() -> None:
    async with ScriptedBroker() as broker:
        broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
            commands.lookup_response(
                frame.command.lookupTopic.request_id,
                broker_url="pulsar://inside:6650",
                proxy_through_service_url=True,
            )
        )
        lookup, pool = binary(broker)
        service = BrokerAddress.parse(broker.url)
        assert await lookup.broker(TOPIC) == BrokerAddress(service.host, service.port, behind="inside:6650")
        await pool.close()


async def test_service_url_when_its_first_host_is_down_then_the_next_is_asked() -> None:
    async with ScriptedBroker() as broker:
        config = ClientConfig(f"pulsar://127.0.0.1:1,{broker.url.removeprefix('pulsar://')}", backoff_initial_ms=1)
        pool = ConnectionPool(config)
        assert await BinaryLookup(config, pool).partitions(TOPIC, create=True) == 0
        await pool.close()
