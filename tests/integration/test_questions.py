"""Questions through both front ends while operators change what they are about: no answer is older than the change."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from interpulse.model.errors import PulsarError, ServerError
from interpulse.model.policies.policy_records import NON_PARTITIONED, PARTITIONED, AutoTopicCreation
from interpulse.testing import InProcessBroker
from tests.front_ends.access import TOPIC, Player, logged_in
from tests.support import commands
from tests.support.raw_client import RawClient

NAMESPACE = "public/trial"
X, Y = f"persistent://{NAMESPACE}/x", f"persistent://{NAMESPACE}/y"
NAMES = (X, f"{X}-partition-0", f"{X}-partition-4", Y, f"non-persistent://{NAMESPACE}/z")
OFF, SINGLE = AutoTopicCreation(False), AutoTopicCreation(True, NON_PARTITIONED)
TWO = AutoTopicCreation(True, PARTITIONED, 2)
SEEDS = range(4)
STEPS = 40

Deed = Callable[[InProcessBroker], Any]
DEEDS: tuple[Deed, ...] = (
    lambda broker: broker.admin.topics.create_partitioned(X, 3),
    lambda broker: broker.admin.topics.create(Y),
    lambda broker: broker.admin.topics.expand(X, 5),
    lambda broker: broker.admin.topics.delete_partitioned(X, force=True),
    lambda broker: broker.admin.topics.delete(Y, force=True),
    lambda broker: broker.admin.topics.delete(f"{X}-partition-0", force=True),
    lambda broker: broker.admin.topics.unload(X),
    lambda broker: broker.admin.namespaces.set_auto_topic_creation(NAMESPACE, OFF),
    lambda broker: broker.admin.namespaces.set_auto_topic_creation(NAMESPACE, SINGLE),
    lambda broker: broker.admin.namespaces.set_auto_topic_creation(NAMESPACE, TWO),
    lambda broker: broker.admin.namespaces.unload(NAMESPACE),
    lambda broker: broker.admin.namespaces.split_bundle(NAMESPACE, "LARGEST"),
    lambda broker: broker.admin.namespaces.delete(NAMESPACE, force=True),
    lambda broker: broker.admin.namespaces.create(NAMESPACE),
    lambda broker: broker.admin.brokers.set_dynamic_configuration("allowAutoTopicCreation", "false"),
    lambda broker: broker.admin.brokers.delete_dynamic_configuration("allowAutoTopicCreation"),
)


def answers(broker: InProcessBroker, client: RawClient, name: str) -> dict[str, str]:
    """What both front ends say about a name, nothing of it with creation; request ids left out."""

    def told(ask: Callable[[], Any]) -> str:
        try:
            return str(ask())
        except PulsarError as error:
            return f"{type(error).__name__}: {error}"

    return {
        "binary partitions": str(client.ask(commands.partitioned_metadata(1, name, create=False))),
        "binary lookup": str(client.ask(commands.lookup(1, name))),
        "REST partitions": told(lambda: broker.admin.topics.partitioned_metadata(name)),
        "REST lookup": told(lambda: broker.admin.lookup.topic(name)),
    }


def forget(broker: InProcessBroker) -> None:
    """Make the broker find out everything anew, as one that has just been started."""

    async def clear(app: Any) -> None:
        lifecycle, lookups = app.lifecycle, app.lookups
        tables = [
            *lifecycle._cached_partitions.values(),
            *lifecycle._cached_metadata.values(),
            lifecycle._cached_servable,
        ]
        for table in tables:
            table._answers.clear()
        lookups._served.clear()
        lookups._views.clear()
        app.context.namespaces._parsed.clear()
        app.parts.base.stores.metadata._cache.clear()

    broker.call(clear)


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_when_operators_change_things_then_are_those_of_a_broker_that_knows_nothing(
    seed: int, tmp_path: Path
) -> None:
    dice = random.Random(seed)
    with InProcessBroker(tmp_path, {"forceDeleteNamespaceAllowed": True, "replicationJob": "external"}) as broker:
        broker.admin.namespaces.create(NAMESPACE)
        client = RawClient(broker.service_url)
        for _ in range(STEPS):
            with suppress(PulsarError):  # not everything can be done at any time
                dice.choice(DEEDS)(broker)
            if dice.random() < 0.3:
                client.ask(commands.partitioned_metadata(1, dice.choice(NAMES)))  # which may create
            for name in dice.sample(NAMES, 2):
                answers(broker, client, name)
                from_memory = answers(broker, client, name)
                forget(broker)
                assert from_memory == answers(broker, client, name), name
        client.close()


def test_question_when_the_permission_is_gone_then_refused_though_the_answer_is_known(
    token_broker: InProcessBroker, access_player: Player
) -> None:
    """Authorization is asked each time; both the right and its end hold for names that were asked for before."""
    permissions = "/admin/v2/namespaces/acme/app/permissions/passing"
    question, lookup = commands.partitioned_metadata(1, TOPIC, create=False), commands.lookup(2, TOPIC)
    admin, passing = (logged_in(token_broker.service_url, role) for role in ("admin", "passing"))
    try:
        for _ in range(2):
            known = admin.ask(question), admin.ask(lookup)
            assert [answer.HasField("error") for answer in known] == [False, False]
            assert [passing.ask(each).error for each in (question, lookup)] == [ServerError.AuthorizationError] * 2
            access_player.call("admin", "POST", permissions, ["produce"])
            assert (passing.ask(question), passing.ask(lookup)) == known
            access_player.call("admin", "DELETE", permissions)
    finally:
        admin.close()
        passing.close()
