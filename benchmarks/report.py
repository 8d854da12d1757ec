"""Collects the samples of a run and writes them down: a table for people, JSON for programs."""

import json
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks.comparison import is_worse, judge, ratio, times_better
from benchmarks.figures import ROWS, Sample, Samples

RESULTS = Path(__file__).with_name("results")
OURS, RELEASE, KEPT, REAL, LIMIT = "interpulse", "release", "kept", "pulsar", "limit"

EXPLANATION = """Best of all rounds; in brackets the lowest broker CPU in microseconds per message (or request).

* ratio: how many times better ours is than the real one, in brackets how many times less CPU it takes; so are aims.
* change: the same beside the release, which ran in turns with ours. WORSE: by more than a tenth, and by more than the
  rounds of either broker differ among themselves.
* of the limit: how much of what this machine does with the same bytes and syncs without a broker (`benchmarks.limit`).
* kept: the last complete run that was kept of this machine, which may have been quieter or busier."""


class Results:
    """All samples of the run by contender and figure, and what failed."""

    def __init__(self, contenders: Sequence[str]) -> None:
        self.contenders = contenders
        self.samples: dict[str, dict[str, list[Sample]]] = {name: {} for name in contenders}
        self.failures: list[str] = []
        self.notes: list[str] = []
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the beginning of the run."""
        return time.monotonic() - self._started

    def add(self, contender: str, samples: Samples) -> None:
        """Keeps what one measurement gave."""
        for figure, sample in samples.items():
            self.taken(contender, figure).append(sample)
            row = ROWS[figure]
            print(f"{self.seconds:6.0f} s  {contender:<12}{row.title:<66}{_with_cpu(sample)} {row.unit}", flush=True)

    def show_kept(self, kept: Mapping[str, list[Sample]]) -> None:
        """Puts figures of an earlier run beside ours."""
        self.contenders = [OURS, KEPT, *(name for name in self.contenders if name != OURS)]
        self.samples[KEPT] = dict(kept)

    def taken(self, contender: str, figure: str) -> list[Sample]:
        """The samples of one figure."""
        return self.samples.setdefault(contender, {}).setdefault(figure, [])

    def best(self, contender: str, figure: str) -> Sample | None:
        """The best value and the lowest processor time seen; they need not come from one round."""
        samples = self.taken(contender, figure)
        if not samples:
            return None
        choose = max if ROWS[figure].higher_is_better else min
        costs = [sample.cpu_us for sample in samples if sample.cpu_us is not None]
        return Sample(choose(sample.value for sample in samples), min(costs, default=None))

    def is_worse(self, figure: str) -> bool:
        """Whether ours is worse than the release by more than noise, in value or processor time."""
        ours, before = self.taken(OURS, figure), self.taken(RELEASE, figure)
        values = [sample.value for sample in ours], [sample.value for sample in before]
        costs = [sample.cpu_us or 0 for sample in ours], [sample.cpu_us or 0 for sample in before]
        return is_worse(*values, higher_is_better=ROWS[figure].higher_is_better) or is_worse(
            *costs, higher_is_better=False
        )

    def regressions(self) -> list[str]:
        """The figures that are worse than those of the release."""
        return [figure for figure in ROWS if self.is_worse(figure)]


def table(results: Results) -> str:
    """A markdown table: one line per figure, one column per broker, and how ours compares."""
    brokers = [name for name in results.contenders if name != LIMIT]
    comparisons = {title: cell for title, (other, cell) in _COMPARISONS.items() if other in results.contenders}
    heads = ["figure", "unit", *brokers, *comparisons]
    lines = [heads, ["---"] * len(heads)]
    for figure, row in ROWS.items():
        if any(results.taken(name, figure) for name in brokers if name != KEPT):
            values = [_with_cpu(results.best(name, figure)) for name in brokers]
            lines.append([row.title, row.unit, *values, *(cell(results, figure) for cell in comparisons.values())])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def write(results: Results, versions: Mapping[str, str], command: str) -> Path:
    """Keeps the table, and all samples beside it as JSON; returns the table's file, named after day and machine."""
    machine = machine_name()
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    known = ", ".join(f"{name} {number}" for name, number in versions.items())
    text = f"# {day}, {machine}\n\n`{command}`\n\nVersions: {known}.\n\n{EXPLANATION}\n\n{table(results)}\n"
    for title, lines in (("Notes", results.notes), ("Failed", results.failures)):
        if lines:
            text += f"\n{title}:\n\n" + "".join(f"* {line.splitlines()[0]}\n" for line in lines)
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{day}-{re.sub('[^a-z0-9]+', '-', machine.lower()).strip('-')}.md"
    file.write_text(text)
    file.with_suffix(".json").write_text(json.dumps(_as_json(results, versions, command), indent=1) + "\n")
    return file


def read_kept(machine: str, directory: Path = RESULTS) -> dict[str, list[Sample]]:
    """Our samples of the last run that was kept of this machine; empty where there is none."""
    for file in sorted(directory.glob("*.json"), reverse=True):
        kept = json.loads(file.read_text())
        if kept["machine"] == machine:
            figures: dict[str, list[list[float | None]]] = kept["samples"][OURS]
            return {
                figure: [Sample(value, cpu_us) for value, cpu_us in taken if value is not None]
                for figure, taken in figures.items()
                if figure in ROWS
            }
    return {}


def machine_name() -> str:
    """The processor and the number of its cores."""
    cpu = platform.machine()
    known = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", known.read_text()) if known.exists() else None
    if found:
        cpu = re.sub(r"\(R\)|\(TM\)|CPU|@.*|Processor", "", found[1])
    return f"{' '.join(cpu.split())}, {psutil.cpu_count()} cores"


def _with_cpu(sample: Sample | None) -> str:
    if sample is None:
        return "-"
    value = f"{sample.value:,.0f}" if sample.value >= 1000 else f"{sample.value:.3g}"
    return value if sample.cpu_us is None else f"{value} ({sample.cpu_us:.2f})"


def _ratio_to(other: str) -> Callable[[Results, str], str]:
    def cell(results: Results, figure: str) -> str:
        ours, theirs = results.best(OURS, figure), results.best(other, figure)
        return ratio(ours, theirs, higher_is_better=ROWS[figure].higher_is_better)

    return cell


def _aim(results: Results, figure: str) -> str:
    row, ours = ROWS[figure], results.best(OURS, figure)
    if row.aim is None or ours is None:
        return "-"
    base = row.aim.cpu_of and results.best(OURS, row.aim.cpu_of[0])
    return judge(
        row.aim,
        ours,
        results.best(REAL, figure),
        of_cpu_us=base.cpu_us if base else None,
        higher_is_better=row.higher_is_better,
    )


def _change(results: Results, figure: str) -> str:
    return _ratio_to(RELEASE)(results, figure) + (" WORSE" if results.is_worse(figure) else "")


def _of_the_limit(results: Results, figure: str) -> str:
    ours, limit = results.best(OURS, figure), results.best(LIMIT, figure)
    if ours is None or limit is None:
        return "-"
    return f"{times_better(ours.value, limit.value, higher_is_better=ROWS[figure].higher_is_better):.0%}"


# By their titles, with the contender that they need.
_COMPARISONS: Mapping[str, tuple[str, Callable[[Results, str], str]]] = {
    "ratio": (REAL, _ratio_to(REAL)),
    "aim": (OURS, _aim),
    "change": (RELEASE, _change),
    "of the limit": (LIMIT, _of_the_limit),
}


def _as_json(results: Results, versions: Mapping[str, str], command: str) -> dict[str, object]:
    samples = {
        name: {figure: [[sample.value, sample.cpu_us] for sample in taken] for figure, taken in figures.items()}
        for name, figures in results.samples.items()
        if name != KEPT
    }
    return {
        "command": command,
        "machine": machine_name(),
        "versions": dict(versions),
        "units": {figure: row.unit for figure, row in ROWS.items()},
        "samples": samples,
        "notes": results.notes,
        "failures": results.failures,
    }
