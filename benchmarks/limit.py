"""What this machine can do with the bytes and syncs of each figure, without a broker.

    python -m benchmarks.limit

The same generators talk to `limit_server`, which moves and syncs the same bytes and knows no command: no broker on this
machine, with this number of processes and this generator, is faster. The first table has these limits, on uvloop as the
broker runs and on asyncio's own loop. The second has single steps of a broker in Python, each by itself.
"""

import argparse
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import timeit
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import crc32c

from benchmarks.figures import (
    ADMIN_GETS,
    HTTP_CONNECTIONS,
    LATENCY_SAMPLES,
    LATENCY_SAMPLES_PER_SECOND,
    MESSAGES,
    PARTITIONS,
    PAYLOAD_BYTES,
    REDELIVERIES,
    SUBSCRIPTIONS,
    UNACKNOWLEDGED,
    Sample,
    Samples,
    fastest,
    rate,
    raw_frames,
)
from benchmarks.limit_server import HEAD, LOOPS, READY
from benchmarks.raw_frames import (
    MESSAGE,
    SEND_RECEIPT,
    FrameCounter,
    encode,
    encode_flow,
    encode_lookup,
    encode_partitions,
    encode_send,
)
from benchmarks.raw_load import PERMITS, SILENCE_SECONDS_MAX, receive_until
from benchmarks.report import Results, table
from interpulse.storage.segments.files import DiskFiles
from interpulse.wire import pulsar_api_pb2 as pb

TOPIC = "persistent://public/default/limit-partition-7"
URL = "pulsar://127.0.0.1:6650"
GROUP_ENTRIES = 5000
HTTP_GET = b"GET /admin/v2/namespaces/public/default/retention HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"
HTTP_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 56\r\n\r\n" + b"x" * 56


class LimitServer:
    """A running `limit_server`."""

    def __init__(self, directory: Path, loop: str = "uvloop") -> None:
        command = [sys.executable, "-m", "benchmarks.limit_server", str(directory), loop]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None, "it is a pipe"
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate("", timeout=SILENCE_SECONDS_MAX)  # it ends with its input

    @property
    def pid(self) -> int:
        return self._process.pid


@dataclass(frozen=True, slots=True)
class Exchange:
    """What goes to a server, and what comes back for it."""

    request: bytes
    answer: bytes
    durable: bool = False


class LimitConnection:
    """A connection whose exchange the server knows."""

    def __init__(self, server: LimitServer, exchange: Exchange) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=SILENCE_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(HEAD.pack(len(exchange.request), len(exchange.answer), exchange.durable) + exchange.answer)
        assert self.socket.recv(len(READY)) == READY, "the server is ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def at_once(
    server: LimitServer, exchange: Exchange, answer_type: int, messages: int, *, times: int = 1, connections: int = 1
) -> float:
    """Sends a request so many times on each connection, counts so many frames of answers; the seconds to the last."""
    with ExitStack() as stack:
        opened = [stack.enter_context(LimitConnection(server, exchange)) for _ in range(connections)]
        counters = {connection: FrameCounter(answer_type) for connection in opened}
        started = time.perf_counter()
        senders = [
            threading.Thread(target=connection.socket.sendall, args=(exchange.request * times,), daemon=True)
            for connection in opened
        ]
        for sender in senders:
            sender.start()
        receive_until(
            lambda: all(counter.count >= messages for counter in counters.values()),
            opened,
            lambda connection, received: counters[connection].feed(received),
        )
        seconds = time.perf_counter() - started
        for sender in senders:
            sender.join()
        return seconds


def one_by_one(server: LimitServer, exchange: Exchange, requests: int, *, connections: int = 1) -> float:
    """Sends on each connection the next request after the answer to the one before; the seconds of all of them."""
    with ExitStack() as stack:
        opened = [stack.enter_context(LimitConnection(server, exchange)) for _ in range(connections)]
        missing = dict.fromkeys(opened, len(exchange.answer))
        waiting, done = requests, 0

        def send_next(connection: LimitConnection) -> None:
            nonlocal waiting
            if waiting:
                waiting -= 1
                connection.socket.sendall(exchange.request)

        def on_received(connection: LimitConnection, received: bytes) -> None:
            nonlocal done
            missing[connection] -= len(received)
            if not missing[connection]:
                missing[connection] = len(exchange.answer)
                done += 1
                send_next(connection)

        started = time.perf_counter()
        for connection in opened:
            send_next(connection)
        receive_until(lambda: done >= requests, opened, on_received)
        return time.perf_counter() - started


def limit_raw(server: LimitServer) -> Samples:
    """Publishing, draining, and draining ten times at once."""
    published = Exchange(raw_frames(), _receipts(), durable=True)
    return {
        "raw_publish": rate(server, MESSAGES, lambda: at_once(server, published, SEND_RECEIPT, MESSAGES)),
        "raw_drain": rate(server, MESSAGES, lambda: _drain(server, MESSAGES)),
        "fan_out": rate(server, MESSAGES * SUBSCRIPTIONS, lambda: _drain(server, MESSAGES, connections=SUBSCRIPTIONS)),
    }


def limit_shared(server: LimitServer) -> Samples:
    """Messages that one consumer gets again."""

    def redeliver() -> float:
        return sum(_drain(server, UNACKNOWLEDGED) for _ in range(REDELIVERIES))

    return {"redelivery": rate(server, UNACKNOWLEDGED * REDELIVERIES, redeliver)}


def _drain(server: LimitServer, messages: int, *, connections: int = 1) -> float:
    half = PERMITS // 2
    exchange = Exchange(encode_flow(1, half), _messages(half))
    return at_once(server, exchange, MESSAGE, messages, times=messages // half, connections=connections)


def limit_latency(server: LimitServer) -> Samples:
    """One message on the disk and answered."""
    one = Exchange(encode_send(1, b"x" * PAYLOAD_BYTES), encode(_receipt(1)), durable=True)
    taken = []
    for _ in range(LATENCY_SAMPLES // 2):
        taken.append(one_by_one(server, one, 1))
        time.sleep(1 / LATENCY_SAMPLES_PER_SECOND)
    median = Sample(statistics.median(taken) * 1e3)
    return {"receipt": median, "receive": median}


def limit_questions(server: LimitServer) -> Samples:
    """A thousand questions for the partitions of a topic, and for its broker."""
    numbers = range(1000, 1000 + PARTITIONS)
    asked = b"".join(encode_partitions(number, TOPIC) for number in numbers)
    partitions = Exchange(asked, b"".join(encode(_partitions(number)) for number in numbers))
    asked = b"".join(encode_lookup(number, TOPIC) for number in numbers)
    lookups = Exchange(asked, b"".join(encode(_owner(number)) for number in numbers))
    partitions_limit = fastest(
        server,
        PARTITIONS,
        lambda: at_once(server, partitions, pb.BaseCommand.PARTITIONED_METADATA_RESPONSE, PARTITIONS),
    )
    return {
        "partition_metadata": partitions_limit,
        "partition_metadata_1000": partitions_limit,
        "lookups": fastest(
            server, PARTITIONS, lambda: at_once(server, lookups, pb.BaseCommand.LOOKUP_RESPONSE, PARTITIONS)
        ),
    }


def limit_lookups(server: LimitServer) -> Samples:
    """A thousand lookups, each after the answer to the one before."""
    lookup = Exchange(encode_lookup(1, TOPIC), encode(_owner(1)))
    return {"lookups_serial": fastest(server, PARTITIONS, lambda: one_by_one(server, lookup, PARTITIONS))}


def limit_admin(server: LimitServer) -> Samples:
    """HTTP requests on several connections."""
    get = Exchange(HTTP_GET, HTTP_ANSWER)
    return {
        "admin_get": rate(server, ADMIN_GETS, lambda: one_by_one(server, get, ADMIN_GETS, connections=HTTP_CONNECTIONS))
    }


LIMITS: Mapping[str, Callable[[LimitServer], Samples]] = {
    "raw": limit_raw,
    "shared": limit_shared,
    "latency": limit_latency,
    "partitions": limit_questions,
    "lookups": limit_lookups,
    "admin": limit_admin,
}
"""By the groups of `figures`."""


def single_steps(directory: Path) -> Iterator[tuple[str, float]]:
    """What a broker in Python does with one message or question, each step by itself, in microseconds."""
    send = pb.BaseCommand(type=pb.BaseCommand.SEND, send=pb.CommandSend(producer_id=1, sequence_id=70_000))
    position = pb.MessageIdData(ledgerId=12, entryId=40_000)
    ack = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=[position])
    commands = {
        "SEND": send.SerializeToString(),
        "ACK": pb.BaseCommand(type=pb.BaseCommand.ACK, ack=ack).SerializeToString(),
        "PARTITIONED_METADATA": encode_partitions(1, TOPIC)[8:],
        "LOOKUP": encode_lookup(1, TOPIC)[8:],
    }
    for name, body in commands.items():
        yield f"protobuf parses {name}", _best(lambda: pb.BaseCommand.FromString(body))  # noqa: B023 - called at once
    receipt = _receipt(70_000)
    yield "protobuf writes a receipt", _best(receipt.SerializeToString)
    entry = encode_send(1, b"x" * PAYLOAD_BYTES)
    yield "checksum of an entry", _best(lambda: crc32c.crc32c(entry))
    file = DiskFiles().create(directory / "groups")
    group = entry * GROUP_ENTRIES
    took = min(timeit.repeat(lambda: file.write_durably(group), number=1, repeat=20))
    yield f"log append and sync, in groups of {GROUP_ENTRIES:,}", took / GROUP_ENTRIES * 1e6
    took = statistics.median(timeit.repeat(lambda: file.write_durably(entry), number=1, repeat=200))
    yield "log append and sync, alone (p50)", took * 1e6
    file.close()


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limit", description="The limits of this machine.")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    results = Results([*LOOPS])
    with tempfile.TemporaryDirectory(prefix="interpulse-limit-") as scratch:
        for _ in range(options.rounds):
            for loop in LOOPS:
                with running(Path(scratch), loop) as server:
                    for measure in LIMITS.values():
                        results.add(loop, measure(server))
        steps = list(single_steps(Path(scratch)))
    print(table(results))
    print("\n| single step in Python | us |\n| --- | --- |")
    for title, took in steps:
        print(f"| {title} | {took:.2f} |")


@contextmanager
def running(directory: Path, loop: str = "uvloop") -> Iterator[LimitServer]:
    """A server with a file of its own."""
    with tempfile.TemporaryDirectory(dir=directory) as scratch, LimitServer(Path(scratch), loop) as server:
        yield server


def _best(work: Callable[[], object]) -> float:
    return min(timeit.repeat(work, number=1000, repeat=20)) * 1e3


def _receipt(sequence_id: int) -> pb.BaseCommand:
    position = pb.MessageIdData(ledgerId=12, entryId=sequence_id)
    receipt = pb.CommandSendReceipt(producer_id=1, sequence_id=sequence_id, message_id=position)
    return pb.BaseCommand(type=pb.BaseCommand.SEND_RECEIPT, send_receipt=receipt)


@cache
def _receipts() -> bytes:
    return b"".join(encode(_receipt(number)) for number in range(MESSAGES))


@cache
def _messages(messages: int) -> bytes:
    head = pb.CommandMessage(consumer_id=1, message_id=pb.MessageIdData(ledgerId=12, entryId=40_000))
    body = pb.BaseCommand(type=pb.BaseCommand.MESSAGE, message=head).SerializeToString()
    send = encode_send(1, b"x" * PAYLOAD_BYTES)
    entry = send[8 + int.from_bytes(send[4:8]) :]
    return ((4 + len(body) + len(entry)).to_bytes(4) + len(body).to_bytes(4) + body + entry) * messages


def _partitions(request_id: int) -> pb.BaseCommand:
    success = pb.CommandPartitionedTopicMetadataResponse.Success
    answer = pb.CommandPartitionedTopicMetadataResponse(request_id=request_id, partitions=0, response=success)
    return pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA_RESPONSE, partitionMetadataResponse=answer)


def _owner(request_id: int) -> pb.BaseCommand:
    connect = pb.CommandLookupTopicResponse.Connect
    answer = pb.CommandLookupTopicResponse(
        request_id=request_id, response=connect, brokerServiceUrl=URL, authoritative=True
    )
    return pb.BaseCommand(type=pb.BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=answer)


if __name__ == "__main__":
    main()
