"""Figures of our broker beside the last release and a real Pulsar, on the same machine and in the same run.

    python -m benchmarks.end_to_end                                    everything, 32 minutes at most
    python -m benchmarks.end_to_end --only raw --rounds 2
    python -m benchmarks.end_to_end --contenders interpulse release    without a real Pulsar
    python -m benchmarks.end_to_end --release b82896d                  beside that commit

The brokers take turns in every round, in random order, so that none has the quieter machine; of all rounds the best
counts, because a JVM needs the first ones to warm up. After the last minute no round begins. A complete run is kept in
benchmarks/results/. Exit codes: 0 done, 1 a measurement failed or a figure is worse than the release's by more than
noise, 2 a contender is missing.
"""

import argparse
import platform
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pulsar

from benchmarks.contenders import Contender, DidNotStart, Interpulse, Pulsar
from benchmarks.figures import ON_FRESH_BROKER, ON_WARM_BROKER, ON_WARM_PAIR, ROWS, Samples, keep_everything
from benchmarks.http_load import Request, fetch
from benchmarks.limit import LIMITS, LimitServer
from benchmarks.raw_load import Refused
from benchmarks.releases import NoRelease, commit_of, last_release, program_of
from benchmarks.replicated_pairs import OurPair, Pair, real_pair
from benchmarks.report import LIMIT, OURS, REAL, RELEASE, Results, machine_name, read_kept, table, write
from tests.interop.real_pulsar import DidNotStart as RealDidNotStart
from tests.interop.real_pulsar import Unavailable

CONTENDERS = (OURS, RELEASE, REAL, LIMIT)
GROUPS = (*ON_FRESH_BROKER, *ON_WARM_PAIR, *ON_WARM_BROKER)
FAILURES = (Refused, DidNotStart, RealDidNotStart, OSError, pulsar.PulsarException)


def main(arguments: Sequence[str]) -> int:
    """Runs what the arguments ask for; returns the exit code."""
    options = _parse(arguments)
    versions = {"interpulse": version("interpulse"), "python": platform.python_version()}
    with tempfile.TemporaryDirectory(prefix="interpulse-bench-") as scratch:
        try:
            run = Run(options, Path(scratch), versions)
            run.fresh()
            run.pairs()
            run.warm()
        except (Unavailable, NoRelease, DidNotStart, RealDidNotStart) as missing:
            print(missing, file=sys.stderr)
            return 2
    return _finish(run, options, " ".join(["python -m benchmarks.end_to_end", *arguments]))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.end_to_end", description="Figures beside the last release and a real Pulsar."
    )
    parser.add_argument("--rounds", type=int, default=4, help="repetitions on the brokers that stay up")
    parser.add_argument(
        "--fresh-rounds",
        type=int,
        default=2,
        help="repetitions that start brokers of their own, and on pairs of clusters",
    )
    parser.add_argument("--minutes", type=float, default=30, help="after them nothing more is measured")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--release", help="the commit or tag of the release; the last one unless given")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="of the order of turns")
    return parser.parse_args(arguments)


class Run:
    """One run of all that was asked for."""

    def __init__(self, options: argparse.Namespace, scratch: Path, versions: dict[str, str]) -> None:
        self.results = Results(options.contenders)
        self.versions = versions
        self._options = options
        self._scratch = scratch
        self._turns = random.Random(options.seed)
        self._brokers = [name for name in options.contenders if name != LIMIT]
        self._release: Path | None = None
        versions["commit"] = commit_of("HEAD")[:12]
        if RELEASE in self._brokers:
            release = commit_of(options.release) if options.release else last_release()
            versions[RELEASE] = release[:12]
            self._release = program_of(release)

    def fresh(self) -> None:
        """What starts brokers of its own."""
        for round_number in range(self._options.fresh_rounds):
            for group in _chosen(ON_FRESH_BROKER, self._options.only):
                for name in self._in_turns(self._brokers):
                    with _directory(self._scratch / f"{name}-{group}") as directory:
                        measure = partial(ON_FRESH_BROKER[group], self._contender(name, directory), round_number)
                        self._measure(name, group, round_number, measure)

    def pairs(self) -> None:
        """What runs on pairs of clusters that stay up."""
        groups = list(_chosen(ON_WARM_PAIR, self._options.only))
        if not groups:
            return
        with ExitStack() as stack:
            pairs = {name: stack.enter_context(self._pair(name)) for name in self._brokers}
            for round_number in range(self._options.fresh_rounds):
                for group in groups:
                    for name in self._in_turns(self._brokers):
                        measure = ON_WARM_PAIR[group]
                        self._measure(name, group, round_number, partial(measure, pairs[name], round_number))

    def warm(self) -> None:
        """What runs on brokers that stay up."""
        groups = list(_chosen(ON_WARM_BROKER, self._options.only))
        if not groups:
            return
        with self._started() as brokers:
            for name, broker in brokers.items():
                number = fetch(broker.web_url, Request("GET", "/admin/v2/brokers/version")).decode().strip()
                self.versions[f"{name} broker"] = number
            for round_number in range(self._options.rounds):
                print(f"round {round_number + 1} of {self._options.rounds}", flush=True)
                for group in groups:
                    for name in self._in_turns(self._options.contenders):
                        if name == LIMIT:
                            self._measure_limit(group, round_number)
                        else:
                            measure = partial(ON_WARM_BROKER[group], brokers[name], round_number)
                            self._measure(name, group, round_number, measure)

    def _in_turns(self, names: Sequence[str]) -> list[str]:
        return self._turns.sample(names, len(names))

    def _contender(self, name: str, directory: Path) -> Contender:
        if name == REAL:
            return Pulsar(directory)
        return Interpulse(directory, program=self._release if name == RELEASE else None)

    @contextmanager
    def _started(self) -> Iterator[dict[str, Contender]]:
        with ExitStack() as stack:
            brokers = {name: self._contender(name, self._scratch / f"{name}-warm") for name in self._brokers}
            for broker in brokers.values():
                broker.start()
                stack.callback(broker.stop)
                keep_everything(broker)
            yield brokers

    def _pair(self, name: str) -> Pair:
        directory = self._scratch / f"{name}-pair"
        if name == REAL:
            return real_pair(directory)
        return OurPair(directory, program=self._release if name == RELEASE else None)

    def _measure(self, name: str, group: str, round_number: int, measure: Callable[[], Samples]) -> None:
        if self._is_over(round_number):
            return
        try:
            self.results.add(name, measure())
        except FAILURES as failure:
            what = f"{name}: {group}, round {round_number + 1}: {type(failure).__name__}: {failure}"
            self.results.failures.append(what)
            print(f"  FAILED {what}", file=sys.stderr, flush=True)

    def _measure_limit(self, group: str, round_number: int) -> None:
        if group in LIMITS and not self._is_over(round_number):
            with _directory(self._scratch / "limit") as directory, LimitServer(directory) as server:
                self.results.add(LIMIT, LIMITS[group](server))

    def _is_over(self, round_number: int) -> bool:
        """Whether the time is over; the table then says so."""
        if self.results.seconds < 60 * self._options.minutes:
            return False
        note = f"After {self._options.minutes:g} minutes nothing more was measured, from round {round_number + 1} on."
        if not self.results.notes:
            print(note, file=sys.stderr, flush=True)
            self.results.notes.append(note)
        return True


def _finish(run: Run, options: argparse.Namespace, command: str) -> int:
    results = run.results
    kept = read_kept(machine_name())
    if kept:
        results.show_kept(kept)
    print(table(results))
    if {*options.only} == {*GROUPS} and {*options.contenders} == {*CONTENDERS}:
        print(f"kept as {write(results, run.versions, command)}")
    for figure in results.regressions():
        print(f"WORSE than the release by more than noise: {ROWS[figure].title}", file=sys.stderr)
    ours_failed = any(not failure.startswith(f"{RELEASE}: ") for failure in results.failures)
    return 1 if ours_failed or results.regressions() else 0


def _chosen(groups: Iterable[str], only: Iterable[str]) -> Iterator[str]:
    return (group for group in groups if group in only)


@contextmanager
def _directory(path: Path) -> Iterator[Path]:
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)  # the brokers were stopped on the way here
