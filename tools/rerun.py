"""Run failed tests once more, alone, and judge the run: 0 = every failure was bad luck, 1 = it counts.

    python -m tools.rerun [--unstable FILE] REPORT...

A report is what ``pytest --report-log`` wrote of a suite. A test that passes the second time is unstable: it is listed,
in FILE and in the output, with the text of its first failure, as a line of ``tests/unstable.md``. It does not fail the
run. The run fails if

* a test fails twice,
* a test of durability, of exactly-once delivery or of security failed at all (`NEVER_EXCUSED`),
* more than `UNSTABLE_MAX` tests failed; they are not run again,
* a suite could not be collected, or did not run to its end.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parent.parent
UNSTABLE_MAX = 5
SYMPTOM_MAX = 200
"""Characters of a failure's text that are shown."""

NEVER_EXCUSED = (
    "tests/durability/*",
    "tests/fuzz/*",
    "tests/unit/authentication/*",
    "tests/unit/broker/access/*",
    "tests/unit/client/encryption/*",
    "tests/unit/storage/segments/*",
    "tests/*access*.py",
    "tests/*certificate*.py",
    "tests/*credential*.py",
    "tests/*dedup*.py",
    "tests/*encryption*.py",
    "tests/*exactly_once*.py",
    "tests/*faults*.py",
    "tests/*file_permissions*.py",
    "tests/*hostile*.py",
    "tests/*identities*.py",
    "tests/*lane*.py",
    "tests/*permission*.py",
    "tests/*secrets*.py",
    "tests/*tls*.py",
    "tests/*tokens*.py",
)
"""Files whose tests prove durability, exactly-once delivery or security."""


@dataclass(frozen=True)
class Suite:
    """The outcome of one run of pytest."""

    failures: Mapping[str, str] = field(default_factory=dict)
    """The first failure's text in one line, by the test's node id."""
    passed: Set[str] = frozenset()
    """Node ids of the tests whose calls passed."""

    broken: Sequence[str] = ()
    """Reasons why the run says nothing about some tests."""


def read_report(lines: Iterable[str]) -> Suite:
    """Read the lines of a report log. An empty or truncated report is a broken suite."""
    failures: dict[str, str] = {}
    passed: set[str] = set()
    broken: list[str] = []
    exit_status: int | None = None
    for line in lines:
        try:
            report = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed; its exit status is missing, too
        kind = report["$report_type"]
        if kind == "SessionFinish":
            exit_status = report["exitstatus"]
        elif report.get("outcome") == "failed" and kind == "TestReport":
            failures.setdefault(report["nodeid"], _symptom(report["longrepr"]))
        elif report.get("outcome") == "passed" and report.get("when") == "call":
            passed.add(report["nodeid"])
        elif report.get("outcome") == "failed":
            broken.append(f"{report['nodeid']} could not be collected: {_symptom(report['longrepr'])}")
    if exit_status is None:
        broken.append("a suite did not run to its end")
    elif exit_status not in (0, 1):
        broken.append(f"pytest ended with exit code {exit_status}")
    return Suite(failures, passed - failures.keys(), broken)


def judge(first: Suite, second: Suite) -> tuple[list[str], list[str]]:
    """Return the unstable tests, and what fails the run.

    ``second`` ran the failed tests of ``first`` again, unless they were more than `UNSTABLE_MAX`.
    """
    red = [*first.broken]
    if len(first.failures) > UNSTABLE_MAX:
        return [], [
            *red,
            f"{len(first.failures)} tests failed; more than {UNSTABLE_MAX} are not run again",
            *first.failures,
        ]
    red += second.broken
    unstable = [test for test in first.failures if test in second.passed]
    for test, symptom in first.failures.items():
        if test not in second.passed:
            red.append(
                f"{test} did not pass the second time: {second.failures.get(test, 'it did not run')}; first: {symptom}"
            )
        elif _never_excused(test):
            red.append(f"{test} is never excused: {symptom}")
    return unstable, red


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.rerun", description="Run failed tests once more, alone.")
    parser.add_argument("--unstable", type=Path, default=Path(os.devnull), help="file for the list of unstable tests")
    parser.add_argument("reports", type=Path, nargs="+", help="files that pytest --report-log wrote")
    options = parser.parse_args(arguments)
    suites = [_read(path) for path in options.reports]
    first = Suite(
        {test: text for suite in suites for test, text in suite.failures.items()},
        broken=[reason for suite in suites for reason in suite.broken],
    )
    second = _run(list(first.failures)) if 0 < len(first.failures) <= UNSTABLE_MAX else Suite()
    unstable, red = judge(first, second)
    today = datetime.date.today()
    lines = [f"| {today} | `{test}` | {first.failures[test].replace('|', '/')} | |\n" for test in unstable]
    options.unstable.write_text("".join(lines))
    print(*lines, *(f"{reason}\n" for reason in red), sep="", end="")
    print(f"{len(first.failures)} tests failed, {len(unstable)} of them are unstable")
    return 1 if red else 0


def _run(tests: Sequence[str]) -> Suite:
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "again.jsonl")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", f"--report-log={report}", *tests]
        subprocess.run(command, cwd=ROOT, check=False)
        return _read(report)


def _read(report: Path) -> Suite:
    return read_report(report.read_text().splitlines() if report.exists() else ())


def _never_excused(test: str) -> bool:
    path = test.partition("::")[0]
    return any(fnmatch(path, pattern) for pattern in NEVER_EXCUSED)


def _symptom(longrepr: object) -> str:
    """Return the line of a failure that says most: the message of its crash, else its last line."""
    match longrepr:
        case {"reprcrash": {"message": str(message)}}:
            text = " ".join(message.split())
        case str(text):
            text = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        case _:
            text = " ".join(str(longrepr).split())
    return text[:SYMPTOM_MAX]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
