"""What replication moves between two clusters of this machine, and how fast a message is there: our job, and real ones.

    python -m benchmarks.replication                      our job with run-ahead and without, three minutes
    python -m benchmarks.replication --real --rounds 3    beside two real Pulsars with their own replicator

All pairs stay up and take turns, so what one does while it is idle is noise to the others. They share the cores with
the generator; processor time is that of brokers, Java, job and Python workers together, and of each kind of process.
A cell has a line for each round. In [brackets]: how late 99 % of the messages were published at most, in ms.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.arrival import arrival_at, idle_cost
from benchmarks.replicated_pairs import (
    BATCH_MESSAGES,
    PAYLOAD_BYTES,
    Moved,
    OurPair,
    Pair,
    batches_of,
    entries_of,
    real_pair,
)

SETTLING_SECONDS = 5


def main(arguments: Sequence[str]) -> int:
    """Runs everything and prints a table; returns the exit code."""
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-") as scratch, ExitStack() as stack:
        pairs: dict[str, Pair] = {
            f"run_ahead_ms = {value}": OurPair(Path(scratch, str(value)), limits={"run_ahead_ms": value})
            for value in options.run_ahead_ms
        }
        if options.real:
            pairs["real"] = real_pair(Path(scratch, "real"))
        taken: dict[str, dict[str, list[str]]] = {}
        for name, pair in pairs.items():
            stack.enter_context(pair)
            pair.move(entries_of(options.entries), options.entries)
            arrival_at(pair, max(options.rates), SETTLING_SECONDS)
            _say(f"{name} is warm")
        for turn in range(options.rounds):
            for measure in _measures(options):
                for name in list(pairs)[:: -1 if turn % 2 else 1]:
                    time.sleep(SETTLING_SECONDS)
                    for figure, value in measure(pairs[name]).items():
                        _say(f"{turn + 1}/{options.rounds} {name}: {figure}: {value}")
                        taken.setdefault(figure, {each: [] for each in pairs})[name].append(value)
    print("\n".join(_table(list(pairs), taken)))
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replication", description="Figures of replication.")
    parser.add_argument("--entries", type=int, default=200_000, help=f"unbatched messages of {PAYLOAD_BYTES} bytes")
    parser.add_argument("--batches", type=int, default=2_000, help=f"batches of {BATCH_MESSAGES} messages of 1 KB")
    parser.add_argument("--rates", type=int, nargs="+", default=[20, 2_000, 5_000], help="messages per second")
    parser.add_argument("--seconds", type=float, default=15, help="of each rate")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--run-ahead-ms", type=int, nargs="+", default=[60_000, 0], help="of our job, a pair for each")
    parser.add_argument("--real", action="store_true", help="two real Pulsars as well")
    return parser.parse_args(arguments)


def _measures(options: argparse.Namespace) -> Iterator[Callable[[Pair], Mapping[str, str]]]:
    """What each pair is measured with in a round, one after the other."""
    entries, batches = entries_of(options.entries), batches_of(options.batches)
    yield lambda pair: _moved(pair.move(entries, options.entries), "unbatched, 100 B", messages=1)
    yield lambda pair: _moved(pair.move(batches, options.batches), "batches of 100, 1 KB", messages=BATCH_MESSAGES)
    for per_second in options.rates:
        yield partial(_arrival, per_second=per_second, seconds=options.seconds)
    yield lambda pair: {"idle: CPU, % of a core": str(idle_cost(pair).per(0.01))}


def _arrival(pair: Pair, *, per_second: int, seconds: float) -> Mapping[str, str]:
    arrival = arrival_at(pair, per_second, seconds)
    delays = " / ".join(f"{arrival.ms(share):.3g}" for share in (0.5, 0.99, 1))
    return {
        f"{per_second:,}/s: p50 / p99 / max, ms": f"{delays} [{arrival.late * 1e3:.0f}]",
        f"{per_second:,}/s: CPU, % of a core": str(arrival.cost.per(arrival.seconds / 100)),
        f"{per_second:,}/s: CPU s per million": f"{arrival.cpu_us:,.0f}",
    }


def _moved(moved: Moved, what: str, *, messages: int) -> Mapping[str, str]:
    """``messages``: of each entry."""
    count = moved.entries * messages
    return {
        f"backlog, {what}: messages/s": f"{count / moved.seconds:,.0f}",
        f"backlog, {what}: CPU s per million": str(moved.cost.per(count / 1e6)),
    }


def _table(names: Sequence[str], taken: dict[str, dict[str, list[str]]]) -> Iterator[str]:
    yield f"| figure | {' | '.join(names)} |"
    yield "| --- " * (len(names) + 1) + "|"
    for figure, values in taken.items():
        yield f"| {figure} | {' | '.join('<br>'.join(values[name]) for name in names)} |"


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} [load {os.getloadavg()[0]:.1f}] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
