"""The second run of failed tests: which failures CI excuses, and which it does not."""

import json
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tools import rerun
from tools.rerun import NEVER_EXCUSED, UNSTABLE_MAX, Suite, judge, read_report

LATE = "tests/interop/test_go_client.py::test_order"
KILLED = "tests/durability/test_kill.py::test_kill"
PASSED = Suite(passed={LATE, KILLED})


@pytest.mark.parametrize(
    ("first", "second", "unstable", "red"),
    [
        pytest.param(Suite(), Suite(), [], [], id="nothing failed"),
        pytest.param(Suite({LATE: "late"}), PASSED, [LATE], [], id="passes the second time"),
        pytest.param(
            Suite({LATE: "late"}),
            Suite({LATE: "late again"}),
            [],
            [f"{LATE} did not pass the second time: late again; first: late"],
            id="fails twice",
        ),
        pytest.param(
            Suite({LATE: "late"}),
            Suite(),
            [],
            [f"{LATE} did not pass the second time: it did not run; first: late"],
            id="is skipped the second time",
        ),
        pytest.param(
            Suite({KILLED: "one lost"}),
            PASSED,
            [KILLED],
            [f"{KILLED} is never excused: one lost"],
            id="is never excused",
        ),
        pytest.param(Suite(broken=["a suite broke"]), Suite(), [], ["a suite broke"], id="a suite is broken"),
        pytest.param(
            Suite({LATE: "late"}),
            Suite(passed={LATE}, broken=["the second run broke"]),
            [LATE],
            ["the second run broke"],
            id="the second run is broken",
        ),
    ],
)
def test_judge(first: Suite, second: Suite, unstable: list[str], red: list[str]) -> None:
    assert judge(first, second) == (unstable, red)


def test_judge_when_too_many_fail_then_names_all() -> None:
    failed = {f"tests/unit/test_{number}.py::test": "" for number in range(UNSTABLE_MAX + 1)}
    unstable, red = judge(Suite(failed), Suite(passed=frozenset(failed)))
    assert unstable == []
    assert red == ["6 tests failed; more than 5 are not run again", *failed]


def test_report_when_the_run_is_cut_off_then_it_is_broken() -> None:
    failed = {"$report_type": "TestReport", "nodeid": LATE, "outcome": "failed", "when": "setup", "longrepr": "a\nb\n"}
    suite = read_report([json.dumps(failed), '{"$report_type": "TestRep'])
    assert suite == Suite({LATE: "b"}, broken=["a suite did not run to its end"])


def test_report_when_it_is_missing_then_the_run_is_red(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert rerun.main([str(tmp_path / "missing.jsonl")]) == 1
    assert "a suite did not run to its end" in capsys.readouterr().out


@pytest.fixture
def failing_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose suite has run: one test fails the first time, one always, one passes."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -p no:schemathesis\n")
    (tmp_path / "test_it.py").write_text(
        "import pathlib\n"
        "def test_once():\n"
        "    seen = pathlib.Path(__file__).with_name('seen')\n"
        "    before = seen.exists(); seen.touch()\n"
        "    assert before, 'not before'\n"
        "def test_never(): assert False, 'never'\n"
        "def test_always(): pass\n"
    )
    monkeypatch.setattr(rerun, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("selection", "code", "lines"),
    [
        ("once or always", 0, ["not before", "1 tests failed, 1 of them are unstable"]),
        ("once or never", 1, ["did not pass the second time", "2 tests failed, 1 of them are unstable"]),
        ("always", 0, ["0 tests failed, 0 of them are unstable"]),
        ("nothing", 1, ["pytest ended with exit code 5"]),
    ],
)
def test_main(
    failing_once: Path, capfd: pytest.CaptureFixture[str], selection: str, code: int, lines: list[str]
) -> None:
    report = failing_once / "first.jsonl"
    first = [sys.executable, "-m", "pytest", "-q", "-k", selection, f"--report-log={report}"]
    subprocess.run(first, cwd=failing_once, check=False, capture_output=True)
    assert rerun.main([str(report)]) == code
    printed = capfd.readouterr().out
    assert [line for line in lines if line not in printed] == []


@pytest.mark.parametrize("pattern", NEVER_EXCUSED)
def test_patterns_when_files_move_then_each_still_names_some(pattern: str) -> None:
    files = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    assert [path for path in files if fnmatch(path, pattern)]


def test_unstable_page_lists_the_newest_first() -> None:
    page = (ROOT / "tests" / "unstable.md").read_text()
    dates = re.findall(r"^\| (\d{4}-\d\d-\d\d) \| `tests/", page, re.MULTILINE)
    assert dates == sorted(dates, reverse=True)
