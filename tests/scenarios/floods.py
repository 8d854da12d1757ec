"""A thousand hostile clients of each kind at once, while an honest one publishes and its waits are taken.

The broker is a process of its own, everything is on 127.0.0.1, and all sockets are closed at the end of their flood.
"""

from __future__ import annotations

import asyncio
import ssl
import statistics
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from interpulse.model.ids import EARLIEST
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.certificates import Authority
from tests.support.raw_client import RawClient, entry
from tests.support.standalone_process import StandaloneProcess

CLIENTS = 1000
PUBLISHES = 150
HOLD_SECONDS = 1.0
PATIENCE_SECONDS = 10
TOPIC = "persistent://public/default/honest"
FULL = "persistent://public/default/full"
MESSAGES, MESSAGE_BYTES = 10, 10_000
SMALL_WINDOW = 4096

Address = tuple[str, int]
Client = Callable[["FloodedBroker"], Awaitable[None]]


@dataclass(frozen=True)
class Waits:
    """Of an honest client for the receipts of its messages, in milliseconds."""

    count: int
    median: float
    p99: float

    @classmethod
    def of(cls, ms: list[float]) -> Waits:
        return cls(len(ms), statistics.median(ms), statistics.quantiles(ms, n=100)[98])


@dataclass(frozen=True)
class Flood:
    """What many clients do at once. ``client`` ends by itself, or is hung up on."""

    name: str
    client: Client


class FloodedBroker:
    """A broker with plain ports and those inside TLS, and little patience."""

    def __init__(self, folder: Path) -> None:
        files = Authority(folder / "certificates").issue("broker")
        settings = {
            "keepAliveIntervalSeconds": PATIENCE_SECONDS,
            "httpServerIdleTimeout": PATIENCE_SECONDS * 1000,
            "brokerServicePortTls": 0,
            "webServicePortTls": 0,
            "tlsCertificateFilePath": files.certificate,
            "tlsKeyFilePath": files.key,
        }
        lines = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        self.process = StandaloneProcess(folder / "data", *lines)
        told = dict(line.split(": ", 1) for line in self.process.lines[:-1])
        self.binary, self.web = _address(self.process.service_url), _address(self.process.web_url)
        self.binary_tls = _address(told["binary service with TLS"])
        with RawClient(self.process.service_url) as filler:
            filler.ask(commands.subscribe(1, 1, FULL, "s"))
            filler.ask(commands.producer(2, 1, FULL))
            for number in range(MESSAGES):
                filler.ask(commands.send(1, number, entry(b"x" * MESSAGE_BYTES, sequence_id=number)))

    def close(self) -> None:
        self.process.stop()

    @property
    def memory(self) -> int:
        """Bytes of the broker."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    @property
    def connections(self) -> int:
        """How many clients the broker has."""
        return sum(
            each.status == psutil.CONN_ESTABLISHED for each in psutil.Process(self.process.pid).net_connections()
        )

    def waits(self, under_way: Callable[[], bool] = lambda: False) -> Waits:
        """Publish one message after the other, `PUBLISHES` of them and as long as this is so.

        Every one of them has its receipt, or this raises.
        """
        ms: list[float] = []
        with RawClient(self.process.service_url) as honest:
            assert honest.ask(commands.producer(1, 1, TOPIC)).producer_name
            while len(ms) < PUBLISHES or under_way():
                begun = time.perf_counter()
                honest.send(commands.send(1, len(ms), entry(sequence_id=len(ms))))
                while (command := honest.receive().command).type == pb.BaseCommand.PING:
                    honest.send(commands.PONG)
                assert command.send_receipt.sequence_id == len(ms)
                ms.append((time.perf_counter() - begun) * 1000)
        return Waits.of(ms)

    def suffer(self, flood: Flood, clients: int = CLIENTS) -> Waits:
        """The waits of the honest client while so many others do this, all of them connected at once."""
        with ThreadPoolExecutor(1) as pool:
            flooding = pool.submit(asyncio.run, _flood(self, flood, clients))
            waits = self.waits(lambda: not flooding.done())
            flooding.result()
        return waits


async def _flood(broker: FloodedBroker, flood: Flood, clients: int) -> None:
    """Each client goes on for `HOLD_SECONDS` at most; what the broker does to it is its luck."""

    async def one() -> None:
        with suppress(OSError, EOFError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS * 2):
                await flood.client(broker)

    await asyncio.gather(*(one() for _ in range(clients)))


def _address(url: str) -> Address:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


async def _held(address: Address, *said: bytes, pause: float = HOLD_SECONDS, tls: ssl.SSLContext | None = None) -> None:
    """Say these with pauses between them, and read nothing."""
    _, writer = await asyncio.open_connection(*address, ssl=tls, limit=SMALL_WINDOW)
    try:
        for each in said:
            writer.write(each)
            await asyncio.sleep(pause)
    finally:
        writer.transport.abort()


TRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TRUSTING.check_hostname = False
TRUSTING.verify_mode = ssl.CERT_NONE
GREETING = commands.connect(client_version="flood", protocol_version=21, feature_flags=pb.FeatureFlags())
GARBAGE = bytes(range(256)) * 8


async def silent(broker: FloodedBroker) -> None:
    await _held(broker.binary, b"")


async def half_open(broker: FloodedBroker) -> None:
    await _held(broker.binary, GREETING[:-3])


async def slow_loris(broker: FloodedBroker) -> None:
    await _held(broker.web, b"GET /metrics/ HTTP/1.1\r\n", *[b"X: x\r\n"] * 8, pause=HOLD_SECONDS / 8)


async def connects(broker: FloodedBroker) -> None:
    await _held(broker.binary, b"", pause=0)


async def garbage(broker: FloodedBroker) -> None:
    await _held(broker.binary, GARBAGE)


async def garbage_for_tls(broker: FloodedBroker) -> None:
    await _held(broker.binary_tls, GARBAGE)


async def garbage_inside_tls(broker: FloodedBroker) -> None:
    await _held(broker.binary_tls, GARBAGE, tls=TRUSTING)


async def never_reads(broker: FloodedBroker) -> None:
    subscribed = commands.subscribe(1, 1, FULL, f"s{id(asyncio.current_task())}", durable=False, start=EARLIEST)
    await _held(broker.binary, GREETING + subscribed + commands.flow(1, 1000))


async def asks_and_never_reads(broker: FloodedBroker) -> None:
    questions = b"".join(commands.partitioned_metadata(number, TOPIC) for number in range(200))
    await _held(broker.binary, GREETING + questions)


FLOODS = [
    Flood("connects and says nothing", silent),
    Flood("half a greeting", half_open),
    Flood("slow-loris on the web port", slow_loris),
    Flood("connects and goes away", connects),
    Flood("garbage", garbage),
    Flood("garbage in place of TLS", garbage_for_tls),
    Flood("garbage inside TLS", garbage_inside_tls),
    Flood("consumes and never reads", never_reads),
    Flood("asks and never reads", asks_and_never_reads),
]
