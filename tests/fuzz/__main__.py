"""Coverage-guided fuzzing: each target in a process of its own, from its corpus, for so many runs and seconds. As many
run at once as there are cores.

    python -m tests.fuzz [--seconds S] [--runs N] [--keep] [TARGET ...]

Tells for every target how many inputs were tried, and for one that failed the file with the input, to be kept in the
corpus once the fault is mended. ``--keep`` adds inputs that reach new code to the corpus in the repository, smallest
first. Where atheris is not installed nothing runs, and that is said.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.corpora import CORPORA, TARGETS, inputs_of, target

INSIDE = (sys.executable, "-m", "tests.fuzz", "--inside")
INPUT_BYTES_MAX = 4096
KEPT_MAX = 30
INPUT_SECONDS_MAX = 10
MEMORY_MB_MAX = 2048


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all if none is named")
    parser.add_argument("--seconds", type=int, default=6, help="for each target")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, at most")
    parser.add_argument("--keep", action="store_true", help="keep inputs that reach new code in the repository")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given, rest = parser.parse_known_args()
    unknown = set(given.targets) - set(TARGETS)
    if unknown:
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    if find_spec("atheris") is None:
        print("not run: atheris is not installed here (it is for Linux and Python before 3.14)")
        return 0
    if given.inside:
        run_inside(given.targets[0], rest)
    names = given.targets or TARGETS
    with ThreadPoolExecutor(os.cpu_count()) as runs:
        held = runs.map(lambda name: run(name, given), names)
        failed = [name for name, well in zip(names, held, strict=True) if not well]
    print(f"failed: {', '.join(failed)}" if failed else "no target failed")
    return int(bool(failed))


def run(name: str, given: argparse.Namespace) -> bool:
    """Fuzz one target; whether it held."""
    with tempfile.TemporaryDirectory() as scratch:
        found, seeds = Path(scratch, "found"), Path(scratch, "seeds")
        for folder in (found, seeds):
            folder.mkdir()
        for number, content in enumerate(inputs_of(name)):
            Path(seeds, str(number)).write_bytes(content)
        limits = (f"-max_total_time={given.seconds}", f"-runs={given.runs}", f"-max_len={INPUT_BYTES_MAX}")
        guards = (f"-timeout={INPUT_SECONDS_MAX}", f"-rss_limit_mb={MEMORY_MB_MAX}", "-print_final_stats=1")
        failure = Path(tempfile.gettempdir(), f"fuzz-{name}-")
        done = subprocess.run(
            [*INSIDE, name, *limits, *guards, f"-artifact_prefix={failure}", str(found), str(seeds)],
            capture_output=True,
            text=True,
            errors="replace",
        )
        tried = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
        told = [f"{name}: {tried[1] if tried else 'no'} inputs, {'held' if not done.returncode else 'FAILED'}"]
        told += [done.stderr[-1500:], done.stdout[-3000:]] if done.returncode else []
        print("\n".join(told), flush=True)
        if given.keep and not done.returncode:
            keep(name, found)
        return not done.returncode


def keep(name: str, found: Path) -> None:
    """Into the corpus, under names that say nothing of their content, as long as it is small."""
    folder = CORPORA / name
    folder.mkdir(parents=True, exist_ok=True)
    room = KEPT_MAX - len(list(folder.iterdir()))
    for each in sorted(found.iterdir(), key=lambda path: path.stat().st_size)[: max(room, 0)]:
        (folder / each.name[:12]).write_bytes(each.read_bytes())


def run_inside(name: str, arguments: list[str]) -> None:
    """Never returns: the fuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["interpulse", "tests.fuzz.targets"]):
        tested = target(name)
    atheris.Setup([sys.argv[0], *arguments], tested)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
