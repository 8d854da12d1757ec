"""Official clients through our proxy: Java, Python and our own in front of a real Pulsar, Go in front of our broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interpulse.client import Client
from interpulse.client.config import BrokerAddress
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.interop import go_program
from tests.interop.real_pulsar import Address
from tests.support import commands
from tests.support.official_client import admin, connected, receive
from tests.support.proxies import ProxyInThread, proxy_in_thread
from tests.support.raw_client import RawClient

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SUM_OF_500 = str(sum(range(500)))
TYPES = ("Exclusive", "Shared", "Failover", "Key_Shared")


@pytest.fixture(scope="module")
def proxy(real_pulsar: Address) -> Iterator[ProxyInThread]:
    with proxy_in_thread(real_pulsar.service_url, real_pulsar.web_url) as started:
        yield started


def test_java_client_when_behind_the_proxy_then_everything_works(
    proxy: ProxyInThread, java_check: Callable[..., str]
) -> None:
    lines = java_check("BrokerConversation.java", proxy.service_url).splitlines()
    said = dict(line.split(": ", 1) for line in lines if ": " in line)
    expected = {
        "partitions without creation": "TopicDoesNotExistException",
        "partitions with creation": "[plain]",
        **{f"{kind} {name}": SUM_OF_500 for kind in ("batched", "unbatched") for name in TYPES},
        "avro": "UA -3",
        "auto consume": "UA",
        "type change": "IncompatibleSchemaException",
        "reader": "500",
        "seek": "10 0",
        "pattern": "2000",
        "exclusive": "in turn",
        "acknowledged with receipt": "yes",
    }
    assert {name: said.get(name) for name in expected} == expected


def test_go_client_when_behind_the_proxy_then_every_scenario_passes(program: Path, tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker, proxy_in_thread(broker.service_url, broker.web_url) as proxy:
        outcomes = go_program.outcomes(program, proxy.service_url, proxy.web_url)
    assert outcomes
    assert {name: failure for name, failure in outcomes.items() if failure} == {}


def test_official_client_when_behind_the_proxy_then_produces_consumes_and_administers(
    proxy: ProxyInThread, tmp_path: Path
) -> None:
    topic = "persistent://public/default/through-our-proxy"
    admin(proxy.web_url, "PUT", "persistent/public/default/through-our-proxy/partitions", 2)
    with connected(proxy.service_url, tmp_path / "client.log") as client:
        assert len(client.get_topic_partitions(topic)) == 2
        consumer, producer = client.subscribe(topic, "s"), client.create_producer(topic)
        for number in range(100):
            producer.send(b"%d" % number)
        assert {message.data() for message in receive(consumer, 100)} == {b"%d" % number for number in range(100)}


async def test_our_client_when_the_broker_knows_no_batch_lookup_then_the_proxy_asks_one_by_one(
    proxy: ProxyInThread, real_pulsar: Address
) -> None:
    topics = [f"persistent://public/default/proxied-{number}" for number in range(100)]
    async with Client(proxy.service_url) as client:
        found = await client.lookup_batch(topics)
    addresses = [address for address in found.values() if isinstance(address, BrokerAddress)]
    assert len(addresses) == 100
    assert {address.behind for address in addresses} == {real_pulsar.service_url.removeprefix("pulsar://")}


def test_batch_lookup_when_the_broker_knows_none_then_partitions_are_counted_all_the_same(
    proxy: ProxyInThread,
) -> None:
    admin(proxy.web_url, "PUT", "persistent/public/default/batch-behind-proxy/partitions", 3)
    name, absent = "persistent://public/default/batch-behind-proxy", "persistent://public/default/absent-behind-proxy"
    with RawClient(proxy.service_url) as client:
        answer = client.ask(
            commands.batch_lookup(5, [name, absent, "v://x"], create_if_missing=False, expand_partitions=True)
        )
    assert [(each.topic, each.partitions) for each in answer.partitions] == [(name, 3)]
    assert [sorted(group.topicname) for group in answer.groups] == [[f"{name}-partition-{n}" for n in range(3)]]
    assert {each.topicname[0]: each.error for each in answer.failures} == {
        absent: pb.TopicNotFound,
        "v://x": pb.InvalidTopicName,
    }


@pytest.mark.parametrize(
    "frame",
    [
        commands.lookup(7, "persistent://nowhere/nothing/x"),
        commands.lookup(7, "not a name/"),
        commands.partitioned_metadata(7, "persistent://public/default/absent-here", create=False),
        commands.partitioned_metadata(7, "persistent://nowhere/nothing/x"),
        commands.get_schema(7, "persistent://public/default/absent-here", None),
    ],
    ids=["lookup", "name", "without creation", "no namespace", "schema"],
)
def test_refusals_when_they_come_from_a_real_broker_then_clients_get_them_unchanged(
    proxy: ProxyInThread, real_pulsar: Address, frame: bytes
) -> None:
    with RawClient(proxy.service_url) as client, RawClient(real_pulsar.service_url) as direct:
        client.send(frame)
        direct.send(frame)
        assert client.receive().command == direct.receive().command


def test_question_that_a_real_broker_hangs_up_on_when_one_client_asks_it_then_no_other_loses_its_connection(
    proxy: ProxyInThread, real_pulsar: Address
) -> None:
    unreadable = commands.get_topics_of_namespace(7, "nothing")
    with RawClient(real_pulsar.service_url) as direct:
        direct.send(unreadable)
        assert direct.closed_by_broker()
    with RawClient(proxy.service_url) as client, RawClient(proxy.service_url) as other:
        assert other.ask(commands.lookup(1, "persistent://public/default/beside")).brokerServiceUrl
        answer = client.ask(unreadable)
        assert (answer.request_id, answer.error) == (7, pb.ServiceNotReady)
        assert other.ask(commands.lookup(2, "persistent://public/default/beside")).brokerServiceUrl
