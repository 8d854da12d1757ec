"""Single questions of a client, put to brokers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interpulse.model.errors import MetadataError, ServiceNotReady, UnsupportedVersion
from interpulse.proxy.dialer import TargetRules
from interpulse.proxy.lookup.questions import ask
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker
from tests.unit.proxy.lookup.test_batches import asking, knows


def lookup(**more: Any) -> pb.CommandLookupTopic:
    return pb.CommandLookupTopic(topic="persistent://a/b/c", request_id=5, **more)


async def test_lookup_when_brokers_redirect_then_followed_with_their_flag_and_the_clients_wishes() -> None:
    def redirect(peer: Peer, frame: Frame) -> None:
        peer.say(commands.lookup_response(frame.command.lookupTopic.request_id, broker_url=second.url, redirect=True))

    async with ScriptedBroker() as first, ScriptedBroker() as second, asking(first) as questions:
        first.scripts[pb.BaseCommand.LOOKUP] = redirect
        asked = lookup(
            advertised_listener_name="outside",
            properties=[pb.KeyValue(key="k", value="v")],
            original_principal="admin",
            original_auth_data="x",
            original_auth_method="token",
        )
        assert str(await questions.find(asked)) == second.url
        for broker, authoritative in ((first, False), (second, True)):
            (seen,) = broker.all_of(pb.BaseCommand.LOOKUP)
            question = seen.lookupTopic
            assert (question.authoritative, question.advertised_listener_name) == (authoritative, "outside")
            assert [(each.key, each.value) for each in question.properties] == [("k", "v")]
            assert not question.original_principal
            assert not question.original_auth_data
            assert not question.original_auth_method
        assert asked.request_id == 5, "the client's own question stays as it is"


def names(broker: ScriptedBroker, *, redirect: bool):
    """A script that answers lookups with this broker."""

    def script(peer: Peer, frame: Frame) -> None:
        request_id = frame.command.lookupTopic.request_id
        peer.say(commands.lookup_response(request_id, broker_url=broker.url, redirect=redirect))

    return script


async def test_broker_when_one_of_ours_names_it_then_accepted() -> None:
    async with ScriptedBroker() as first, ScriptedBroker() as owner, asking(first) as questions:
        first.scripts[pb.BaseCommand.LOOKUP] = names(owner, redirect=False)
        assert str(await questions.find(lookup())) == owner.url
        assert knows(questions, owner)


@pytest.mark.parametrize("by_itself", [True, False])
async def test_broker_when_redirected_to_then_accepted_only_if_it_names_itself(
    by_itself: bool,
) -> None:
    async with (
        ScriptedBroker() as first,
        ScriptedBroker() as second,
        ScriptedBroker() as third,
        asking(first) as questions,
    ):
        owner = second if by_itself else third
        first.scripts[pb.BaseCommand.LOOKUP] = names(second, redirect=True)
        second.scripts[pb.BaseCommand.LOOKUP] = names(owner, redirect=False)
        assert str(await questions.find(lookup())) == owner.url
        assert (knows(questions, second), knows(questions, third)) == (by_itself, False)


@pytest.mark.parametrize(
    ("hosts", "addresses", "ports", "reason"),
    [
        ("*.example.com", "*", "*", "host 127.0.0.1 is not among brokerProxyAllowedHostNames"),
        ("*", "10.0.0.0/8", "*", "127.0.0.1 is not among brokerProxyAllowedIPAddresses"),
        ("*", "*", "1-1024", "is not among brokerProxyAllowedTargetPorts"),
    ],
)
@pytest.mark.parametrize("redirect", [True, False])
async def test_broker_when_the_settings_forbid_it_then_neither_asked_nor_accepted(
    redirect: bool, hosts: str, addresses: str, ports: str, reason: str
) -> None:
    rules = TargetRules.read(hosts, addresses, ports)
    async with ScriptedBroker() as first, ScriptedBroker() as second, asking(first, rules=rules) as questions:
        first.scripts[pb.BaseCommand.LOOKUP] = names(second, redirect=redirect)
        with pytest.raises(MetadataError, match=f"^a broker names {second.url} in a lookup: .*{reason}"):
            await questions.find(lookup())
        assert not second.peers
        assert not knows(questions, second)


async def test_lookup_when_brokers_redirect_in_a_circle_then_ends() -> None:
    async with ScriptedBroker() as broker, asking(broker) as questions:
        broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
            commands.lookup_response(frame.command.lookupTopic.request_id, broker_url=broker.url, redirect=True)
        )
        with pytest.raises(ServiceNotReady, match="more than 10 redirects"):
            await questions.find(lookup())


async def test_lookup_when_the_answer_has_no_address_of_the_right_kind_then_says_so() -> None:
    async with ScriptedBroker() as broker, asking(broker) as questions:
        broker.scripts[pb.BaseCommand.LOOKUP] = lambda peer, frame: peer.say(
            commands.lookup_response(frame.command.lookupTopic.request_id, broker_url="")
        )
        with pytest.raises(MetadataError, match="no address without TLS"):
            await questions.find(lookup())


async def test_partitions_when_the_broker_would_create_what_must_not_be_then_it_is_not_asked() -> None:
    """A client behind a proxy cannot see which of the two is older than PIP-344."""
    question = pb.CommandPartitionedTopicMetadata(topic="t", request_id=1, metadata_auto_creation_enabled=False)
    async with ScriptedBroker(pb.FeatureFlags(supports_auth_refresh=True)) as old, asking(old) as questions:
        with pytest.raises(UnsupportedVersion, match="older than PIP-344"):
            await questions.partitions(question)
        assert old.count(pb.BaseCommand.PARTITIONED_METADATA) == 0
        question.metadata_auto_creation_enabled = True
        assert await questions.partitions(question) == 0


async def test_partitions_when_asked_without_creation_then_the_flag_goes_through() -> None:
    question = pb.CommandPartitionedTopicMetadata(topic="t", request_id=1, metadata_auto_creation_enabled=False)
    async with ScriptedBroker() as broker, asking(broker) as questions:
        await questions.partitions(question)
        (seen,) = broker.all_of(pb.BaseCommand.PARTITIONED_METADATA)
        assert not seen.partitionMetadata.metadata_auto_creation_enabled


async def test_question_when_asked_then_the_copy_has_an_id_of_its_connection() -> None:
    async with ScriptedBroker() as broker, asking(broker) as questions:
        connection = await questions.connection()
        for _ in range(3):
            await ask(connection, lookup())
        assert len({each.lookupTopic.request_id for each in broker.all_of(pb.BaseCommand.LOOKUP)}) == 3


async def test_questions_when_there_are_several_brokers_then_one_is_asked_until_it_is_gone() -> None:
    async with ScriptedBroker() as first, ScriptedBroker() as second, asking(first, second) as questions:
        await asyncio.gather(*(questions.find(lookup()) for _ in range(10)))
        asked, other = (first, second) if first.peers else (second, first)
        assert (asked.count(pb.BaseCommand.LOOKUP), len(asked.peers), len(other.peers)) == (10, 1, 0)
        connection = await questions.connection()
        asked.peers[0].drop()
        await connection.closed()
        await asked.__aexit__(None, None, None)
        await questions.find(lookup())
        assert other.count(pb.BaseCommand.LOOKUP) == 1
