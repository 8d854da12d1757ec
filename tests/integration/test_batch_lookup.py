"""Batch lookup (PIP-35) between our client and our broker, switched while both run."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.client import AdminClient, BrokerAddress, Client
from interpulse.model.names import TopicName
from interpulse.testing.broker import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient
from tests.support.rest_client import call

NAMES = [f"persistent://public/default/t-{number}" for number in range(1200)]
LONG = "t" * 64_000
HOSTILE = ["", " ", "\x00", "x\x00y", "😀", "..%2f", "a%2Fb", "+", "a b", LONG, f"a/{LONG}", "-partition-3"]


async def test_batch_lookup_when_switched_off_then_clients_do_not_notice(pulsar_broker: InProcessBroker) -> None:
    here = BrokerAddress.parse(pulsar_broker.service_url)
    async with AdminClient(pulsar_broker.web_url) as admin, Client(pulsar_broker.service_url) as client:
        assert await client.lookup_batch(NAMES) == dict.fromkeys(NAMES, here)
        connection = await client.session.pool.get(here)
        assert connection.peer_flags.supports_batch_lookup
        await admin.brokers.set_dynamic_configuration("supportsBatchLookup", "false")
        assert await client.lookup_batch(NAMES[:50]) == dict.fromkeys(NAMES[:50], here)
        assert len(await admin.lookup.topics(NAMES[:50])) == 50
        async with Client(pulsar_broker.service_url) as newcomer:
            assert await newcomer.lookup_batch(NAMES[:50]) == dict.fromkeys(NAMES[:50], here)
            assert not (await newcomer.session.pool.get(here)).peer_flags.supports_batch_lookup


async def test_batch_lookup_when_its_limit_is_lowered_then_clients_do_not_notice(
    pulsar_broker: InProcessBroker,
) -> None:
    here = BrokerAddress.parse(pulsar_broker.service_url)
    async with AdminClient(pulsar_broker.web_url) as admin, Client(pulsar_broker.service_url) as client:
        await admin.brokers.set_dynamic_configuration("maxTopicsPerBatchLookup", "7")
        assert await client.lookup_batch(NAMES[:100]) == dict.fromkeys(NAMES[:100], here)
        answers = await admin.lookup.topics(NAMES[:100])
        assert {body["brokerUrl"] for body in answers.values() if isinstance(body, dict)} == {str(here)}
        assert list(answers) == [TopicName.parse(name) for name in NAMES[:100]]


def test_batch_lookup_when_off_then_a_client_that_asks_all_the_same_is_told_and_kept(
    pulsar_broker: InProcessBroker,
) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        assert client.ask(commands.batch_lookup(1, NAMES[:2])).groups
        assert client.ask(commands.batch_lookup(2, NAMES)).error == pb.NotAllowedError
        assert client.ask(commands.lookup(3, NAMES[0])).response == pb.CommandLookupTopicResponse.Connect


def answered_once(names: list[str], parts: list[Any]) -> bool:
    return sorted(topic for part in parts for topic in part) == sorted(dict.fromkeys(names))


@pytest.mark.parametrize("create", [True, False])
async def test_batch_lookup_when_names_are_hostile_then_each_is_answered_and_nothing_is_created(
    pulsar_broker: InProcessBroker, create: bool
) -> None:
    with RawClient(pulsar_broker.service_url) as client:
        answer = client.ask(commands.batch_lookup(1, HOSTILE, create_if_missing=create))
        parts = [group.topicname for group in answer.groups] + [failure.topicname for failure in answer.failures]
        assert answered_once(HOSTILE, parts)
    names = [*HOSTILE, "\ud800"]
    reply = await call(pulsar_broker.web_url, "POST", "/lookup/v2/topics", {"topics": names, "createIfMissing": create})
    assert reply.status == 200
    assert answered_once(names, [part["topics"] for part in reply.json["groups"] + reply.json["failures"]])
    listed = await call(pulsar_broker.web_url, "GET", "persistent/public/default")
    assert listed.json == []
