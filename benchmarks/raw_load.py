"""Load from plain sockets: frames encoded beforehand go out in large pieces, answers are only counted.

A client that builds and parses every message would be the limit of most measurements, and it shares the machine's cores
with the broker. Here one message costs the generator a fraction of a microsecond: the broker is what is measured.
"""

import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Protocol, Self, TypeVar
from urllib.parse import urlsplit

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
from interpulse.wire import pulsar_api_pb2 as pb

PERMITS = 1000  # what official clients ask for at first, and refill by half
SILENCE_SECONDS_MAX = 60
LOAD_SECONDS_MAX = 90  # a broker whose costs grow with what it holds would otherwise never be done
RECEIVE_BYTES = 1 << 20


class Refused(Exception):
    """The broker answered with an error, or not at all."""


class RawConnection:
    """One blocking connection after its handshake. Requests wait for their answer; loads bypass the parser."""

    def __init__(self, service_url: str) -> None:
        target = urlsplit(service_url)
        self.socket = socket.create_connection((target.hostname, target.port), timeout=SILENCE_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._request_id = 0
        connect = pb.CommandConnect(client_version="interpulse-raw-load", protocol_version=20)
        greeting = self.ask(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect), pb.BaseCommand.CONNECTED)
        self.features = greeting.connected.feature_flags
        """What the broker can do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, command: pb.BaseCommand, answer_type: int) -> pb.BaseCommand:
        """Sends a request and returns its answer; other commands that arrive meanwhile are passed over."""
        self.socket.sendall(encode(command))
        while True:
            answer = self.read_command()
            if answer.type == answer_type:
                return answer
            if answer.type == pb.BaseCommand.ERROR:
                raise Refused(str(answer.error))

    def read_command(self) -> pb.BaseCommand:
        """The next command from the broker; PING is answered here."""
        while True:
            command = self._next_command()
            if command.type != pb.BaseCommand.PING:
                return command
            self.socket.sendall(encode(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong())))

    def look_up(self, topic: str) -> None:
        """Makes the broker own the topic's bundle, as every client does before it opens a topic."""
        lookup = pb.CommandLookupTopic(topic=topic, request_id=self.next_request_id())
        answer = self.ask(
            pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup), pb.BaseCommand.LOOKUP_RESPONSE
        ).lookupTopicResponse
        if answer.response == pb.CommandLookupTopicResponse.Failed:
            raise Refused(str(answer))

    def create_producer(self, topic: str) -> None:
        """Opens producer 1."""
        self.look_up(topic)
        producer = pb.CommandProducer(topic=topic, producer_id=1, request_id=self.next_request_id())
        self.ask(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=producer), pb.BaseCommand.PRODUCER_SUCCESS)

    def subscribe(
        self,
        topic: str,
        subscription: str,
        *,
        sub_type: pb.CommandSubscribe.SubType.ValueType = pb.CommandSubscribe.Exclusive,
        earliest: bool = True,
        durable: bool = True,
    ) -> None:
        """Opens consumer 1 without giving it permits."""
        self.look_up(topic)
        subscribe = pb.CommandSubscribe(
            topic=topic,
            subscription=subscription,
            subType=sub_type,
            consumer_id=1,
            request_id=self.next_request_id(),
            durable=durable,
            initialPosition=pb.CommandSubscribe.Earliest if earliest else pb.CommandSubscribe.Latest,
        )
        if not durable:
            past_the_end = (1 << 63) - 1
            ledger_id = 0 if earliest else past_the_end
            subscribe.start_message_id.CopyFrom(pb.MessageIdData(ledgerId=ledger_id, entryId=ledger_id))
        self.ask(pb.BaseCommand(type=pb.BaseCommand.SUBSCRIBE, subscribe=subscribe), pb.BaseCommand.SUCCESS)

    def next_request_id(self) -> int:
        """A request id not used before on this connection."""
        self._request_id += 1
        return self._request_id

    def answered(self, frames: bytes, answer_type: int, count: int) -> float:
        """Sends these frames as fast as they are taken; returns the seconds to the last of `count` answers."""
        return self.timed(frames, lambda: self.count(answer_type, count))

    def timed(self, frames: bytes, read: Callable[[], object]) -> float:
        """Sends these frames as fast as they are taken; returns the seconds until `read` has all answers."""
        started = time.perf_counter()
        sender = threading.Thread(target=self.socket.sendall, args=(frames,), daemon=True)
        sender.start()
        read()
        seconds = time.perf_counter() - started
        sender.join()
        return seconds

    def count(self, command_type: int, total: int, *, on_some: Callable[[int], None] | None = None) -> None:
        """Receives until `total` frames of a type have come; `on_some(n)` is told of every n that came together."""
        counter = FrameCounter(command_type)
        found = counter.feed(self._received)
        self._received = b""
        while counter.count < total:
            received = self.socket.recv(RECEIVE_BYTES)
            if not received:
                raise Refused(f"connection closed after {counter.count} of {total}")
            found = counter.feed(received)
            if found and on_some is not None:
                on_some(found)

    def _next_command(self) -> pb.BaseCommand:
        while True:
            if len(self._received) >= 8:
                total, size = struct.unpack_from(">II", self._received)
                if len(self._received) >= 4 + total:
                    raw = self._received[8 : 8 + size]
                    self._received = self._received[4 + total :]
                    return pb.BaseCommand.FromString(raw)
            received = self.socket.recv(RECEIVE_BYTES)
            if not received:
                raise Refused("connection closed by the broker")
            self._received += received


def publish(service_url: str, topic: str, frames: bytes, count: int) -> float:
    """Publishes `count` encoded SEND frames as fast as they are taken; returns the seconds to the last receipt."""
    with RawConnection(service_url) as connection:
        connection.create_producer(topic)
        return connection.answered(frames, SEND_RECEIPT, count)


class Permits:
    """Gives consumer 1 of a connection permits as official clients do: many at first, and more when half came."""

    def __init__(self, connection: RawConnection, total: int) -> None:
        """``total``: how many are given altogether."""
        self._connection = connection
        self._left = total
        self._owed = 0
        self._give(PERMITS)

    def on_messages(self, found: int) -> None:
        """So many more have come."""
        self._owed += found
        while self._owed >= PERMITS // 2:
            self._owed -= PERMITS // 2
            self._give(PERMITS // 2)

    def _give(self, permits: int) -> None:
        permits = min(permits, self._left)
        if permits:
            self._left -= permits
            self._connection.socket.sendall(encode_flow(1, permits))


class Connected(Protocol):
    """What has a socket."""

    @property
    def socket(self) -> socket.socket: ...


AnyConnected = TypeVar("AnyConnected", bound=Connected)


def receive_until(
    done: Callable[[], bool],
    connections: Iterable[AnyConnected],
    on_received: Callable[[AnyConnected, bytes], object],
) -> None:
    """Hands on what any of the connections receives, until ``done`` says so."""
    deadline = time.monotonic() + LOAD_SECONDS_MAX
    by_descriptor = {connection.socket.fileno(): connection for connection in connections}
    with select.epoll() as poller:
        for descriptor in by_descriptor:
            poller.register(descriptor, select.EPOLLIN)
        while not done():
            events = poller.poll(SILENCE_SECONDS_MAX)
            if not events:
                raise Refused("nothing came for a minute")
            if time.monotonic() > deadline:
                raise Refused(f"not done within {LOAD_SECONDS_MAX} s")
            for descriptor, _ in events:
                connection = by_descriptor[descriptor]
                received = connection.socket.recv(RECEIVE_BYTES)
                if not received:
                    raise Refused("connection closed by the broker")
                on_received(connection, received)


def drain(service_url: str, topic: str, count: int, *, batch: int = 1) -> float:
    """Reads `count` entries from the beginning with a reader's subscription; returns the seconds to the last one.

    ``batch``: the messages of each.
    """
    with RawConnection(service_url) as connection:
        connection.subscribe(topic, "raw-drain", durable=False)
        started = time.perf_counter()
        permits = Permits(connection, count * batch)
        connection.count(MESSAGE, count, on_some=lambda found: permits.on_messages(found * batch))
        return time.perf_counter() - started


def fan_out(service_url: str, topic: str, subscriptions: int, count: int) -> float:
    """Drains one topic through several subscriptions at once; returns the seconds until each had `count` messages."""
    with ExitStack() as stack:
        connections = [stack.enter_context(RawConnection(service_url)) for _ in range(subscriptions)]
        for number, connection in enumerate(connections):
            connection.subscribe(topic, f"raw-{number}")
        counters = {connection: FrameCounter(MESSAGE) for connection in connections}
        started = time.perf_counter()
        permits = {connection: Permits(connection, count) for connection in connections}
        receive_until(
            lambda: all(counter.count >= count for counter in counters.values()),
            connections,
            lambda connection, received: permits[connection].on_messages(counters[connection].feed(received)),
        )
        return time.perf_counter() - started


def look_up_pipelined(service_url: str, topics: Sequence[str]) -> float:
    """Sends one LOOKUP per topic without waiting; returns the seconds to the last answer."""
    questions = b"".join(encode_lookup(request_id, topic) for request_id, topic in enumerate(topics, 1000))
    return _ask_pipelined(service_url, questions, pb.BaseCommand.LOOKUP_RESPONSE, len(topics))


def ask_partitions_pipelined(service_url: str, topics: Sequence[str]) -> float:
    """Sends one PARTITIONED_METADATA per topic without waiting; returns the seconds to the last answer."""
    questions = b"".join(encode_partitions(request_id, topic) for request_id, topic in enumerate(topics, 1000))
    return _ask_pipelined(service_url, questions, pb.BaseCommand.PARTITIONED_METADATA_RESPONSE, len(topics))


def create_producers(connection: RawConnection, topics: Sequence[str]) -> float:
    """Asks for one producer on each topic without waiting; returns the seconds to the last answer."""
    producers = (
        pb.CommandProducer(topic=topic, producer_id=number, request_id=number) for number, topic in enumerate(topics)
    )
    questions = b"".join(encode(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=each)) for each in producers)
    return connection.answered(questions, pb.BaseCommand.PRODUCER_SUCCESS, len(topics))


def _ask_pipelined(service_url: str, questions: bytes, answer_type: int, count: int) -> float:
    with RawConnection(service_url) as connection:
        return connection.answered(questions, answer_type, count)


def look_up_serially(service_url: str, topics: Sequence[str]) -> float:
    """Sends one LOOKUP after the other, each after the answer to the one before; returns the seconds."""
    with RawConnection(service_url) as connection:
        started = time.perf_counter()
        for topic in topics:
            connection.look_up(topic)
        return time.perf_counter() - started


def offers_batch_lookup(service_url: str) -> bool:
    """Whether BATCH_LOOKUP may be sent to this broker."""
    with RawConnection(service_url) as connection:
        return connection.features.supports_batch_lookup


def look_up_batches(service_url: str, batches: Sequence[Sequence[str]]) -> float:
    """Sends one BATCH_LOOKUP per batch without waiting; returns the seconds to the last answer, all topics found."""
    requests = b"".join(
        encode(
            pb.BaseCommand(
                type=pb.BaseCommand.BATCH_LOOKUP,
                batchLookupTopic=pb.CommandBatchLookupTopic(topics=topics, request_id=request_id),
            )
        )
        for request_id, topics in enumerate(batches, 1000)
    )
    answers: list[pb.CommandBatchLookupTopicResponse] = []
    with RawConnection(service_url) as connection:
        seconds = connection.timed(
            requests, lambda: answers.extend(connection.read_command().batchLookupTopicResponse for _ in batches)
        )
    found = sum(len(group.topicname) for answer in answers for group in answer.groups)
    if found != sum(map(len, batches)):
        raise Refused(f"{found} topics found of {sum(map(len, batches))}: {answers[0].message}")
    return seconds


def latencies(service_url: str, topic: str, samples: int, per_second: int) -> Iterator[tuple[float, float]]:
    """Publishes single messages at a low rate beside a waiting reader: seconds to the receipt and to the reader."""
    payload = b"x" * 100
    with RawConnection(service_url) as producer, RawConnection(service_url) as consumer:
        producer.create_producer(topic)
        consumer.subscribe(topic, "raw-latency", earliest=False, durable=False)
        consumer.socket.sendall(encode_flow(1, samples * 2))
        poller = select.epoll()
        for connection in (producer, consumer):
            poller.register(connection.socket.fileno(), select.EPOLLIN)
        try:
            for sequence_id in range(samples):
                yield _one_latency(poller, producer, consumer, encode_send(sequence_id, payload))
                time.sleep(1 / per_second)
        finally:
            poller.close()


def _one_latency(
    poller: select.epoll, producer: RawConnection, consumer: RawConnection, frame: bytes
) -> tuple[float, float]:
    waited = {
        producer.socket.fileno(): (producer, FrameCounter(SEND_RECEIPT)),
        consumer.socket.fileno(): (consumer, FrameCounter(MESSAGE)),
    }
    seconds: dict[int, float] = {}
    started = time.perf_counter()
    producer.socket.sendall(frame)
    while len(seconds) < len(waited):
        events = poller.poll(SILENCE_SECONDS_MAX)
        now = time.perf_counter()
        if not events:
            raise Refused("no receipt or message for a minute")
        for descriptor, _ in events:
            connection, counter = waited[descriptor]
            if counter.feed(connection.socket.recv(RECEIVE_BYTES)):
                seconds[descriptor] = now - started
    return seconds[producer.socket.fileno()], seconds[consumer.socket.fileno()]
