"""The official client at brokers whose namespaces are fenced, on standby, or moved to another broker."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

import pulsar
import pytest

from interpulse.model.clusters import ClusterMigration
from interpulse.model.ids import Position
from interpulse.testing.broker import BrokerFactory, InProcessBroker
from tests.interop.conftest import JavaCheck
from tests.support.official_client import connected, receive, receive_all

pytestmark = pytest.mark.interop

NAMESPACE = "public/default"
TOPIC = "persistent://public/default/orders"
EARLIEST = pulsar.InitialPosition.Earliest
SEND_TIMEOUT_MS = 120_000


def payloads(messages: list[pulsar.Message]) -> list[bytes]:
    return [message.data() for message in messages]


def test_producer_when_the_namespace_is_fenced_then_its_messages_wait_in_order(pulsar_broker: InProcessBroker) -> None:
    sent: list[bytes] = []
    answered = threading.Semaphore(0)

    def note(result: pulsar.Result, message_id: object) -> None:
        assert result == pulsar.Result.Ok
        answered.release()

    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe(TOPIC, "s", initial_position=EARLIEST)
        producer = client.create_producer(TOPIC, batching_enabled=False, send_timeout_millis=SEND_TIMEOUT_MS)

        def send(count: int) -> None:
            for _ in range(count):
                sent.append(b"%d" % len(sent))
                producer.send_async(sent[-1], note)

        send(500)
        fence = pulsar_broker.admin.namespaces.set_failover_role(NAMESPACE, "fenced", 1)
        send(50)
        stored = pulsar_broker.admin.topics.internal_stats(TOPIC)["lastConfirmedEntry"]
        assert stored == fence["positions"][TOPIC]
        assert Position.parse(stored).entry < len(sent)
        pulsar_broker.admin.namespaces.set_failover_role(NAMESPACE, "active", 1)
        for _ in sent:
            assert answered.acquire(timeout=120)
        assert payloads(receive(consumer, len(sent))) == sent


def test_producer_when_created_on_standby_then_goes_on_after_promotion(pulsar_broker: InProcessBroker) -> None:
    pulsar_broker.admin.topics.create(TOPIC)
    pulsar_broker.admin.namespaces.set_failover_role(NAMESPACE, "standby", 1)
    promotion = threading.Timer(1, pulsar_broker.admin.namespaces.set_failover_role, (NAMESPACE, "active", 2))
    with connected(pulsar_broker.service_url) as client:
        consumer = client.subscribe(TOPIC, "s")
        promotion.start()
        client.create_producer(TOPIC).send(b"after")
        assert payloads(receive_all(consumer, 1)) == [b"after"]


class RedirectedClient:
    """A running `redirected_client.py`."""

    def __init__(self, service_url: str) -> None:
        command = [sys.executable, "-m", "tests.interop.redirected_client", service_url, TOPIC]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._line() == "open"

    def echo(self, line: str) -> str:
        """What it receives after it has published this line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __enter__(self) -> RedirectedClient:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        with self._process:
            self._process.stdin.close()
        assert self._process.returncode == 0


@pytest.fixture
def sites(pulsar_broker_factory: BrokerFactory) -> tuple[InProcessBroker, InProcessBroker]:
    sites = pulsar_broker_factory(clusterName="east"), pulsar_broker_factory(clusterName="west")
    for site in sites:
        site.admin.topics.create(TOPIC)
        site.admin.topics.create_subscription(TOPIC, "s")
    return sites


def received(site: InProcessBroker) -> int:
    return int(site.admin.topics.stats(TOPIC)["msgInCounter"])


def test_clients_when_the_namespace_moves_then_follow_to_the_other_broker_and_back(
    sites: tuple[InProcessBroker, InProcessBroker],
) -> None:
    east, west = sites
    with RedirectedClient(east.service_url) as client:
        assert client.echo("on east") == "on east"
        for epoch, (here, there) in enumerate(((east, west), (west, east)), 1):
            here.admin.namespaces.set_failover_role(NAMESPACE, "fenced", epoch)
            there.admin.namespaces.set_failover_role(NAMESPACE, "active", epoch)
            here.admin.namespaces.set_failover_role(NAMESPACE, "moved", epoch, url=there.service_url)
            assert client.echo(f"moved {epoch}") == f"moved {epoch}"
            assert client.echo(f"again {epoch}") == f"again {epoch}"
            assert not here.admin.topics.stats(TOPIC)["publishers"]
    assert [received(site) for site in sites] == [3, 2]


def test_clients_when_two_sites_redirect_to_each_other_for_a_while_then_survive(
    sites: tuple[InProcessBroker, InProcessBroker],
) -> None:
    east, west = sites
    with RedirectedClient(east.service_url) as client:
        west.admin.namespaces.set_failover_role(NAMESPACE, "moved", 1, url=east.service_url)
        east.admin.namespaces.set_failover_role(NAMESPACE, "moved", 1, url=west.service_url)
        promotion = threading.Timer(1, west.admin.namespaces.set_failover_role, (NAMESPACE, "active", 1))
        promotion.start()
        assert client.echo("at last") == "at last"
    assert [received(site) for site in sites] == [0, 1]


def test_clients_when_the_cluster_is_migrated_then_go_there_until_it_is_taken_back(
    sites: tuple[InProcessBroker, InProcessBroker],
) -> None:
    east, west = sites
    there = ClusterMigration(True, broker_service_url=west.service_url)
    east.admin.clusters.set_migration("east", there)
    with RedirectedClient(east.service_url) as client:
        assert client.echo("there") == "there"
    east.admin.clusters.set_migration("east", replace(there, migrated=False))
    with RedirectedClient(east.service_url) as client:
        assert client.echo("here again") == "here again"
    east.admin.namespaces.set_migrated(NAMESPACE, True)
    with RedirectedClient(east.service_url) as client:
        assert client.echo("there again") == "there again"
    assert [received(site) for site in sites] == [1, 2]


def test_java_clients_when_the_namespace_moves_then_follow_to_the_other_broker_and_back(
    sites: tuple[InProcessBroker, InProcessBroker], java_check: JavaCheck
) -> None:
    addresses = [address for site in sites for address in (site.service_url, site.web_url)]
    lines = java_check("Redirected.java", *addresses).splitlines()
    assert lines == ["at 0", "waiting 1", "at 1", "waiting 2", "at 2"]
    assert [received(site) for site in sites] == [3, 2]
