"""Replicators over the binary protocol may bring schemas and missing topics where other producers may not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.credentials import Credentials
from interpulse.model.errors import InvalidRequest
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.front_ends.access import logged_in, settings, token
from tests.front_ends.brokers import NO_JOB
from tests.scenarios.replicators import (
    CLIENT,
    PLAIN_REPLICATOR,
    REPLICATOR,
    SWITCHES,
    SchemaSwitch,
    expected_answers,
    may_create,
    replicators_are_known_by_the_dot,
    schema_answers,
)
from tests.support import commands
from tests.support.raw_client import RawClient

NAMESPACE = "public/n"
T = f"persistent://{NAMESPACE}"
SCHEMA = SchemaInfo(SchemaType.STRING)


async def test_schemas_when_switches_say_so_then_every_front_end_takes_them(pulsar_broker: InProcessBroker) -> None:
    async with AdminClient(pulsar_broker.web_url) as admin:
        for number, (switch, producer) in enumerate(product(SWITCHES, (CLIENT, REPLICATOR, PLAIN_REPLICATOR))):
            answers = await schema_answers(pulsar_broker.service_url, admin, f"{NAMESPACE}{number}", switch, producer)
            assert answers == expected_answers(switch, producer, is_ours=True), (switch, producer)


@pytest.mark.pulsar_settings(isAllowAutoUpdateSchemaEnabled="false")
async def test_schemas_when_the_broker_forbids_them_then_replicators_bring_them_unless_the_namespace_says_no(
    pulsar_broker: InProcessBroker,
) -> None:
    async with AdminClient(pulsar_broker.web_url) as admin:
        off = SchemaSwitch(False)  # as if the namespace had said so
        for producer in (CLIENT, REPLICATOR):
            answers = await schema_answers(
                pulsar_broker.service_url, admin, f"{NAMESPACE}-{producer[:6]}", SchemaSwitch(None), producer
            )
            assert answers == expected_answers(off, producer, is_ours=True)


async def test_schema_switch_when_changed_then_the_next_attempt_on_the_same_connection_is_taken(
    pulsar_broker: InProcessBroker,
) -> None:
    def ask(client: RawClient) -> bool:
        answer = client.ask(commands.get_or_create_schema(1, f"{T}/x", SCHEMA, producer_name=REPLICATOR))
        return not answer.HasField("error_code")

    async with AdminClient(pulsar_broker.web_url) as admin:
        await admin.namespaces.create(NAMESPACE)
        await admin.topics.create(f"{T}/x")
        await admin.namespaces.set_auto_update_schema_allowed(NAMESPACE, False, with_replicator=False)
        with RawClient(pulsar_broker.service_url) as client:
            assert not await asyncio.to_thread(ask, client)
            with pytest.raises(InvalidRequest, match="meaningless"):
                await admin.namespaces.set_auto_update_schema_allowed(NAMESPACE, True, with_replicator=False)
            assert not await asyncio.to_thread(ask, client)
            await admin.namespaces.set_auto_update_schema_allowed(NAMESPACE, False, with_replicator=True)
            assert await asyncio.to_thread(ask, client)
        assert (await admin.namespaces.policies(NAMESPACE)).allow_auto_update_schema is False


OFF = AutoTopicCreation(False)


async def test_missing_topics_when_creation_is_off_then_replicators_may_unless_forbidden(
    pulsar_broker: InProcessBroker,
) -> None:
    async with AdminClient(pulsar_broker.web_url) as admin:
        for number, for_replicator in enumerate((None, True, False)):
            namespace, policy = f"{NAMESPACE}{number}", replace(OFF, always_allow_for_replicator=for_replicator)
            await admin.namespaces.create(namespace)
            await admin.namespaces.set_auto_topic_creation(namespace, policy)
            assert await admin.namespaces.auto_topic_creation(namespace) == policy
            created = []
            for domain in ("persistent", "non-persistent"):
                assert await asks(pulsar_broker, f"{domain}://{namespace}/c", CLIENT) == "TopicNotFound"
                for producer in (REPLICATOR, PLAIN_REPLICATOR):
                    topic = f"{domain}://{namespace}/x{len(producer)}"
                    said = await asks(pulsar_broker, topic, producer)
                    assert said == ("TopicNotFound" if for_replicator is False else "created")
                    created += [topic] if said == "created" else []
            assert sorted(await admin.topics.list(namespace)) == sorted(created)
            assert await admin.topics.list_partitioned(namespace) == []


async def test_missing_topics_when_replicators_may_not_then_an_operator_creates_them_all_the_same(
    pulsar_broker: InProcessBroker,
) -> None:
    async with AdminClient(pulsar_broker.web_url) as admin:
        await admin.namespaces.create(NAMESPACE)
        await admin.namespaces.set_auto_topic_creation(NAMESPACE, replace(OFF, always_allow_for_replicator=False))
        await admin.topics.create(f"{T}/x")
        assert await asks(pulsar_broker, f"{T}/x", REPLICATOR) == "created"


@pytest.mark.pulsar_settings(allowAutoTopicCreation="false")
async def test_missing_topics_when_the_broker_forbids_creation_then_replicators_may_but_the_checks_of_partitions_hold(
    pulsar_broker: InProcessBroker,
) -> None:
    async with AdminClient(pulsar_broker.web_url) as admin:
        await admin.namespaces.create(NAMESPACE)
        await admin.topics.create_partitioned(f"{T}/p", 2)
        assert await asks(pulsar_broker, f"{T}/x", CLIENT) == "TopicNotFound"
        for name, said in PARTITIONS.items():
            assert await asks(pulsar_broker, f"{T}/{name}", REPLICATOR) == said, name
        assert await admin.topics.list_partitioned(NAMESPACE) == [f"{T}/p"]


PARTITIONS = {
    "x": "created",
    "p": "TopicNotFound",
    "p-partition-1": "created",
    "p-partition-2": "TopicNotFound",
    "q-partition-0": "NotAllowedError",
}
"""What a replicator hears where ``p`` has two partitions, and is asked for only by mistake."""


async def asks(broker: InProcessBroker, topic: str, producer: str) -> str:
    return await asyncio.to_thread(may_create, broker.service_url, topic, producer)


async def test_replicators_when_a_limit_is_reached_then_count_for_nothing_and_are_shown_apart(
    pulsar_broker: InProcessBroker,
) -> None:
    await replicators_are_known_by_the_dot(pulsar_broker.service_url, pulsar_broker.web_url)


async def test_replicators_when_roles_are_listed_then_others_are_clients_under_whatever_name(tmp_path: Path) -> None:
    options = settings(tmp_path) | NO_JOB | {"replicatorRoles": "copier"}
    with InProcessBroker(tmp_path / "data", options) as broker:
        async with AdminClient(broker.web_url, credentials=Credentials.token(f"token:{token('admin')}")) as admin:
            await admin.namespaces.create(NAMESPACE)
            await admin.namespaces.set_auto_topic_creation(NAMESPACE, OFF)
            await admin.namespaces.set_auto_update_schema_allowed(NAMESPACE, False)
            await admin.topics.create(f"{T}/x")
            for role in ("copier", "writer"):
                await admin.permissions.grant(NAMESPACE, role, ["produce"])
        said = {role: await asyncio.to_thread(_said_to, broker, role) for role in ("writer", "copier", "admin")}
    allowed = ["ProducerSuccess", "GetOrCreateSchemaResponse"]
    assert said == {"writer": ["TopicNotFound", "IncompatibleSchema"], "copier": allowed, "admin": allowed}


def _said_to(broker: InProcessBroker, role: str) -> list[str]:
    """What a role hears that calls itself a replicator: about a missing topic, and about a new schema."""
    with logged_in(broker.service_url, role) as client:
        requests = (
            commands.producer(1, 1, f"{T}/of-{role}", name=REPLICATOR),
            commands.get_or_create_schema(2, f"{T}/x", SCHEMA, producer_name=REPLICATOR),
        )
        return [_outcome(client.ask(each)) for each in requests]


def _outcome(answer: object) -> str:
    if isinstance(answer, pb.CommandError):
        return pb.ServerError.Name(answer.error)
    if isinstance(answer, pb.CommandGetOrCreateSchemaResponse) and answer.HasField("error_code"):
        return pb.ServerError.Name(answer.error_code)
    return type(answer).__name__.removeprefix("Command")
