"""Batch lookups through a proxy: redirects followed, brokers that know none asked one by one, failures kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import NotAllowed
from interpulse.proxy.brokers import Brokers, endpoint_of
from interpulse.proxy.dialer import TargetRules
from interpulse.proxy.lookup.batches import answer_batch
from interpulse.proxy.lookup.questions import Questions
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame, FrameDecoder
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker

BATCHES = pb.FeatureFlags(supports_batch_lookup=True, supports_get_partitioned_metadata_without_auto_creation=True)
CONNECT, REDIRECT = pb.CommandLookupTopicResponse.Connect, pb.CommandLookupTopicResponse.Redirect


@asynccontextmanager
async def asking(*brokers: ScriptedBroker, rules: TargetRules | None = None) -> AsyncIterator[Questions]:
    addresses = [BrokerAddress.parse(broker.url) for broker in brokers]
    pool = ConnectionPool(ClientConfig(brokers[0].url))
    try:
        yield Questions(Brokers(addresses, []), rules or TargetRules(), pool, tls=False)
    finally:
        await pool.close()


async def answered(questions: Questions, topics: list[str], **more: Any) -> pb.CommandBatchLookupTopicResponse:
    request = pb.CommandBatchLookupTopic(topics=topics, request_id=9, **more)
    (frame,) = FrameDecoder().feed(await answer_batch(questions, request))
    assert frame.command.batchLookupTopicResponse.request_id == 9
    return frame.command.batchLookupTopicResponse


def found(answer: pb.CommandBatchLookupTopicResponse) -> dict[str, str]:
    """The broker of each topic, all of them behind the proxy."""
    for group in answer.groups:
        assert (group.response, group.proxy_through_service_url) == (CONNECT, True)
        assert group.brokerServiceUrl == group.brokerServiceUrlTls
    return {topic: group.brokerServiceUrl for group in answer.groups for topic in group.topicname}


def failed(answer: pb.CommandBatchLookupTopicResponse) -> dict[str, int]:
    return {topic: failure.error for failure in answer.failures for topic in failure.topicname}


def knows(questions: Questions, broker: ScriptedBroker) -> bool:
    return questions._brokers.knows(endpoint_of(BrokerAddress.parse(broker.url)))


def answers_with(*groups: tuple[ScriptedBroker, int, list[str]], failure: tuple[int, list[str]] | None = None):
    """A script that gives these groups, and one failure."""

    def script(peer: Peer, frame: Frame) -> None:
        request = frame.command.batchLookupTopic
        failures = [pb.BatchLookupFailure(error=failure[0], message="no", topicname=failure[1])] if failure else []  # type: ignore[arg-type]
        made = [
            pb.BatchLookupGroup(brokerServiceUrl=broker.url, response=kind, topicname=names, authoritative=True)  # type: ignore[arg-type]
            for broker, kind, names in groups
        ]
        peer.say(commands.batch_lookup_response(request.request_id, groups=made, failures=failures))

    return script


async def test_batch_when_brokers_redirect_then_each_is_asked_once_and_all_are_answered() -> None:
    async with ScriptedBroker(BATCHES) as first, ScriptedBroker(BATCHES) as second, asking(first) as questions:
        first.scripts[pb.BaseCommand.BATCH_LOOKUP] = answers_with(
            (first, CONNECT, ["a"]), (second, REDIRECT, ["b", "c"]), failure=(pb.TopicNotFound, ["d"])
        )
        second.scripts[pb.BaseCommand.BATCH_LOOKUP] = answers_with((second, CONNECT, ["b", "c"]))
        answer = await answered(questions, ["a", "b", "c", "d", "a"], create_if_missing=False)
        assert found(answer) == {"a": first.url, "b": second.url, "c": second.url}
        assert failed(answer) == {"d": pb.TopicNotFound}
        (asked,) = second.all_of(pb.BaseCommand.BATCH_LOOKUP)
        assert (list(asked.batchLookupTopic.topics), asked.batchLookupTopic.authoritative) == (["b", "c"], True)
        assert knows(questions, second)


async def test_batch_when_our_broker_names_another_one_then_it_is_accepted() -> None:
    async with ScriptedBroker(BATCHES) as first, ScriptedBroker() as owner, asking(first) as questions:
        first.scripts[pb.BaseCommand.BATCH_LOOKUP] = answers_with((owner, CONNECT, ["a"]))
        assert found(await answered(questions, ["a"])) == {"a": owner.url}
        assert knows(questions, owner)


@pytest.mark.parametrize("flags", [BATCHES, None], ids=["batch", "singly"])
async def test_batch_when_a_redirect_names_another_broker_then_neither_is_accepted(
    flags: pb.FeatureFlags | None,
) -> None:
    async with (
        ScriptedBroker(BATCHES) as first,
        ScriptedBroker(flags) as second,
        ScriptedBroker() as third,
        asking(first) as questions,
    ):
        first.scripts[pb.BaseCommand.BATCH_LOOKUP] = answers_with((second, REDIRECT, ["a"]))
        second.scripts[pb.BaseCommand.BATCH_LOOKUP] = answers_with((third, CONNECT, ["a"]))
        second.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
            commands.lookup_response(frame.command.lookupTopic.request_id, broker_url=third.url)
        )
        assert found(await answered(questions, ["a"])) == {"a": third.url}
        assert not knows(questions, second)
        assert not knows(questions, third)


async def test_batch_when_the_settings_do_not_allow_the_next_broker_then_its_topics_fail() -> None:
    async with ScriptedBroker(BATCHES) as first, ScriptedBroker(BATCHES) as second:
        rules = TargetRules.read("*", "*", first.url.rpartition(":")[2])
        async with asking(first, rules=rules) as questions:
            first.scripts[pb.BaseCommand.BATCH_LOOKUP] = answers_with(
                (first, CONNECT, ["a"]), (second, REDIRECT, ["b"])
            )
            answer = await answered(questions, ["a", "b"])
            assert (found(answer), failed(answer)) == ({"a": first.url}, {"b": pb.MetadataError})
            assert not second.peers


async def test_batch_when_the_next_broker_cannot_be_reached_then_only_its_topics_fail() -> None:
    async with ScriptedBroker(BATCHES) as first, asking(first) as questions:
        async with ScriptedBroker(BATCHES) as gone:
            first.scripts[pb.BaseCommand.BATCH_LOOKUP] = answers_with((first, CONNECT, ["a"]), (gone, REDIRECT, ["b"]))
        answer = await answered(questions, ["a", "b"])
        assert found(answer) == {"a": first.url}
        assert failed(answer) == {"b": pb.ServiceNotReady}


async def test_batch_when_brokers_redirect_in_a_circle_then_the_topics_fail() -> None:
    async with ScriptedBroker(BATCHES) as first, asking(first) as questions:
        first.scripts[pb.BaseCommand.BATCH_LOOKUP] = answers_with((first, REDIRECT, ["a"]))
        assert failed(await answered(questions, ["a"])) == {"a": pb.ServiceNotReady}
        assert first.count(pb.BaseCommand.BATCH_LOOKUP) == 11


async def test_batch_when_a_broker_leaves_a_topic_out_then_it_fails() -> None:
    async with ScriptedBroker(BATCHES) as first, asking(first) as questions:
        first.scripts[pb.BaseCommand.BATCH_LOOKUP] = answers_with((first, CONNECT, ["a"]))
        answer = await answered(questions, ["a", "b"])
        assert found(answer) == {"a": first.url}
        assert failed(answer) == {"b": pb.UnknownError}


async def test_batch_when_the_first_broker_refuses_then_the_client_gets_its_error() -> None:
    async with ScriptedBroker(BATCHES) as first, asking(first) as questions:
        first.scripts[pb.BaseCommand.BATCH_LOOKUP] = lambda peer, frame: peer.say(
            commands.batch_lookup_error(frame.command.batchLookupTopic.request_id, pb.NotAllowedError, "at most 1")
        )
        with pytest.raises(NotAllowed, match="at most 1"):
            await answered(questions, ["a", "b"])


@pytest.mark.parametrize("announced", [False, True], ids=["unknown", "switched off later"])
async def test_batch_when_the_broker_supports_none_then_topics_are_looked_up_singly(announced: bool) -> None:
    async with ScriptedBroker(BATCHES if announced else None) as first, asking(first) as questions:
        first.scripts[pb.BaseCommand.BATCH_LOOKUP] = lambda peer, frame: peer.say(
            commands.batch_lookup_error(frame.command.batchLookupTopic.request_id, pb.UnsupportedVersionError, "off")
        )
        first.partitions["p"] = 2
        answer = await answered(questions, ["p", "q"], expand_partitions=True, advertised_listener_name="inside")
        assert found(answer) == dict.fromkeys(("p-partition-0", "p-partition-1", "q"), first.url)
        assert {each.topic: each.partitions for each in answer.partitions} == {"p": 2, "q": 0}
        assert {each.lookupTopic.advertised_listener_name for each in first.all_of(pb.BaseCommand.LOOKUP)} == {"inside"}
