"""S1: one broker, a producer with batches and one without, an exclusive and a shared subscription."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from interpulse.client.client import Client
from interpulse.client.consuming.consumer import Consumer
from interpulse.model.errors import PulsarError
from tests.simulation.faults import Fault, Injector, Targets, plan
from tests.simulation.judge import Acknowledged, Delivery, Finding, History, Interval, Sent
from tests.simulation.network import Network
from tests.simulation.nodes import Node
from tests.simulation.programs import BINARY_PORT, broker_alone
from tests.simulation.world import World
from tests.support.memory_storage import MemoryTree

TOPIC: Final = "persistent://public/default/t"
SECONDS: Final = 10.0
"""The time of the faults."""
_QUIET_SECONDS_MAX: Final = 120.0
_BEFORE_RESTART_SECONDS: Final = 20.0
_KEEP_ALIVE_MS: Final = 5_000
_NOTICED_SECONDS: Final = 2.5 * _KEEP_ALIVE_MS / 1000
"""The time in which a client notices that its connection is dead."""
_FLUSH_SECONDS: Final = 5.0
"""The time in which an acknowledgement reaches the metadata, slow disks included."""
_SETTINGS: Final = {
    "brokerDeduplicationEnabled": "true",
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "keepAliveIntervalSeconds": _KEEP_ALIVE_MS // 1000,
    "managedLedgerMaxEntriesPerLedger": 50,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
}
_OPTIONS: Final[dict[str, Any]] = {
    "keep_alive_interval_ms": _KEEP_ALIVE_MS,
    "backoff_max_ms": 2_000,
    "operation_timeout_ms": 5_000,
    "connect_timeout_ms": 3_000,
}


class SingleBroker:
    """The nodes, programs and history of one run."""

    targets = Targets(servers=("broker",), clients=("producers", "consumers"))

    def __init__(self, world: World) -> None:
        self.world = world
        world.network = Network(world)
        self.history = History(ordered={"exclusive"})
        self.broker, self.producers, self.consumers = (Node(world, name) for name in ("broker", "producers", "consumers"))
        self.programs: dict[str, Callable[[Node], Coroutine[Any, Any, None]]] = {
            "broker": broker_alone(MemoryTree(), _SETTINGS),
            "producers": self._produce,
            "consumers": self._consume,
        }
        self._workload = world.stream("workload")
        self._sending = True
        self._produced = False

    def plan(self) -> list[Fault]:
        """Draw the faults of this seed."""
        return plan(self.world.stream("faults"), self.targets, SECONDS)

    def run(self, faults: Sequence[Fault]) -> list[Finding]:
        """Run with these faults, and judge."""
        world, injector = self.world, Injector(self.world, self.programs)
        for name, program in self.programs.items():
            node = world.node(name)
            assert node is not None
            node.start(program)
        begin = world.seconds
        injector.schedule(faults)
        world.run(lambda: False, SECONDS)
        self._sending = False
        injector.end_all()
        findings = self._quiet("while faults ended")
        world.run(lambda: False, _BEFORE_RESTART_SECONDS)
        self.broker.power_off()
        self.broker.start(self.programs["broker"])
        findings += self._quiet("after the last restart")
        world.run(lambda: False, _BEFORE_RESTART_SECONDS)
        findings += self._read_again()
        excuses = [
            Interval(begin + fault.at - _FLUSH_SECONDS, begin + fault.ends() + _NOTICED_SECONDS + _FLUSH_SECONDS)
            for fault in faults
        ]
        findings += self.history.judge(excuses)
        for node in world.nodes:
            findings += [Finding("G1", f"{node.name}: {error}") for error in node.unhandled_errors]
        return findings

    def _quiet(self, when: str) -> list[Finding]:
        if self.world.run(self._all_delivered, _QUIET_SECONDS_MAX):
            return []
        return [Finding("S1", f"not everything was sent and delivered {_QUIET_SECONDS_MAX:.0f} s {when}")]

    def _all_delivered(self) -> bool:
        if not self._produced:
            return False
        delivered: dict[str, set[bytes]] = {"exclusive": set(), "shared": set()}
        for delivery in self.history.deliveries:
            delivered[delivery.subscription].add(delivery.payload)
        return all(payloads >= self.history.receipts.keys() for payloads in delivered.values())

    def _read_again(self) -> list[Finding]:
        reader = Node(self.world, "reader")
        reader.start(self._read)
        if self.world.run(reader.main.done, _QUIET_SECONDS_MAX):
            return []
        return [Finding("L7", "the topic could not be read from its beginning to its end")]

    # programs

    async def _produce(self, node: Node) -> None:
        async with Client(f"pulsar://broker:{BINARY_PORT}", **_OPTIONS) as client:
            await asyncio.gather(self._send(client, "batched", True), self._send(client, "single", False))
        self._produced = True
        await asyncio.get_running_loop().create_future()

    async def _send(self, client: Client, name: str, batching: bool) -> None:
        producer = await _until_done(
            lambda: client.create_producer(TOPIC, name=name, batching_enabled=batching, send_timeout_ms=60_000)
        )
        number = 0
        while self._sending:
            await asyncio.sleep(self._workload.uniform(0.001, 0.06))
            for _ in range(self._workload.choice([1, 1, 1, 5])):
                number += 1
                message = Sent(name, number)
                self.history.sent.append(message)
                (await producer.enqueue(message.payload)).add_done_callback(
                    lambda receipt, payload=message.payload: self._confirmed(payload, receipt)  # type: ignore[misc]
                )
        await asyncio.gather(producer.close(), return_exceptions=True)

    def _confirmed(self, payload: bytes, receipt: asyncio.Future[Any]) -> None:
        if not receipt.cancelled() and receipt.exception() is None:
            self.history.receipts[payload] = receipt.result()

    async def _consume(self, node: Node) -> None:
        async with Client(f"pulsar://broker:{BINARY_PORT}", **_OPTIONS) as client:
            await asyncio.gather(*(self._receive(client, kind) for kind in ("exclusive", "shared")))

    async def _receive(self, client: Client, kind: Any) -> None:
        consumer: Consumer = await _until_done(
            lambda: client.subscribe(
                TOPIC, kind, subscription_type=kind, initial_position="earliest", receiver_queue_size=20
            )
        )
        while True:
            message = await consumer.receive()
            payload = message.content or b""
            self.history.deliveries.append(Delivery(self.world.seconds, kind, message.id, payload))
            consumer.acknowledge(message)
            self.history.acknowledged.append(Acknowledged(self.world.seconds, kind, payload))

    async def _read(self, node: Node) -> None:
        async with Client(f"pulsar://broker:{BINARY_PORT}", **_OPTIONS) as client:
            reader = await _until_done(lambda: client.create_reader(TOPIC))
            while await reader.has_message_available():
                message = await reader.read_next()
                self.history.stored.append((message.id, message.content or b""))


async def _until_done(attempt: Callable[[], Awaitable[Any]]) -> Any:
    """Try until it succeeds, as an application does at its start."""
    while True:
        try:
            return await attempt()
        except PulsarError:
            await asyncio.sleep(0.5)
