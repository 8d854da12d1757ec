"""What replicators may do, asked of a real Pulsar: our table, and where we differ on purpose."""

from __future__ import annotations

import asyncio
import uuid
from itertools import product

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.policies.policy_records import AutoTopicCreation
from tests.interop.real_pulsar import Address
from tests.scenarios.replicators import (
    CLIENT,
    REPLICATOR,
    SWITCHES,
    expected_answers,
    may_create,
    replicators_are_known_by_the_dot,
    schema_answers,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def test_schemas_of_replicators_are_taken_by_the_same_switches(real_pulsar: Address) -> None:
    unique = uuid.uuid4().hex[:8]
    async with AdminClient(real_pulsar.web_url) as admin:
        for number, (switch, producer) in enumerate(product(SWITCHES, (CLIENT, REPLICATOR))):
            namespace = f"public/replicator-{unique}-{number}"
            answers = await schema_answers(real_pulsar.service_url, admin, namespace, switch, producer)
            assert answers == expected_answers(switch, producer, is_ours=False), (switch, producer)


async def test_missing_topics_are_not_created_for_replicators(real_pulsar: Address) -> None:
    """A real broker knows no ``alwaysAllowForReplicator``."""
    namespace = f"public/replicator-{uuid.uuid4().hex[:8]}"
    async with AdminClient(real_pulsar.web_url) as admin:
        await admin.namespaces.create(namespace)
        policy = AutoTopicCreation(False, always_allow_for_replicator=True)
        await admin.namespaces.set_auto_topic_creation(namespace, policy)
        assert await admin.namespaces.auto_topic_creation(namespace) == AutoTopicCreation(False)
        for producer in (CLIENT, REPLICATOR):
            said = await asyncio.to_thread(may_create, real_pulsar.service_url, f"persistent://{namespace}/x", producer)
            assert said == "TopicNotFound"


async def test_replicators_are_shown_apart_and_count_for_no_limit(real_pulsar: Address) -> None:
    await replicators_are_known_by_the_dot(real_pulsar.service_url, real_pulsar.web_url)
