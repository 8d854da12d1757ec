"""What open event streams of the console cost publishing: charts of rates, and live tails.

    python -m benchmarks.event_streams [--rounds 3] [--streams 1000]

One generator publishes to one broker, in turns with no stream open, with the charts of so many pages, and with so many
tails; each time one more reader asks for a stream and never reads it. All of them watch what is published and nine
other topics. A process of its own reads the streams; it shares the cores with the broker, so a rate tells less than
the broker's processor time. Prints the median of all rounds: messages in a second, the broker's processor time for a
million messages, the same for a second in which nobody publishes, and the events that came. Takes about a minute, and
keeps nothing.
"""

import argparse
import json
import resource
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from benchmarks.contenders import Interpulse, cpu_seconds
from benchmarks.figures import MESSAGES, raw_frames
from benchmarks.http_load import Request, run_requests
from benchmarks.raw_load import RECEIVE_BYTES, Refused, publish

TOPICS = 10
STREAMS = 1000
REPEATS = 3
IDLE_SECONDS = 3
OPENING_SECONDS_MAX = 60
KINDS = {"none": "", "charts": "topic-rates", "tails": "messages/tail"}
NEVER_READ_BYTES = 4096


class Turn(NamedTuple):
    """What one kind of streams came to."""

    rate: float
    cpu_per_million: float
    idle_cpu: float
    """Seconds in a second."""

    opened: int
    events: float
    """In a second, of all streams."""


class _Stream:
    """One stream that is read."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.events = 0
        self.status = 0

    def on_readable(self) -> bool:
        """Whether it is still open."""
        received = self.connection.recv(RECEIVE_BYTES)
        if not self.status and received:
            self.status = int(received.split(b" ", 2)[1])
        self.events += received.count(b"data: ")
        return bool(received)


def topic(number: int) -> str:
    return f"persistent://public/default/watched-{number}"


def hold(web_url: str, page: str, count: int) -> None:
    """The reader: opens the streams, says how many it has, and at the end of its input how many events came."""
    _allow_files(count)
    target = urlsplit(web_url)
    streams: dict[int, _Stream] = {}
    with ExitStack() as stack:
        poller = stack.enter_context(select.epoll())
        for number in range(count):
            connection = stack.enter_context(socket.create_connection((target.hostname, target.port)))
            _ask(connection, target.netloc, page, number)
            streams[connection.fileno()] = _Stream(connection)
            poller.register(connection.fileno(), select.EPOLLIN)
        unread = stack.enter_context(socket.socket())
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NEVER_READ_BYTES)
        unread.connect((target.hostname, target.port))
        _ask(unread, target.netloc, page, 0)
        deadline = time.monotonic() + OPENING_SECONDS_MAX
        while not all(each.status for each in streams.values()) and time.monotonic() < deadline:
            _read_some(poller, streams)
        opened = sum(each.status == 200 for each in streams.values())
        print(json.dumps(opened), flush=True)
        poller.register(sys.stdin.fileno(), select.EPOLLIN)
        before, began = sum(each.events for each in streams.values()), time.monotonic()
        while _read_some(poller, streams):
            pass
        events = sum(each.events for each in streams.values()) - before
        print(json.dumps(events / (time.monotonic() - began)), flush=True)


def _read_some(poller: select.epoll, streams: dict[int, _Stream]) -> bool:
    """False at the end of the input."""
    for descriptor, _ in poller.poll(1):
        if descriptor not in streams:
            return False
        if not streams[descriptor].on_readable():
            poller.unregister(descriptor)
    return True


def _ask(connection: socket.socket, host: str, page: str, number: int) -> None:
    path = f"/console/{page}?name={topic(number % TOPICS)}"
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())


def _allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 100
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))


@contextmanager
def held(web_url: str, page: str, count: int) -> Iterator[list[float]]:
    """Streams that are open inside; how many there are, and afterwards how many events came in a second."""
    told: list[float] = []
    if not page:
        yield [0, 0]
        return
    command = [sys.executable, "-m", "benchmarks.event_streams", "--hold", web_url, page, "--streams", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        told.append(_told(reader))
        yield told
        assert reader.stdin is not None, "it is a pipe"
        reader.stdin.write("\n")
        reader.stdin.flush()
        told.append(_told(reader))


def _told(reader: "subprocess.Popen[str]") -> float:
    assert reader.stdout is not None, "it is a pipe"
    line = reader.stdout.readline()
    if not line:
        raise Refused(f"the reader of the streams ended with {reader.wait()}")
    return float(json.loads(line))


def take_turn(broker: Interpulse, page: str, count: int) -> Turn:
    """Publishes while these streams are open."""
    frames = raw_frames()
    with held(broker.web_url, page, count) as told:
        before, began = cpu_seconds(broker), time.monotonic()
        time.sleep(IDLE_SECONDS)
        idle = (cpu_seconds(broker) - before) / (time.monotonic() - began)
        before = cpu_seconds(broker)
        seconds = sum(publish(broker.service_url, topic(0), frames, MESSAGES) for _ in range(REPEATS))
        cpu = cpu_seconds(broker) - before
    sent = MESSAGES * REPEATS
    return Turn(sent / seconds, cpu / sent * 1e6, idle, int(told[0]), told[1])


def main(arguments: Sequence[str]) -> None:
    """Runs what the arguments ask for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.event_streams", description="Publishing beside open event streams of the console."
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--hold", nargs=2, metavar=("URL", "PAGE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.hold:
        hold(*options.hold, options.streams)
        return
    turns: dict[str, list[Turn]] = {kind: [] for kind in options.kinds}
    with tempfile.TemporaryDirectory(prefix="interpulse-streams-") as scratch:
        broker = Interpulse(Path(scratch))
        broker.start()
        try:
            paths = [f"/admin/v2/persistent/public/default/watched-{number}" for number in range(TOPICS)]
            run_requests(broker.web_url, [Request("PUT", path) for path in paths], connections=1)
            publish(broker.service_url, topic(0), raw_frames(), MESSAGES)  # the first ones are slower
            for _ in range(options.rounds):
                for kind in turns:
                    turns[kind].append(take_turn(broker, KINDS[kind], options.streams))
        finally:
            broker.stop()
    print("| streams | messages/s | broker CPU s for a million | idle CPU, s/s | open | events/s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for kind, taken in turns.items():
        rate, cpu, idle, opened, events = (statistics.median(column) for column in zip(*taken, strict=True))
        print(f"| {kind} | {rate:,.0f} | {cpu:.2f} | {idle:.3f} | {opened:.0f} | {events:,.0f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
