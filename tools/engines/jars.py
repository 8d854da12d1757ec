"""The jars of a real Pulsar: resolved once by Maven from the pom beside this file, then kept in a cache directory."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
CACHE_VARIABLE = "INTERPULSE_REAL_PULSAR_CACHE"
MAVEN_SECONDS_MAX = 1200


class Unavailable(Exception):
    """A real Pulsar cannot be had on this machine; the message says what is missing."""


def cache_directory() -> Path:
    """Where jars are kept: the environment's choice, else the user's cache. One directory per content of the pom."""
    root = os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "interpulse" / "real-pulsar"
    return Path(root) / hashlib.sha256(POM.read_bytes()).hexdigest()[:12]


def class_path() -> str:
    """The class path of the real broker, of ZooKeeper and BookKeeper, and of the Java clients.

    The first call on a machine downloads about 220 MB. Raises Unavailable.
    """
    target = cache_directory()
    if not target.is_dir():
        _resolve(target)
    return f"{target}/*"


def _resolve(target: Path) -> None:
    remedy = f"or copy {target} from a machine that has it"
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(
            f"Maven (mvn) is needed to get ZooKeeper, BookKeeper and Pulsar and was not found: install it, {remedy}"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        jars = Path(scratch) / "jars"
        command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MAVEN_SECONDS_MAX
        )
        if done.returncode != 0:
            raise Unavailable(
                "Maven did not get ZooKeeper, BookKeeper and Pulsar: connect this machine to Maven Central, "
                f"name a mirror in ~/.m2/settings.xml, {remedy}. Maven said: {_reason(done.stdout + done.stderr)}"
            )
        move_into_place(jars, target)


def _reason(output: str) -> str:
    """The first error that Maven prints, which is the one that counts."""
    errors = [line.removeprefix("[ERROR]").strip() for line in output.splitlines() if line.startswith("[ERROR]")]
    return errors[0] if errors else output.strip()[-2000:] or "nothing"


def move_into_place(made: Path, target: Path) -> None:
    """Rename a directory; nothing happens when another process was faster with the same content."""
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():
            raise
