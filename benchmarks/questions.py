"""What questions about topics cost: partition metadata and lookups, pipelined, over one name and over 10,000.

    python -m benchmarks.questions [--beside PROGRAM ...] [--real] [--rounds 5]

Per question: the best time, and the least processor time of the broker. Contenders take turns, round by round:
``--beside`` adds the ``interpulse`` of another environment, ``--real`` a real Pulsar. Where the time of a broker goes
`benchmarks.profile_shares` says. Keeps nothing.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.contenders import Contender, Interpulse, Pulsar, cpu_seconds
from benchmarks.http_load import Request, run_requests
from benchmarks.raw_frames import encode_lookup, encode_partitions
from benchmarks.raw_load import RawConnection
from interpulse.wire import pulsar_api_pb2 as pb

ASKED_AT_ONCE: Final = 1000
QUESTIONS: Final = 10_000
NAMES: Final = 10_000
CONNECTIONS: Final = 100
HTTP_QUESTIONS: Final = 1000

METADATA: Final = pb.BaseCommand.PARTITIONED_METADATA_RESPONSE
LOOKUP: Final = pb.BaseCommand.LOOKUP_RESPONSE
TOPIC: Final = "persistent://public/default/questions"
PATH: Final = "/admin/v2/persistent/public/default/questions/partitions"

Encode = Callable[[int, str], bytes]
Best = dict[str, tuple[float, float]]
"""Microseconds and microseconds of processor time per question, by title."""


class Costs:
    """The least of what each kind of question cost a broker, in all rounds."""

    def __init__(self, contender: Contender) -> None:
        self.best: Best = {}
        self._contender = contender

    def note(self, title: str, questions: int, ask: Callable[[], float]) -> None:
        """``ask`` returns the seconds it took."""
        before = cpu_seconds(self._contender)
        seconds = ask()
        cost = seconds / questions * 1e6, (cpu_seconds(self._contender) - before) / questions * 1e6
        least = self.best.get(title, cost)
        self.best[title] = min(least[0], cost[0]), min(least[1], cost[1])


def ask(connections: Sequence[RawConnection], encode: Encode, answer_type: int, topics: Sequence[str]) -> float:
    """Ask for all of these through each connection, a thousand at once; the seconds to the last answer."""
    pieces = [topics[start : start + ASKED_AT_ONCE] for start in range(0, len(topics), ASKED_AT_ONCE)]
    frames = [b"".join(encode(number, topic) for number, topic in enumerate(piece, 1000)) for piece in pieces]
    started = time.perf_counter()
    for piece, frame in zip(pieces, frames, strict=True):
        for connection in connections:
            connection.socket.sendall(frame)
        for connection in connections:
            connection.count(answer_type, len(piece))
    return time.perf_counter() - started


def prepare(contender: Contender) -> None:
    """One topic of 10,000 partitions, all of which exist."""
    run_requests(contender.web_url, [Request("PUT", PATH, str(NAMES).encode())], connections=1)


def one_round(contender: Contender, costs: Costs) -> None:
    """Every kind of question once."""
    names = [f"{TOPIC}-partition-{number}" for number in range(NAMES)]
    with ExitStack() as stack:
        connections = [stack.enter_context(RawConnection(contender.service_url)) for _ in range(CONNECTIONS)]
        one, each_connection = connections[:1], QUESTIONS // CONNECTIONS
        for kind, encode, answer_type in (("metadata", encode_partitions, METADATA), ("lookup", encode_lookup, LOOKUP)):
            for title, over, topics in (
                (f"{kind}, {ASKED_AT_ONCE} at once, one name", one, [TOPIC] * QUESTIONS),
                (f"{kind}, {NAMES:,} names", one, names * (QUESTIONS // NAMES)),
                (f"{kind}, {CONNECTIONS} connections, one name", connections, [TOPIC] * each_connection),
            ):
                asked = len(over) * len(topics)
                costs.note(title, asked, lambda: ask(over, encode, answer_type, topics))  # noqa: B023 - called at once
    get = [Request("GET", PATH)] * HTTP_QUESTIONS
    costs.note(
        "metadata over HTTP, one name", HTTP_QUESTIONS, lambda: run_requests(contender.web_url, get, connections=8)
    )


def cold(contender: Contender, costs: Costs) -> None:
    """The first question for each of 10,000 names, to a broker that was started anew."""
    names = [f"{TOPIC}-partition-{number}" for number in range(NAMES)]
    for title, encode, answer_type in (
        (f"metadata, {NAMES:,} names, cold", encode_partitions, METADATA),
        (f"lookup, {NAMES:,} names, then", encode_lookup, LOOKUP),
    ):
        with RawConnection(contender.service_url) as connection:
            costs.note(title, NAMES, lambda: ask([connection], encode, answer_type, names))  # noqa: B023 - called at once


@contextmanager
def running(contender: Contender) -> Iterator[None]:
    contender.start()
    try:
        yield
    finally:
        contender.stop()


def compare(contenders: Sequence[Contender], rounds: int) -> None:
    """Print the table."""
    costs = {contender.name: Costs(contender) for contender in contenders}
    for contender in contenders:
        with running(contender):
            prepare(contender)
    for _ in range(2):
        for contender in contenders:
            with running(contender):
                cold(contender, costs[contender.name])
    with ExitStack() as stack:
        for contender in contenders:
            stack.enter_context(running(contender))
        for _ in range(rounds):
            for contender in contenders:
                one_round(contender, costs[contender.name])
    print(f"\n| us a question (broker CPU) | {' | '.join(costs)} |")
    print(f"| --- | {'--- | ' * len(costs)}".rstrip())
    for title in next(iter(costs.values())).best:
        row = [f"{time_us:.2f} ({cpu_us:.2f})" for time_us, cpu_us in (each.best[title] for each in costs.values())]
        print(f"| {title} | {' | '.join(row)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", action="append", default=[], metavar="PROGRAM", type=Path)
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        contenders: list[Contender] = [Interpulse(Path(directory) / "ours")]
        for number, program in enumerate(options.beside):
            beside = Interpulse(Path(directory) / f"beside-{number}", program=program)
            beside.name = str(program)
            contenders.append(beside)
        if options.real:
            contenders.append(Pulsar(Path(directory) / "real"))
        compare(contenders, options.rounds)


if __name__ == "__main__":
    main()
