"""The last release beside which a broker is measured: its sources, in an environment of their own."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.contenders import Interpulse

ROOT = Path(__file__).parents[1]
CACHE_VARIABLE = "INTERPULSE_RELEASES"
SETUP_SECONDS_MAX = 600


class NoRelease(Exception):
    """The release is not in the history of this clone, or could not be set up; the message says which and why."""


def last_release() -> str:
    """The commit of the last version tag; before the first one, the commit that last kept figures of a whole run."""
    tags = _git("tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname").split()
    if tags:
        return commit_of(tags[0])
    kept = _git("log", "-1", "--format=%H", "--", "benchmarks/results/*.json").strip()
    if not kept:
        raise NoRelease(
            "no tag v* and no figures in benchmarks/results are in the history of this clone: name a --release"
        )
    return kept


def commit_of(reference: str) -> str:
    """The commit that a tag, a branch or a shortened commit names."""
    return _git("rev-parse", "--verify", f"{reference}^{{commit}}").strip()


def program_of(commit: str) -> Path:
    """The program `interpulse` of that commit; the first time its environment is made, which takes a minute."""
    target = _cache() / commit[:12]
    program = target / ".venv" / "bin" / "interpulse"
    if not program.exists():
        print(f"setting up {commit[:12]} in {target}", file=sys.stderr, flush=True)
        shutil.rmtree(target, ignore_errors=True)
        _unpack(commit, target)
    _run([str(target / "tools" / "setup.sh")], cwd=target, env=_plain_environment())
    return program


def release_contender(commit: str, directory: Path) -> Interpulse:
    """A broker of that commit."""
    return Interpulse(directory, program=program_of(commit))


def _cache() -> Path:
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "interpulse" / "releases")


def _plain_environment() -> dict[str, str]:
    """Without what points to the environment that is measured."""
    return {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}


def _unpack(commit: str, target: Path) -> None:
    target.mkdir(parents=True)
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        _git("archive", "--output", archive.name, commit)
        shutil.unpack_archive(archive.name, target, filter="data")


def _git(*arguments: str) -> str:
    return _run(["git", *arguments], cwd=ROOT, env=dict(os.environ))


def _run(command: list[str], *, cwd: Path, env: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, text=True, capture_output=True, timeout=SETUP_SECONDS_MAX, check=True
        )
    except FileNotFoundError as missing:
        raise NoRelease(f"{command[0]} is needed to compare with a release, and was not found") from missing
    except subprocess.CalledProcessError as failed:
        raise NoRelease(f"{' '.join(command)} failed: {failed.stderr.strip()[-1000:]}") from failed
    except subprocess.TimeoutExpired as late:
        raise NoRelease(f"{' '.join(command)} did not end within {SETUP_SECONDS_MAX} s") from late
    return done.stdout
