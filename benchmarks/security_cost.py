"""What security costs on the way of messages: tokens, permissions and limits, and TLS, beside a broker without them.

    python -m benchmarks.security_cost                  brokers of ours, two minutes
    python -m benchmarks.security_cost --real           beside a real Pulsar with and without TLS, five minutes

All brokers run at once and get the same load in turns over one connection each. The client shares their cores and
encrypts too, so that rates say little: what counts is the processor time of the broker per message. Keeps nothing.
"""

import argparse
import asyncio
import ssl
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jwt

from benchmarks.contenders import Running, cpu_seconds
from benchmarks.raw_frames import MESSAGE, SEND_RECEIPT, FrameCounter, encode, encode_batches, encode_flow, encode_sends
from interpulse.wire import pulsar_api_pb2 as pb
from tests.interop.real_pulsar import RealPulsar
from tests.support.certificates import Authority
from tests.support.standalone_process import StandaloneProcess, free_port

ROUNDS = 5
MESSAGES = 300_000
BATCHES = 6_000
MESSAGES_PER_BATCH = 100
PAYLOAD_BYTES = 100
PERMITS = 1000
PIECE_BYTES = 64 * 1024
SECONDS_MAX = 90

KINDS = {"not batched": (MESSAGES, MESSAGES), "batches of 100": (BATCHES, BATCHES * MESSAGES_PER_BATCH)}
"""Entries and messages of each kind of load."""
KEPT = {
    "brokerDeleteInactiveTopicsEnabled": "false",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
}
LIMITS = {
    "brokerMaxConnections": "10000",
    "brokerMaxConnectionsPerIp": "1000",
    "maxProducersPerTopic": "100",
    "maxConsumersPerTopic": "100",
    "maxSubscriptionsPerTopic": "100",
    "maxMessagePublishBufferSizeInMB": "64",
}


class Contender(NamedTuple):
    """A running broker, and how a client reaches it."""

    name: str
    broker: Running
    port: int
    tls: ssl.SSLContext | None = None
    token: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Messages in a second, and microseconds of the broker's processor per message."""

    rate: float
    cpu_us: float


class Connection:
    """One connection after its handshake."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, contender: Contender) -> "Connection":
        """Raises RuntimeError where the broker refuses the token."""
        streams = await asyncio.open_connection("127.0.0.1", contender.port, ssl=contender.tls, limit=1 << 20)
        connection = cls(*streams)
        connect = pb.CommandConnect(client_version="security-cost", protocol_version=20)
        if contender.token:
            connect.auth_method_name, connect.auth_data = "token", contender.token.encode()
        await connection.ask(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))
        return connection

    async def ask(self, command: pb.BaseCommand) -> pb.BaseCommand:
        """Sends a request; the next command is its answer."""
        self._writer.write(encode(command))
        frame = await self._reader.readexactly(int.from_bytes(await self._reader.readexactly(4)))
        answer = pb.BaseCommand.FromString(frame[4 : 4 + int.from_bytes(frame[:4])])
        if answer.type == pb.BaseCommand.ERROR:
            raise RuntimeError(f"refused: {answer.error.message}")
        return answer

    async def publish(self, topic: str, frames: bytes, entries: int) -> float:
        """Publishes the frames; the seconds until all receipts are there."""
        await self._look_up(topic)
        producer = pb.CommandProducer(topic=topic, producer_id=1, request_id=2)
        await self.ask(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer))
        started = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send(frames))
            tasks.create_task(self._count(SEND_RECEIPT, entries))
        return time.perf_counter() - started

    async def drain(self, topic: str, entries: int, permits_each: int) -> float:
        """Reads the topic from its first entry; the seconds until all are there."""
        await self._look_up(topic)
        subscribe = pb.CommandSubscribe(
            topic=topic,
            subscription="s",
            subType=pb.CommandSubscribe.Exclusive,
            consumer_id=1,
            request_id=2,
            initialPosition=pb.CommandSubscribe.Earliest,
        )
        await self.ask(pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=subscribe))
        started = time.perf_counter()
        await self._count(MESSAGE, entries, permits_each)
        return time.perf_counter() - started

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def _look_up(self, topic: str) -> None:
        lookup = pb.CommandLookupTopic(topic=topic, request_id=1)
        await self.ask(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup))

    async def _send(self, frames: bytes) -> None:
        for begin in range(0, len(frames), PIECE_BYTES):
            self._writer.write(frames[begin : begin + PIECE_BYTES])
            await self._writer.drain()

    async def _count(self, command_type: int, total: int, permits_each: int = 0) -> None:
        counter, granted = FrameCounter(command_type), 0
        while counter.count < total:
            while permits_each and counter.count * permits_each + PERMITS // 2 >= granted:
                self._writer.write(encode_flow(1, PERMITS))
                granted += PERMITS
            received = await self._reader.read(1 << 20)
            if not received:
                raise RuntimeError(f"the broker closed the connection after {counter.count} answers")
            counter.feed(received)


async def measure(contender: Contender, topic: str, frames: Mapping[str, bytes]) -> dict[str, Figure]:
    """One round, by load."""
    found: dict[str, Figure] = {}
    for kind, (entries, messages) in KINDS.items():
        name = f"{topic}-{kind.replace(' ', '-')}"
        for load in ("publish", "drain"):
            connection = await Connection.open(contender)
            before = cpu_seconds(contender.broker)
            async with asyncio.timeout(SECONDS_MAX):
                if load == "publish":
                    seconds = await connection.publish(name, frames[kind], entries)
                else:
                    seconds = await connection.drain(name, entries, messages // entries)
            used = cpu_seconds(contender.broker) - before
            await connection.close()
            found[f"{load}, {kind}"] = Figure(messages / seconds, used / messages * 1e6)
    return found


def started(directory: Path, stack: ExitStack, *, real: bool) -> Iterator[Contender]:
    """The brokers; the plain one first, of each kind."""
    authority = Authority(directory / "certificates")
    certificate, key = authority.issue("127.0.0.1")
    trusting = ssl.create_default_context(cafile=str(authority.file))
    secret = directory / "secret.key"
    secret.write_bytes(bytes(range(32)))
    token = jwt.encode({"sub": "operator"}, secret.read_bytes(), algorithm="HS256")
    locked = LIMITS | {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": secret.as_uri(),
        "superUserRoles": "operator",
    }

    def tls(port: str) -> dict[str, str]:
        return {
            "brokerServicePortTls": port,
            "tlsCertificateFilePath": str(certificate),
            "tlsKeyFilePath": str(key),
        }

    def ours(name: str, settings: Mapping[str, str]) -> StandaloneProcess:
        options = [f"--set={key}={value}" for key, value in {**KEPT, **settings}.items()]
        return stack.enter_context(StandaloneProcess(directory / name, *options))

    plain, guarded, port = ours("plain", {}), ours("guarded", locked), free_port()
    yield Contender("ours", plain, _port_of(plain.service_url))
    yield Contender("ours, tokens and limits", guarded, _port_of(guarded.service_url), token=token)
    yield Contender("ours, TLS", ours("tls", tls(port)), int(port), tls=trusting)
    if real:
        real_port = free_port()
        for name, settings in (("real", {}), ("real, TLS", tls(real_port))):
            cluster = RealPulsar(directory / name.replace(", ", "-"), settings=KEPT | settings, measured=True)
            stack.enter_context(cluster)
            at = int(real_port) if settings else _port_of(cluster.service_url)
            yield Contender(name, cluster, at, tls=trusting if settings else None)


def _port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def table(best: Mapping[str, Mapping[str, Figure]]) -> str:
    """One row for each load and broker; its ratio is to the first of its kind."""
    lines = [
        "| load | broker | messages/s | CPU us per message | to the plain one |",
        "| --- | --- | --- | --- | --- |",
    ]
    for load in next(iter(best.values())):
        for name, figures in best.items():
            of_plain = best[name.split(",")[0]][load].cpu_us
            figure = figures[load]
            lines.append(
                f"| {load} | {name} | {figure.rate:,.0f} | {figure.cpu_us:.2f} | {figure.cpu_us / of_plain:.2f} |"
            )
    return "\n".join(lines)


def compare(directory: Path, *, real: bool, rounds: int) -> str:
    """All rounds; the least processor time and the best rate of each broker and load."""
    frames = {
        "not batched": encode_sends(MESSAGES, PAYLOAD_BYTES),
        "batches of 100": encode_batches(BATCHES, MESSAGES_PER_BATCH, PAYLOAD_BYTES),
    }
    best: dict[str, dict[str, Figure]] = {}
    with ExitStack() as stack:
        brokers = list(started(directory, stack, real=real))
        for turn in range(rounds):
            for each in brokers:
                print(f"{turn + 1}/{rounds} {each.name}", flush=True)
                found = asyncio.run(measure(each, f"persistent://public/default/cost-{turn}", frames))
                before = best.setdefault(each.name, found)
                best[each.name] = {
                    load: Figure(max(found[load].rate, before[load].rate), min(found[load].cpu_us, before[load].cpu_us))
                    for load in found
                }
    return table(best)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.security_cost", description="The cost of security.")
    parser.add_argument("--real", action="store_true", help="beside a real Pulsar, with and without TLS")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        print(compare(Path(directory), real=options.real, rounds=options.rounds))


if __name__ == "__main__":
    main()
