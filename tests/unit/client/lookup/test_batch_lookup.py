"""Many topics with few questions (PIP-35): towards brokers that offer it, that do not, and that stop offering it."""

import asyncio
from collections.abc import Callable

import pytest

from interpulse.client import Client
from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.binary_lookup import BinaryLookup
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import (
    InvalidTopicName,
    NotAllowed,
    NotConnected,
    PulsarError,
    ServiceNotReady,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker


def binary(broker: ScriptedBroker, **options: object) -> tuple[BinaryLookup, ConnectionPool]:
    config = ClientConfig(broker.url, backoff_initial_ms=1, **options)  # type: ignore[arg-type]
    pool = ConnectionPool(config)
    return BinaryLookup(config, pool), pool


BATCH = pb.FeatureFlags(supports_batch_lookup=True)


def group(url: str, *topics: str, redirect: bool = False) -> pb.BatchLookupGroup:
    kind = pb.CommandLookupTopicResponse.Redirect if redirect else pb.CommandLookupTopicResponse.Connect
    return pb.BatchLookupGroup(brokerServiceUrl=url, response=kind, topicname=topics, authoritative=redirect)


def topics(*names: str) -> list[TopicName]:
    return [TopicName.parse(name) for name in names]


async def test_brokers_when_the_flag_is_absent_then_topics_are_asked_one_by_one() -> None:
    async with ScriptedBroker() as broker:
        lookup, pool = binary(broker)
        answers = await lookup.brokers(topics("a", "b", "a"))
        assert list(answers.values()) == [BrokerAddress.parse(broker.url)] * 2
        assert broker.count(pb.BaseCommand.BATCH_LOOKUP) == 0
        assert broker.count(pb.BaseCommand.LOOKUP) == 2
        await pool.close()


async def test_brokers_when_offered_then_one_question_answers_them_all() -> None:
    async with ScriptedBroker(BATCH) as broker:

        def answer(peer: Peer, frame: Frame) -> None:
            request = frame.command.batchLookupTopic
            *found, lost = request.topics
            failure = pb.BatchLookupFailure(error=pb.TopicNotFound, message="gone", topicname=[lost])
            peer.say(
                commands.batch_lookup_response(
                    request.request_id, groups=[group(broker.url, *found)], failures=[failure]
                )
            )

        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answer
        lookup, pool = binary(broker)
        a, b, c = topics("a", "b", "c")
        answers = await lookup.brokers([a, b, c])
        assert answers[a] == answers[b] == BrokerAddress.parse(broker.url)
        assert isinstance(answers[c], TopicNotFound)
        assert broker.count(pb.BaseCommand.LOOKUP) == 0
        await pool.close()


async def test_brokers_when_some_are_redirected_then_only_those_are_asked_again_there() -> None:
    async with ScriptedBroker(BATCH) as other, ScriptedBroker(BATCH) as broker:
        a, b = map(str, topics("a", "b"))
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = lambda peer, frame: peer.say(
            commands.batch_lookup_response(
                frame.command.batchLookupTopic.request_id,
                groups=[group(broker.url, a), group(other.url, b, redirect=True)],
            )
        )
        other.scripts[pb.BaseCommand.BATCH_LOOKUP] = lambda peer, frame: peer.say(
            commands.batch_lookup_response(frame.command.batchLookupTopic.request_id, groups=[group(other.url, b)])
        )
        lookup, pool = binary(broker)
        answers = await lookup.brokers(topics("a", "b"))
        assert list(answers.values()) == [BrokerAddress.parse(broker.url), BrokerAddress.parse(other.url)]
        (asked,) = other.all_of(pb.BaseCommand.BATCH_LOOKUP)
        assert (list(asked.batchLookupTopic.topics), asked.batchLookupTopic.authoritative) == ([b], True)
        await pool.close()


async def test_brokers_when_the_question_is_too_long_then_it_is_halved() -> None:
    async with ScriptedBroker(BATCH) as broker:

        def answer(peer: Peer, frame: Frame) -> None:
            request = frame.command.batchLookupTopic
            if len(request.topics) > 2:
                peer.say(commands.batch_lookup_error(request.request_id, 22, "at most 2 topics"))
            else:
                peer.say(
                    commands.batch_lookup_response(request.request_id, groups=[group(broker.url, *request.topics)])
                )

        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answer
        lookup, pool = binary(broker)
        answers = await lookup.brokers(topics("a", "b", "c", "d", "e"))
        assert set(answers.values()) == {BrokerAddress.parse(broker.url)}
        assert len(answers) == 5
        await pool.close()


async def test_brokers_when_batches_were_switched_off_then_falls_back_on_single_lookups() -> None:
    async with ScriptedBroker(BATCH) as broker:
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = lambda peer, frame: peer.say(
            commands.batch_lookup_error(frame.command.batchLookupTopic.request_id, 10, "not any more")
        )
        lookup, pool = binary(broker)
        answers = await lookup.brokers(topics("a", "b"))
        assert not any(isinstance(answer, PulsarError) for answer in answers.values())
        assert broker.count(pb.BaseCommand.LOOKUP) == 2
        await pool.close()


def answering(broker: ScriptedBroker) -> Callable[[Peer, Frame], None]:
    """Serves every topic itself."""

    def answer(peer: Peer, frame: Frame) -> None:
        request = frame.command.batchLookupTopic
        peer.say(commands.batch_lookup_response(request.request_id, groups=[group(broker.url, *request.topics)]))

    return answer


async def test_brokers_when_there_are_more_than_fit_one_question_then_several_are_asked() -> None:
    async with ScriptedBroker(BATCH) as broker:
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answering(broker)
        lookup, pool = binary(broker, batch_lookup_topics_max=3)
        names = topics(*map(str, range(7)))
        assert list(await lookup.brokers(names)) == names
        asked = [len(command.batchLookupTopic.topics) for command in broker.all_of(pb.BaseCommand.BATCH_LOOKUP)]
        assert asked == [3, 3, 1]
        await pool.close()


async def test_brokers_when_questions_were_too_long_once_then_they_stay_short() -> None:
    async with ScriptedBroker(BATCH) as broker:
        friendly = answering(broker)

        def answer(peer: Peer, frame: Frame) -> None:
            request = frame.command.batchLookupTopic
            if len(request.topics) > 4:
                peer.say(commands.batch_lookup_error(request.request_id, 22, "at most 4 topics"))
            else:
                friendly(peer, frame)

        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answer
        lookup, pool = binary(broker)
        names = topics(*map(str, range(8)))
        for _ in range(2):
            answers = await lookup.brokers(names)
            assert set(answers.values()) == {BrokerAddress.parse(broker.url)}
        asked = [len(command.batchLookupTopic.topics) for command in broker.all_of(pb.BaseCommand.BATCH_LOOKUP)]
        assert asked == [8, 4, 4, 4, 4]
        await pool.close()


async def test_brokers_when_even_one_topic_is_too_many_then_that_is_its_failure() -> None:
    async with ScriptedBroker(BATCH) as broker:
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = lambda peer, frame: peer.say(
            commands.batch_lookup_error(frame.command.batchLookupTopic.request_id, 22, "no")
        )
        lookup, pool = binary(broker)
        answers = await lookup.brokers(topics("a", "b"))
        assert [type(answer) for answer in answers.values()] == [NotAllowed, NotAllowed]
        await pool.close()


@pytest.mark.parametrize("code", [1, 6, 14])
async def test_brokers_when_the_whole_question_may_pass_then_it_is_asked_again(code: int) -> None:
    async with ScriptedBroker(BATCH) as broker:
        friendly, refusals = answering(broker), iter([code, code])

        def answer(peer: Peer, frame: Frame) -> None:
            refusal = next(refusals, None)
            if refusal is None:
                friendly(peer, frame)
            else:
                request_id = frame.command.batchLookupTopic.request_id
                peer.say(commands.batch_lookup_error(request_id, refusal, "later"))

        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answer
        lookup, pool = binary(broker)
        answers = await lookup.brokers(topics("a", "b"))
        assert set(answers.values()) == {BrokerAddress.parse(broker.url)}
        assert (broker.count(pb.BaseCommand.BATCH_LOOKUP), broker.count(pb.BaseCommand.LOOKUP)) == (3, 0)
        await pool.close()


async def test_brokers_when_some_topics_may_pass_then_only_those_are_asked_again() -> None:
    async with ScriptedBroker(BATCH) as broker:
        a, b, c, d = map(str, topics("a", "b", "c", "d"))

        def answer(peer: Peer, frame: Frame) -> None:
            request = frame.command.batchLookupTopic
            first = len(request.topics) == 4
            unloading = pb.BatchLookupFailure(error=pb.MetadataError, message="unloading", topicname=[b, c])
            gone = pb.BatchLookupFailure(error=pb.TopicNotFound, message="gone", topicname=[d])
            groups = [group(broker.url, *([a] if first else request.topics))]
            failures = [unloading, gone] if first else []
            peer.say(commands.batch_lookup_response(request.request_id, groups=groups, failures=failures))

        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answer
        lookup, pool = binary(broker)
        answers = await lookup.brokers(topics("a", "b", "c", "d"))
        assert [isinstance(answer, BrokerAddress) for answer in answers.values()] == [True, True, True, False]
        asked = [list(each.batchLookupTopic.topics) for each in broker.all_of(pb.BaseCommand.BATCH_LOOKUP)]
        assert asked == [[a, b, c, d], [b, c]]
        await pool.close()


async def test_brokers_when_it_never_passes_then_each_topic_keeps_its_failure_at_the_timeout() -> None:
    async with ScriptedBroker(BATCH) as broker:
        a, b = map(str, topics("a", "b"))
        failure = pb.BatchLookupFailure(error=pb.ServiceNotReady, message="no broker", topicname=[b])
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = lambda peer, frame: peer.say(
            commands.batch_lookup_response(
                frame.command.batchLookupTopic.request_id, groups=[group(broker.url, a)], failures=[failure]
            )
        )
        broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
            commands.lookup_error(frame.command.lookupTopic.request_id, 6, "no broker")
        )
        lookup, pool = binary(broker, lookup_timeout_ms=50)
        answers = await lookup.brokers(topics("a", "b"))
        assert next(iter(answers.values())) == BrokerAddress.parse(broker.url)
        assert isinstance(list(answers.values())[1], ServiceNotReady)
        await pool.close()


async def test_brokers_when_none_can_be_reached_then_every_topic_has_that_failure() -> None:
    config = ClientConfig("pulsar://127.0.0.1:1", backoff_initial_ms=1, lookup_timeout_ms=20)
    pool = ConnectionPool(config)
    answers = await BinaryLookup(config, pool).brokers(topics("a", "b"))
    assert [type(answer) for answer in answers.values()] == [NotConnected, NotConnected]
    await pool.close()


async def test_brokers_when_redirected_in_circles_then_those_topics_alone_fail() -> None:
    async with ScriptedBroker(BATCH) as broker:
        a, b = map(str, topics("a", "b"))

        def answer(peer: Peer, frame: Frame) -> None:
            request = frame.command.batchLookupTopic
            groups = [group(broker.url, b, redirect=True)]
            groups += [group(broker.url, a)] if a in request.topics else []
            peer.say(commands.batch_lookup_response(request.request_id, groups=groups))

        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answer
        lookup, pool = binary(broker, lookup_redirects_max=3)
        answers = await lookup.brokers(topics("a", "b"))
        assert next(iter(answers.values())) == BrokerAddress.parse(broker.url)
        assert "more than 3 redirects" in str(list(answers.values())[1])
        assert broker.count(pb.BaseCommand.BATCH_LOOKUP) == 4
        await pool.close()


async def test_brokers_when_redirected_to_an_older_broker_then_those_are_looked_up_singly() -> None:
    async with ScriptedBroker() as older, ScriptedBroker(BATCH) as broker:
        a, b = map(str, topics("a", "b"))
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = lambda peer, frame: peer.say(
            commands.batch_lookup_response(
                frame.command.batchLookupTopic.request_id,
                groups=[group(broker.url, a), group(older.url, b, redirect=True)],
            )
        )
        lookup, pool = binary(broker)
        answers = await lookup.brokers(topics("a", "b"))
        assert set(answers.values()) == {BrokerAddress.parse(broker.url)}
        assert [each.lookupTopic.topic for each in broker.all_of(pb.BaseCommand.LOOKUP)] == [b]
        assert older.count(pb.BaseCommand.BATCH_LOOKUP) == 0
        await pool.close()


async def test_brokers_when_an_answer_is_odd_then_the_topics_it_concerns_fail() -> None:
    async with ScriptedBroker(BATCH) as broker:
        a, b = map(str, topics("a", "b"))
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = lambda peer, frame: peer.say(
            commands.batch_lookup_response(
                frame.command.batchLookupTopic.request_id, groups=[group("nonsense", a), group(broker.url, "stranger")]
            )
        )
        lookup, pool = binary(broker)
        answers = await lookup.brokers(topics("a", "b"))
        assert "nonsense" in str(next(iter(answers.values())))
        assert f"leaves out {b}" in str(list(answers.values())[1])
        await pool.close()


async def test_lookups_when_many_come_at_once_then_two_questions_answer_them() -> None:
    async with ScriptedBroker(BATCH) as broker:
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answering(broker)
        lookup, pool = binary(broker)
        found = await asyncio.gather(*map(lookup.broker, topics(*map(str, range(100)))))
        assert set(found) == {BrokerAddress.parse(broker.url)}
        assert (broker.count(pb.BaseCommand.LOOKUP), broker.count(pb.BaseCommand.BATCH_LOOKUP)) == (1, 1)
        await lookup.close()
        await pool.close()


async def test_lookups_when_batches_are_not_offered_then_each_is_asked_at_once() -> None:
    async with ScriptedBroker() as broker:
        lookup, pool = binary(broker)
        for _ in range(2):
            await asyncio.gather(*map(lookup.broker, topics(*map(str, range(20)))))
        assert (broker.count(pb.BaseCommand.LOOKUP), broker.count(pb.BaseCommand.BATCH_LOOKUP)) == (40, 0)
        await lookup.close()
        await pool.close()


async def test_producers_when_their_connection_is_lost_then_they_find_their_brokers_together() -> None:
    async with ScriptedBroker(BATCH) as broker:
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answering(broker)
        broker.partitions[str(TopicName.parse("wide"))] = 200
        async with Client(broker.url, backoff_initial_ms=1) as client:
            await client.create_producer("wide")
            assert (broker.count(pb.BaseCommand.LOOKUP), broker.count(pb.BaseCommand.BATCH_LOOKUP)) == (0, 1)
            broker.peers[0].drop()
            await broker.heard(pb.BaseCommand.PRODUCER, 400)
            assert broker.count(pb.BaseCommand.LOOKUP) + broker.count(pb.BaseCommand.BATCH_LOOKUP) < 10


async def test_client_when_asked_for_many_topics_then_answers_by_the_names_it_was_given() -> None:
    async with ScriptedBroker(BATCH) as broker:
        broker.scripts[pb.BaseCommand.BATCH_LOOKUP] = answering(broker)
        names = ["b", " b", "a/b", "persistent://public/default/a", "b"]
        async with Client(broker.url) as client:
            answers = await client.lookup_batch(name for name in names)
            assert await client.lookup_batch([]) == {}
        assert list(answers) == ["b", " b", "a/b", "persistent://public/default/a"]
        assert isinstance(answers["a/b"], InvalidTopicName)
        assert {answers["b"], answers[" b"]} == {BrokerAddress.parse(broker.url)}
        (asked,) = broker.all_of(pb.BaseCommand.BATCH_LOOKUP)
        assert len(asked.batchLookupTopic.topics) == 2
