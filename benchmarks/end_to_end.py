"""Figures of our broker beside those of a real Pulsar, on the same machine and in the same run.

    python -m benchmarks.end_to_end                       everything, about 15 minutes
    python -m benchmarks.end_to_end --only raw --rounds 2

Both brokers take turns in every round, in random order, so that neither has the quieter machine; of all rounds the best
counts, because a JVM needs the first ones to warm up. A complete run is kept in benchmarks/results/.
"""

import argparse
import platform
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

import pulsar

from benchmarks.contenders import Contender, DidNotStart, Interpulse, Pulsar
from benchmarks.figures import ON_FRESH_BROKER, ON_WARM_BROKER, Measure, keep_everything
from benchmarks.http_load import Request, fetch
from benchmarks.raw_load import Refused
from benchmarks.report import OURS, REAL, Results, table, write
from tests.interop.real_pulsar import DidNotStart as RealDidNotStart
from tests.interop.real_pulsar import Unavailable

CONTENDERS: Mapping[str, Callable[[Path], Contender]] = {OURS: Interpulse, REAL: Pulsar}
FAILURES = (Refused, DidNotStart, RealDidNotStart, OSError, pulsar.PulsarException)


def main(arguments: Sequence[str]) -> int:
    """Runs what the arguments ask for; returns the exit code."""
    options = _parse(arguments)
    results = Results(options.contenders)
    versions = {"interpulse": version("interpulse"), "python": platform.python_version()}
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-") as scratch:
        try:
            _run(options, results, Path(scratch), versions)
        except (Unavailable, DidNotStart, RealDidNotStart) as missing:
            print(missing, file=sys.stderr)
            return 2
    print(table(results))
    if {*options.only} == {*ON_FRESH_BROKER, *ON_WARM_BROKER} and {*options.contenders} == {*CONTENDERS}:
        command = " ".join(["python -m benchmarks.end_to_end", *arguments])
        print(f"kept as {write(results, versions, command)}")
    return 1 if results.failures else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.end_to_end", description="Figures beside a real Pulsar."
    )
    groups = [*ON_FRESH_BROKER, *ON_WARM_BROKER]
    parser.add_argument("--rounds", type=int, default=4, help="repetitions on the brokers that stay up")
    parser.add_argument("--fresh-rounds", type=int, default=2, help="repetitions that start a broker of their own")
    parser.add_argument("--only", nargs="+", choices=groups, default=groups, metavar="GROUP", help=", ".join(groups))
    parser.add_argument("--contenders", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="of the order of turns")
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace, results: Results, scratch: Path, versions: dict[str, str]) -> None:
    turns = random.Random(options.seed)
    for round_number in range(options.fresh_rounds):
        for group in _chosen(ON_FRESH_BROKER, options.only):
            for name in turns.sample(options.contenders, len(options.contenders)):
                with _directory(scratch / f"{name}-{group}") as directory:
                    _measure(results, ON_FRESH_BROKER[group], CONTENDERS[name](directory), round_number)
    groups = list(_chosen(ON_WARM_BROKER, options.only))
    if not groups:
        return
    with _started(options.contenders, scratch) as brokers:
        for name, broker in brokers.items():
            versions[f"{name} broker"] = (
                fetch(broker.web_url, Request("GET", "/admin/v2/brokers/version")).decode().strip()
            )
        for round_number in range(options.rounds):
            print(f"round {round_number + 1} of {options.rounds}", flush=True)
            for group in groups:
                for name in turns.sample(options.contenders, len(options.contenders)):
                    _measure(results, ON_WARM_BROKER[group], brokers[name], round_number)


def _chosen(groups: Mapping[str, Measure], only: Iterable[str]) -> Iterator[str]:
    return (group for group in groups if group in only)


@contextmanager
def _directory(path: Path) -> Iterator[Path]:
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _started(names: Sequence[str], scratch: Path) -> Iterator[dict[str, Contender]]:
    with ExitStack() as stack:
        brokers = {name: CONTENDERS[name](scratch / f"{name}-warm") for name in names}
        for broker in brokers.values():
            broker.start()
            stack.callback(broker.stop)
            keep_everything(broker)
        yield brokers


def _measure(results: Results, measure: Measure, contender: Contender, round_number: int) -> None:
    try:
        results.add(contender.name, measure(contender, round_number))
    except FAILURES as failure:
        what = f"{contender.name}: {measure.__name__}, round {round_number + 1}: {type(failure).__name__}: {failure}"
        results.failures.append(what)
        print(f"  FAILED {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)  # the brokers were stopped on the way here
