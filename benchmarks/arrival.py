"""How long a message takes from publishing on one cluster to its delivery on the other, at a steady rate.

One thread publishes by the clock and reads, so both ends have one clock. A message counts from when it was due: a
generator or broker that falls behind shows in the figures.
"""

import select
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle
from typing import NamedTuple

from benchmarks.raw_frames import MESSAGE, encode, encode_send, whole_frames
from benchmarks.raw_load import LOAD_SECONDS_MAX, Permits, RawConnection, Refused
from benchmarks.replicated_pairs import PACED_TOPIC, PARTITIONS, PAYLOAD_BYTES, Cost, Pair
from interpulse.wire import pulsar_api_pb2 as pb

IDLE_SECONDS = 10
_STAMP = struct.Struct(">d")
_PADDING = b"x" * (PAYLOAD_BYTES - _STAMP.size)
_PONG = encode(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))


class Arrival(NamedTuple):
    """Of one load: delays in seconds, ascending, and what it cost."""

    delays: Sequence[float]
    late: float
    """How late 99 % of the messages were published at most: what this machine could not do in time."""
    seconds: float
    cost: Cost

    def ms(self, share: float) -> float:
        """The delay that this share of the messages does not exceed."""
        return self.delays[min(int(len(self.delays) * share), len(self.delays) - 1)] * 1e3

    @property
    def cpu_us(self) -> float:
        """Processor time of each message."""
        return self.cost.total / len(self.delays) * 1e6


def idle_cost(pair: Pair) -> Cost:
    """What a pair costs in a second in which nothing comes."""
    before, started = pair.cost(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    return pair.cost().since(before).per(time.monotonic() - started)


def arrival_at(pair: Pair, per_second: int, seconds: float) -> Arrival:
    """Publish to all partitions in turns for so long; return when everything was delivered."""
    count = int(per_second * seconds)
    names = [f"{PACED_TOPIC}-partition-{index}" for index in range(PARTITIONS)]
    with ExitStack() as stack:
        ends = [
            _End(stack.enter_context(RawConnection(url)))
            for url in (pair.east.service_url, pair.west.service_url)
            for _ in names
        ]
        producers, consumers = ends[:PARTITIONS], ends[PARTITIONS:]
        for name, producer, consumer in zip(names, producers, consumers, strict=True):
            producer.connection.create_producer(name)
            consumer.receive(name, count)
        before = pair.cost()
        started = time.monotonic()
        late = _play(producers, consumers, started, per_second, count)
        seconds = time.monotonic() - started
        cost = pair.cost().since(before)
    delays = sorted(delay for consumer in consumers for delay in consumer.delays)
    return Arrival(delays, sorted(late)[len(late) * 99 // 100], seconds, cost)


class _End:
    """A connection that publishes, or receives."""

    def __init__(self, connection: RawConnection) -> None:
        self.connection = connection
        self.delays: list[float] = []
        self._rest = b""
        self._permits: Permits | None = None

    def fileno(self) -> int:
        return self.connection.socket.fileno()

    def receive(self, topic: str, count: int) -> None:
        self.connection.subscribe(topic, "arrival", earliest=False, durable=False)
        self._permits = Permits(self.connection, count)

    def on_readable(self) -> None:
        received = self.connection.socket.recv(1 << 20)
        now = time.monotonic()
        if not received:
            raise Refused("connection closed by the broker")
        frames, self._rest = whole_frames(self._rest + received)
        before = len(self.delays)
        for frame in frames:
            if frame[9] == MESSAGE:
                self.delays.append(now - _STAMP.unpack_from(frame, len(frame) - _STAMP.size)[0])
            elif frame[9] == pb.BaseCommand.PING:
                self.connection.socket.sendall(_PONG)
            elif frame[9] == pb.BaseCommand.SEND_ERROR:
                raise Refused("the broker refuses a message")
        if self._permits is not None:
            self._permits.on_messages(len(self.delays) - before)


def _play(
    producers: Sequence[_End], consumers: Sequence[_End], started: float, per_second: int, count: int
) -> Sequence[float]:
    """Send and receive until everything has arrived; returns how late each message was sent."""
    late: list[float] = []
    turns = cycle(producers)
    deadline = started + count / per_second + LOAD_SECONDS_MAX
    while (arrived := sum(len(consumer.delays) for consumer in consumers)) < count:
        while len(late) < count and (now := time.monotonic()) >= (due := started + len(late) / per_second):
            payload = _PADDING + _STAMP.pack(due)
            next(turns).connection.socket.sendall(encode_send(len(late), payload))
            late.append(now - due)
        now = time.monotonic()
        if now > deadline:
            raise Refused(f"{arrived} of {count} messages at {per_second}/s arrived within {now - started:.0f} s")
        until = started + len(late) / per_second if len(late) < count else deadline
        readable, _, _ = select.select([*producers, *consumers], [], [], max(0.0, until - now))
        for end in readable:
            end.on_readable()
    return late
