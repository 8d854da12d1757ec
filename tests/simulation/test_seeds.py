"""Seeds of the simulated world, played in processes in which time and randomness are the world's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.simulation.cases import FOUND, read_case
from tests.simulation.runs import SCENARIOS

ROOT = Path(__file__).parents[2]
FAST = {"single": 12, "lifecycle": 8, "shared": 2}
"""Scenarios that the fast tests play, each with the number of its fixed seeds."""
FIXED_SLOW = 2
"""Fixed seeds of each of the others."""
NEW_SEEDS = 88
CASES = sorted(FOUND.glob("*.toml"))
JOBS = 2
NEEDS_BOTH_CODECS = pytest.mark.skipif(
    find_spec("interpulse_codec") is None, reason="the compiled codec is not installed"
)


@pytest.mark.parametrize(
    "scenario", [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in SCENARIOS]
)
def test_fixed_seeds_when_played_then_nothing_is_found(scenario: str) -> None:
    seeds = FAST.get(scenario, FIXED_SLOW)
    played = _play(f"1-{seeds}", "--scenario", scenario, f"--twice={seeds}")
    assert played.returncode == 0, played.stdout
    assert f"{seeds} played, 0 failed" in played.stdout


def test_cases_when_played_after_their_fixes_then_nothing_is_found() -> None:
    played = _play(*map(str, CASES), "--bug", "0")
    assert played.returncode == 0, played.stdout


@pytest.mark.slow
def test_cases_when_played_with_their_bugs_then_each_breaks_its_property() -> None:
    played = _play(*map(str, CASES))
    found = re.findall(r"broken ([A-Z0-9 ]+); again: .* (\S+) --bug [1-9]", played.stdout)
    broken = {file: properties.split() for properties, file in found}
    for path in CASES:
        assert read_case(path).property in broken.get(str(path), []), played.stdout


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the seeds come from the commit")
def test_new_seeds_when_played_then_nothing_is_found() -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    first = int(commit[:6], 16)
    played = _play(f"{first}-{first + NEW_SEEDS - 1}", "--scenario", "all", "--twice=8")
    assert played.returncode == 0, played.stdout


def test_seed_when_played_with_a_log_then_the_trace_stays_the_same(tmp_path: Path) -> None:
    log = tmp_path / "log"
    plain, logged = (_play("1", "--scenario", "single", "--hashes", *more) for more in ((), ("--log", str(log))))
    assert plain.stdout.startswith("trace single 1 ")
    assert plain.stdout == logged.stdout
    assert " broker INFO interpulse." in log.read_text()


@NEEDS_BOTH_CODECS
def test_seed_when_played_with_either_codec_then_the_trace_is_the_same() -> None:
    python, native = (_play("1", "--scenario", "single", "--hashes", codec=name) for name in ("python", "native"))
    assert "codecs: python 1\n" in python.stdout
    assert python.stdout.replace("codecs: python 1", "codecs: native 1") == native.stdout


@NEEDS_BOTH_CODECS
def test_seeds_when_no_codec_is_demanded_then_each_draws_one() -> None:
    assert "codecs: native 1, python 1\n" in _play("1-2", "--scenario", "single").stdout


@pytest.mark.slow
@pytest.mark.parametrize("bug", [7, 8])
def test_failing_seed_when_minimised_then_less_than_six_faults_break_the_same_property(
    bug: int, tmp_path: Path
) -> None:
    case = tmp_path / "case.toml"
    _play("1-40", "--scenario", "single", "--bug", str(bug), "--minimise", str(case))
    text = case.read_text()
    assert text.count("[[faults]]") < 6
    played = _play(str(case))
    assert played.returncode == 1
    assert "broken L1" in played.stdout
    assert 'property = "L1"' in text


@pytest.mark.slow
@pytest.mark.parametrize("bug", [901, 902, 903], ids=["order of addresses", "clock of the machine", "order of hashes"])
def test_seeds_when_the_world_is_not_deterministic_then_the_traces_differ(bug: int) -> None:
    played = _play("1-5", "--scenario", "shared", "--bug", str(bug), "--twice")
    assert played.returncode == 1
    assert "played twice, the traces differ" in played.stdout


def _play(*arguments: str, codec: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation.play", *arguments, "--jobs", str(JOBS)]
    environment = {name: value for name, value in os.environ.items() if name != "INTERPULSE_CODEC"}
    environment |= {"PYTHONHASHSEED": "0"} | ({"INTERPULSE_CODEC": codec} if codec is not None else {})
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
