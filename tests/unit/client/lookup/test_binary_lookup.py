"""Lookups against scripted brokers, alone and gathered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.binary_lookup import BinaryLookup, GatheredLookups
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import (
    AlreadyClosed,
    AuthenticationError,
    AuthorizationError,
    IncompatibleSchema,
    InvalidTopicName,
    NotAllowed,
    NotSupported,
    PulsarError,
    TopicNotFound,
    UnknownError,
    UnsupportedVersion,
)
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker

BROKER = BrokerAddress("b", 1)
A, B, C, D = (TopicName.parse(name) for name in "abcd")


class Broker:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[list[TopicName]] = []
        self.second = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.missing: set[TopicName] = set()
        self.fault: Exception | None = None

    async def single(self, topic: TopicName) -> BrokerAddress:
        answer = (await self.many([topic]))[topic]
        if isinstance(answer, PulsarError):
            raise answer
        return answer

    async def many(self, topics: Sequence[TopicName]) -> Mapping[TopicName, BrokerAddress | PulsarError]:
        self.asked.append(list(topics))
        if len(self.asked) == 2:
            self.second.set()
        await asyncio.sleep(0)
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return {topic: TopicNotFound(str(topic)) if topic in self.missing else BROKER for topic in topics}


@pytest.fixture
def broker() -> Broker:
    return Broker()


def gathered(broker: Broker, window_s: float = 60) -> GatheredLookups:
    """The window is longer than any test unless it is what the test is about."""
    return GatheredLookups(broker.single, broker.many, window_s=window_s)


async def test_lookup_when_alone_then_asked_at_once(broker: Broker) -> None:
    lookups = gathered(broker)
    for topic in (A, B, A):
        assert await lookups.find(topic) == BROKER
    assert broker.asked == [[A], [B], [A]]


async def test_lookups_when_they_come_together_then_first_alone_and_the_others_as_one(broker: Broker) -> None:
    lookups = gathered(broker)
    answers = await asyncio.gather(*map(lookups.find, (A, B, C, B, D)))
    assert answers == [BROKER] * 5
    assert broker.asked == [[A], [B, C, D]]


async def test_lookups_when_the_first_takes_long_then_the_others_wait_for_the_window_only(broker: Broker) -> None:
    lookups = gathered(broker, window_s=0.001)
    broker.gate.clear()
    finding = [asyncio.create_task(lookups.find(topic)) for topic in (A, B, C)]
    async with asyncio.timeout(60):
        await broker.second.wait()
    assert broker.asked == [[A], [B, C]]
    broker.gate.set()
    assert await asyncio.gather(*finding) == [BROKER] * 3


async def test_lookups_when_a_batch_is_under_way_then_later_ones_are_the_next_batch(broker: Broker) -> None:
    lookups = gathered(broker)
    first = [asyncio.create_task(lookups.find(topic)) for topic in (A, B)]
    await broker.second.wait()
    await asyncio.gather(*first, *map(lookups.find, (C, D)))
    assert broker.asked == [[A], [B], [C, D]]


async def test_lookups_when_one_topic_fails_then_only_who_asked_for_it_hears(broker: Broker) -> None:
    lookups = gathered(broker)
    broker.missing = {A, C}
    answers = await asyncio.gather(*map(lookups.find, (A, B, C, C)), return_exceptions=True)
    assert answers[1] == BROKER
    assert [type(answers[index]) for index in (0, 2, 3)] == [TopicNotFound] * 3


async def test_lookups_when_the_question_has_a_fault_then_none_waits_for_ever(broker: Broker) -> None:
    lookups = gathered(broker)
    broker.fault = RuntimeError("a bug")
    answers = await asyncio.gather(*map(lookups.find, (A, B, C)), return_exceptions=True)
    assert all(answer is broker.fault for answer in answers)
    broker.fault = None
    assert await lookups.find(A) == BROKER


async def test_lookup_when_one_who_waits_gives_up_then_the_others_get_their_answers(broker: Broker) -> None:
    lookups = gathered(broker)
    broker.gate.clear()
    finding = [asyncio.create_task(lookups.find(topic)) for topic in (A, B, B, C)]
    await asyncio.sleep(0)
    finding[1].cancel()
    broker.gate.set()
    answers = await asyncio.gather(*finding, return_exceptions=True)
    assert isinstance(answers[1], asyncio.CancelledError)
    assert [answers[0], *answers[2:]] == [BROKER] * 3


@pytest.mark.parametrize("turns", [1, 3], ids=["waiting", "under-way"])
async def test_lookups_when_the_client_is_closed_then_who_waits_hears_of_it(broker: Broker, turns: int) -> None:
    lookups = gathered(broker, window_s=0 if turns > 1 else 60)
    broker.gate.clear()
    finding = [asyncio.create_task(lookups.find(topic)) for topic in (A, B, C)]
    for _ in range(turns):
        await asyncio.sleep(0)
    await lookups.close()
    for waiting in finding[1:]:
        with pytest.raises(AlreadyClosed):
            await waiting
    broker.gate.set()
    assert await finding[0] == BROKER


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
