"""Collects the samples of a run and writes them down: a table for people, JSON for programs."""

import json
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks.figures import ROWS, Sample, Samples

RESULTS = Path(__file__).with_name("results")
OURS, REAL = "interpulse", "pulsar"
EXPLANATION = """Best of all rounds; in brackets the lowest broker CPU in microseconds per message (or request). The
ratio says how many times better ours is, in brackets how many times less CPU it takes."""


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


def table(results: Results) -> str:
    """A markdown table: one line per figure, one column per broker, and how ours compares."""
    lines = ["| figure | unit | " + " | ".join(results.contenders) + " | ratio |"]
    lines.append("| --- | --- | " + "--- | " * (len(results.contenders) + 1))
    for figure, row in ROWS.items():
        best = [results.best(name, figure) for name in results.contenders]
        if any(best):
            cells = [row.title, row.unit, *(_with_cpu(sample) for sample in best), _ratio(results, figure)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(line.rstrip() for line in lines)


def write(results: Results, versions: Mapping[str, str], command: str) -> Path:
    """Keeps the table, and all samples beside it as JSON; returns the table's file, named after day and machine."""
    machine = _machine()
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    known = ", ".join(f"{name} {number}" for name, number in versions.items())
    text = f"# {day}, {machine}\n\n`{command}`\n\nVersions: {known}.\n\n{EXPLANATION}\n\n{table(results)}\n"
    if results.failures:
        text += "\nFailed:\n\n" + "".join(f"* {failure.splitlines()[0]}\n" for failure in results.failures)
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{day}-{re.sub('[^a-z0-9]+', '-', machine.lower()).strip('-')}.md"
    file.write_text(text)
    file.with_suffix(".json").write_text(json.dumps(_as_json(results, versions, command), indent=1) + "\n")
    return file


def _with_cpu(sample: Sample | None) -> str:
    if sample is None:
        return "-"
    value = f"{sample.value:,.0f}" if sample.value >= 1000 else f"{sample.value:.3g}"
    return value if sample.cpu_us is None else f"{value} ({sample.cpu_us:.2f})"


def _ratio(results: Results, figure: str) -> str:
    """How many times better than the real one we are, in the value and, in brackets, in processor time."""
    ours, real = (results.best(name, figure) if name in results.contenders else None for name in (OURS, REAL))
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
