"""Lookup on a real Pulsar, which does not offer batches: our client, our command line and Pulsar's own agree."""

from __future__ import annotations

import uuid

import pytest

from interpulse.client import AdminClient, BrokerAddress, Client
from interpulse.model.errors import InvalidTopicName, NotFound
from interpulse.testing.broker import InProcessBroker
from tests.interop.conftest import JavaCheck
from tests.interop.real_pulsar import Address
from tests.support import commands
from tests.support.cli_cluster import CliCluster
from tests.support.raw_client import RawClient

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def look_up(service_url: str, port: int) -> dict[str, str]:
    """What becomes of topics of all sorts, with brokers told from failures."""
    topics = ["x", "public/default/y", "a/b", "public/not-there/z", *(f"many-{number}" for number in range(100))]
    async with Client(service_url, lookup_timeout_ms=60_000) as client:
        answers = await client.lookup_batch(topics)
    assert list(answers) == topics
    kinds = {}
    for topic, answer in answers.items():
        if isinstance(answer, BrokerAddress):
            assert answer.port == port
            kinds[topic] = "broker"
        else:
            assert isinstance(answer, InvalidTopicName | NotFound)
            kinds[topic] = type(answer).__name__
    return kinds


async def test_batch_lookup_on_a_real_pulsar_ends_as_on_ours(
    real_pulsar: Address, pulsar_broker: InProcessBroker
) -> None:
    ours = await look_up(pulsar_broker.service_url, int(pulsar_broker.service_url.rpartition(":")[2]))
    assert ours["many-99"] == ours["x"] == "broker"
    assert (ours["a/b"], ours["public/not-there/z"]) == ("InvalidTopicName", "TopicNotFound")
    port = int(real_pulsar.service_url.rpartition(":")[2])
    assert await look_up(real_pulsar.service_url, port) == ours
    over_http = ours | {"public/not-there/z": "NamespaceNotFound"}
    assert await look_up(real_pulsar.web_url, port) == over_http


async def test_partitioned_topic_on_a_real_pulsar_opens_without_batches(real_pulsar: Address) -> None:
    topic = f"persistent://public/default/{uuid.uuid4().hex}"
    async with AdminClient(real_pulsar.web_url) as admin:
        await admin.topics.create_partitioned(topic, 20)
    for url in (real_pulsar.service_url, real_pulsar.web_url):
        async with Client(url) as client:
            consumer = await client.subscribe(topic, f"s-{uuid.uuid4().hex}")
            producer = await client.create_producer(topic)
            await producer.send(b"hello")
            assert (await consumer.receive(60_000)).content == b"hello"


def test_real_pulsar_drops_a_client_that_asks_unasked(real_pulsar: Address) -> None:
    """Why batches are only asked for where the broker announced them."""
    with RawClient(real_pulsar.service_url) as client:
        client.send(commands.batch_lookup(1, ["x"]))
        assert client.closed_by_broker()


def test_command_line_prints_what_pulsars_own_admin_client_finds(
    real_pulsar: Address, pulsar_broker: InProcessBroker, java_check: JavaCheck
) -> None:
    for url, service_url in (
        (real_pulsar.web_url, real_pulsar.service_url),
        (pulsar_broker.web_url, pulsar_broker.service_url),
    ):
        cluster = CliCluster(url, service_url)
        unique = uuid.uuid4().hex
        plain, partitioned = f"persistent://public/default/plain-{unique}", f"persistent://public/default/p-{unique}"
        cluster.run(f"topics create {plain}")
        cluster.run(f"topics create-partitioned-topic {partitioned} -p 3")
        output = java_check("Lookup.java", url, partitioned, plain)
        forms = dict(part.split("\n", 1) for part in f"\n{output}\n".split("\n# ")[1:])
        refused = forms.pop("refused")
        assert {command: sorted(cluster.run(command).split("\n")) for command in forms} == {
            command: sorted(f"{form.rstrip()}\n".split("\n")) for command, form in forms.items()
        }
        code, _, error = cluster.attempt(f"topics partitioned-lookup {plain}")
        assert (code, error) == (1, f"Error: {refused.strip()}\n")
        names = [f"{partitioned}-partition-{index}" for index in range(3)]
        assert cluster.run(f"topics batch-lookup {' '.join(names)}") == cluster.run(
            f"topics partitioned-lookup {partitioned}"
        )
