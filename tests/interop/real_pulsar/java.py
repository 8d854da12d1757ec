"""Runs single-file Java programs on the class path of the real Pulsar."""

import hashlib
import subprocess
import tempfile
from pathlib import Path

from tools.engines.jars import Unavailable, cache_directory, class_path, move_into_place
from tools.engines.java import LOGGING, java_command, java_executable, quick_java


class JavaCheckFailed(AssertionError):
    """A Java program ended with another exit code than 0; the message carries all it printed."""


def run_java(source: Path, *arguments: str, stdin: bytes = b"", timeout_s: float = 240) -> bytes:
    """Runs one source file, returns what it wrote to standard output; needs a JDK, not only a runtime."""
    options = (*quick_java(), f"-Dlog4j2.configurationFile={LOGGING}")
    command = java_command(*options, source.stem, *arguments, classes=_compiled(source.parent))
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s)
    if done.returncode != 0:
        printed = (done.stdout + done.stderr).decode(errors="replace")
        raise JavaCheckFailed(f"{source.name} {' '.join(arguments)} ended with {done.returncode}:\n{printed}")
    return done.stdout


def _compiled(folder: Path) -> Path:
    """The classes of all Java sources in that folder, compiled once and kept beside the jars until one changes."""
    sources = sorted(folder.glob("*.java"))
    content = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    places = class_path()
    target = cache_directory() / f"classes-{content}"
    if not target.is_dir():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            classes = Path(scratch) / "classes"
            compiler = Path(java_executable()).resolve().with_name("javac")
            if not compiler.exists():
                raise Unavailable(f"{compiler} is missing: install a JDK, or set JAVA_HOME to one")
            command = [str(compiler), "-nowarn", "-cp", places, "-d", str(classes), *map(str, sources)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise JavaCheckFailed(f"{folder} does not compile:\n{done.stdout}{done.stderr}")
            move_into_place(classes, target)
    return target
