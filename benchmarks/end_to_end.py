"""Figures of our broker beside those of a real Pulsar, on the same machine and in the same run.

    python -m benchmarks.end_to_end                       everything, about 15 minutes
    python -m benchmarks.end_to_end --only raw --rounds 2

Both brokers take turns in every round, in random order, so that neither has the quieter machine; of all rounds the best
counts, because a JVM needs the first ones to warm up. A complete run is kept in benchmarks/results/.
"""

import argparse
import json
import platform
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil
import pulsar

from benchmarks.contenders import Contender, DidNotStart, Interpulse, Pulsar
from benchmarks.figures import ON_FRESH_BROKER, ON_WARM_BROKER, ROWS, Measure, Sample, Samples, keep_everything
from benchmarks.http_load import Request, fetch
from benchmarks.raw_load import Refused
from tests.interop.real_pulsar import DidNotStart as RealDidNotStart
from tests.interop.real_pulsar import Unavailable

RESULTS = Path(__file__).with_name("results")
CONTENDERS: Mapping[str, Callable[[Path], Contender]] = {"interpulse": Interpulse, "pulsar": Pulsar}
FAILURES = (Refused, DidNotStart, RealDidNotStart, OSError, pulsar.PulsarException)


class Results:
    """All samples of the run by contender and figure, and what failed."""

    def __init__(self, contenders: Sequence[str]) -> None:
        self.contenders = contenders
        self.samples: dict[str, dict[str, list[Sample]]] = {name: {} for name in contenders}
        self.failures: list[str] = []

    def add(self, contender: str, samples: Samples) -> None:
        """Keeps what one measurement gave."""
        for figure, sample in samples.items():
            self.samples[contender].setdefault(figure, []).append(sample)
            print(f"  {contender:<12}{ROWS[figure].title:<56}{_with_cpu(sample)} {ROWS[figure].unit}", flush=True)

    def best(self, contender: str, figure: str) -> Sample | None:
        """The best value and the lowest processor time seen; they need not come from one round."""
        samples = self.samples[contender].get(figure)
        if not samples:
            return None
        choose = max if ROWS[figure].higher_is_better else min
        costs = [sample.cpu_us for sample in samples if sample.cpu_us is not None]
        return Sample(choose(sample.value for sample in samples), min(costs, default=None))


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
    print(_table(results))
    if {*options.only} == {*ON_FRESH_BROKER, *ON_WARM_BROKER} and {*options.contenders} == {*CONTENDERS}:
        _write(results, versions, arguments)
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


def _with_cpu(sample: Sample | None) -> str:
    if sample is None:
        return "-"
    value = f"{sample.value:,.0f}" if sample.value >= 1000 else f"{sample.value:.3g}"
    return value if sample.cpu_us is None else f"{value} ({sample.cpu_us:.2f})"


def _write(results: Results, versions: Mapping[str, str], arguments: Sequence[str]) -> None:
    machine = _machine()
    now = datetime.now(UTC)
    command = " ".join(["python -m benchmarks.end_to_end", *arguments])
    known = ", ".join(f"{name} {number}" for name, number in versions.items())
    lines = [f"# {now:%Y-%m-%d}, {machine}", "", f"`{command}`", "", f"Versions: {known}.", ""]
    lines += [
        "Best of all rounds; in brackets the lowest broker CPU in microseconds per message (or request).",
        "",
        table,
    ]
    lines += (
        ["", "Failed:", "", *(f"* {failure.splitlines()[0]}" for failure in results.failures)]
        if results.failures
        else []
    )
    RESULTS.mkdir(exist_ok=True)
    stem = RESULTS / f"{now:%Y-%m-%d}-{re.sub('[^a-z0-9]+', '-', machine.lower()).strip('-')}"
    stem.with_suffix(".md").write_text("\n".join([*lines, ""]))
    stem.with_suffix(".json").write_text(json.dumps(_as_json(results, versions, command), indent=1) + "\n")
    print(f"written to {stem}.md and .json")


def _table(results: Results) -> str:
    lines = ["| figure | unit | " + " | ".join(results.contenders) + " | ratio |"]
    lines.append("| --- | --- | " + "--- | " * (len(results.contenders) + 1))
    for figure, row in ROWS.items():
        best = [results.best(name, figure) for name in results.contenders]
        if any(best):
            cells = [row.title, row.unit, *(_with_cpu(sample) for sample in best), _ratio(results, figure)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(line.rstrip() for line in lines)


def _ratio(results: Results, figure: str) -> str:
    """How many times better than the real one we are, in the value and, in brackets, in processor time."""
    ours, real = (results.best(name, figure) if name in results.contenders else None for name in CONTENDERS)
    if ours is None or real is None or not ours.value or not real.value:
        return "-"
    better = ours.value / real.value if ROWS[figure].higher_is_better else real.value / ours.value
    if not ours.cpu_us or not real.cpu_us:
        return f"{better:.2f}x"
    return f"{better:.2f}x ({real.cpu_us / ours.cpu_us:.2f}x)"


def _machine() -> str:
    cpu = platform.machine()
    known = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", known.read_text()) if known.exists() else None
    if found:
        cpu = re.sub(r"\(R\)|\(TM\)|CPU|@.*|Processor", "", found[1])
    return f"{' '.join(cpu.split())}, {psutil.cpu_count()} cores"


def _as_json(results: Results, versions: Mapping[str, str], command: str) -> dict[str, object]:
    samples = {
        name: {figure: [[sample.value, sample.cpu_us] for sample in taken] for figure, taken in figures.items()}
        for name, figures in results.samples.items()
    }
    units = {figure: row.unit for figure, row in ROWS.items()}
    return {
        "command": command,
        "machine": _machine(),
        "versions": dict(versions),
        "units": units,
        "samples": samples,
        "failures": results.failures,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
