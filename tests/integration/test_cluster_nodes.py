"""A cluster in this process with an event loop for each program, so that one of them can stop between two turns.

The programs are those of the simulation; here they talk over loopback and in real time.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.client import Client, Consumer, Producer
from interpulse.model.names import TopicName
from tests.simulation import cluster
from tests.simulation.disk import SimulatedDisk
from tests.support.scripted_zookeeper import ScriptedZooKeeper

T = TypeVar("T")

TOPIC = "persistent://public/default/t"
FREE = "127.0.0.1:0"


class Nodes:
    """Event loops, each of one program. All of them get their turns while one of them runs a coroutine."""

    def __init__(self) -> None:
        self._loops: dict[str, asyncio.AbstractEventLoop] = {}
        self._running: list[str] = []
        self.faults: list[dict[str, Any]] = []

    def start(self, name: str, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in a new loop of this name."""
        loop = self._loops[name] = asyncio.new_event_loop()
        loop.set_exception_handler(lambda loop, context: self.faults.append(context))
        self._running.append(name)
        return self.run(name, work)

    def run(self, name: str, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine."""
        task = self._loops[name].create_task(work)
        while not task.done():
            for each in self._running:
                loop = self._loops[each]
                loop.call_soon(loop.stop)
                loop.run_forever()
        return task.result()

    def kill(self, name: str) -> None:
        """Give a loop no turn any more, and close its connections as a kernel does for a killed process."""
        self._running.remove(name)
        self._loops[name].set_exception_handler(lambda loop, context: None)  # it only tidies up from now on
        for descriptor in list(self._loops[name]._selector.get_map()):  # type: ignore[attr-defined]
            with socket.socket(fileno=os.dup(descriptor)) as doubled:
                if doubled.family == socket.AF_INET:
                    doubled.shutdown(socket.SHUT_RDWR)

    def resurrect(self, name: str) -> None:
        """Go on with a killed loop, to close what it has."""
        self._running.append(name)

    def close(self) -> None:
        for loop in self._loops.values():
            loop.close()


class Lab:
    """Two ZooKeeper servers, three bookies, three brokers and a client, each in a loop of its own."""

    def __init__(self, nodes: Nodes, opened: ExitStack) -> None:
        self._nodes = nodes
        self._opened = opened
        self.zookeeper = ScriptedZooKeeper(ends_sessions=True)
        self.zookeeper.session_timeout_ms = 1000
        servers = [self._start_zookeeper(f"zk-{number}") for number in range(2)]
        self.servers = ",".join(servers)
        nodes.run("zk-0", cluster.set_up(self.servers, "http://127.0.0.1:1", "pulsar://127.0.0.1:2"))
        self.disks = {f"bookie-{number}": SimulatedDisk() for number in range(3)}
        self.bookies = {name: self.start_bookie(name, name) for name in self.disks}
        self.brokers = {f"broker-{number}": self._start_broker(f"broker-{number}") for number in range(3)}
        hosts = ",".join(app.service_url.removeprefix("pulsar://") for app in self.brokers.values())
        self.client = nodes.start("client", _client(f"pulsar://{hosts}"))
        opened.callback(lambda: nodes.run("client", self.client.close()))

    def start_bookie(self, node: str, name: str) -> cluster.Bookie:
        """Start a bookie on its disk, in a new node."""
        bookie = self._nodes.start(node, cluster.Bookie.start(name, FREE, self.servers, self.disks[name]))
        self._opened.callback(lambda: self._nodes.run(node, bookie.stop()))
        return bookie

    def owner(self, without: str = "") -> str:
        """The broker that has the topic loaded, other than this one."""
        topic = TopicName.parse(TOPIC)
        return next(name for name, app in self.brokers.items() if name != without and app.registry.get(topic))

    def _start_zookeeper(self, name: str) -> str:
        server = self._nodes.start(name, cluster.start_zookeeper(self.zookeeper, FREE))
        self._opened.callback(lambda: self._nodes.run(name, server.stop()))
        return server.address

    def _start_broker(self, name: str) -> BrokerApp:
        app = self._nodes.start(name, _started(self.servers))
        self._opened.callback(lambda: self._nodes.run(name, app.stop()))
        return app


async def _started(servers: str) -> BrokerApp:
    app = cluster.broker(FREE, FREE, servers)
    await app.start()
    return app


async def _client(service_url: str) -> Client:
    return Client(service_url)


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    running = Nodes()
    yield running
    running.close()
    assert running.faults == []


@pytest.fixture
def lab(nodes: Nodes) -> Iterator[Lab]:
    with ExitStack() as opened:
        yield Lab(nodes, opened)


async def publish(producer: Producer, numbers: range) -> None:
    for number in numbers:
        await producer.send(b"%d" % number)


async def take_until(consumer: Consumer, last: int) -> list[int]:
    """Receive and acknowledge messages up to this one. Return their numbers."""
    taken = [-1]
    while taken[-1] != last:
        message = await consumer.receive()
        consumer.acknowledge(message)
        taken.append(int(message.content or b""))
    return taken[1:]


def test_topic_when_its_broker_is_killed_then_another_goes_on_where_it_was(nodes: Nodes, lab: Lab) -> None:
    consumer = nodes.run("client", lab.client.subscribe(TOPIC, "s"))
    producer = nodes.run("client", lab.client.create_producer(TOPIC))
    nodes.run("client", publish(producer, range(10)))
    assert nodes.run("client", take_until(consumer, 4)) == [*range(5)]
    former = lab.owner()
    nodes.kill(former)
    nodes.run("client", publish(producer, range(10, 20)))
    assert lab.owner(without=former) != former
    again = nodes.run("client", take_until(consumer, 19))
    assert again == [*range(again[0], 20)], "in order and without a gap"
    assert again[0] <= 5
    nodes.resurrect(former)


def test_topic_when_its_bookies_lose_power_in_turn_and_then_its_broker_dies_then_nothing_is_lost(
    nodes: Nodes, lab: Lab
) -> None:
    producer = nodes.run("client", lab.client.create_producer(TOPIC))
    for number, name in enumerate(lab.disks):
        nodes.run("client", publish(producer, range(10 * number, 10 * number + 10)))
        nodes.kill(name)
        lab.disks[name] = lab.disks[name].after_power_loss(random.Random(number))
        lab.start_bookie(f"{name} again", name)
    former = lab.owner()
    nodes.kill(former)  # its tail cache with it
    consumer = nodes.run("client", lab.client.subscribe(TOPIC, "s", initial_position="earliest"))
    assert nodes.run("client", take_until(consumer, 29)) == [*range(30)]
    assert not Path("/nowhere").exists(), "the directory of a broker"
    for name in (*lab.disks, former):
        nodes.resurrect(name)
