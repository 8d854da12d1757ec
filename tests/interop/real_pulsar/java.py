"""Runs single-file Java programs on the class path of the real Pulsar, and finds the Java to do it with."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.interop.real_pulsar.jars import Unavailable, cache_directory, class_path, move_into_place

LOGGING = Path(__file__).with_name("log4j2-check.xml")

# What Netty, RocksDB and the JVM statistics of Pulsar reach into.
OPENED_PACKAGES = (
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.base/sun.net",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)

QUICK_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Without its second compiler Java starts at half the processor time."""


class JavaCheckFailed(AssertionError):
    """A Java program ended with another exit code than 0; the message carries all it printed."""


def java_executable() -> str:
    """The `java` of JAVA_HOME, else the one on PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if found is None:
        raise Unavailable(
            "Java 17 or newer is needed for a real Pulsar and was not found: install a JDK or set JAVA_HOME"
        )
    return found


def class_archive() -> Path:
    """Where the classes of Pulsar are or would be kept for this Java, see `archive_classes` of the launcher."""
    java = Path(java_executable()).resolve()
    release = java.parent.parent / "release"
    told = release.read_bytes() if release.exists() else b""
    return cache_directory() / f"classes-{hashlib.sha256(str(java).encode() + told).hexdigest()[:12]}.jsa"


def quick_java() -> tuple[str, ...]:
    """Options for programs that live for seconds: no second compiler, and kept classes where there are some.

    Java starts at a quarter of the processor time.
    """
    archive = class_archive()
    kept = (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off") if archive.exists() else ()
    return (*QUICK_JAVA, *kept)


def java_command(*options: str, classes: Path | None = None) -> list[str]:
    """The start of a command line: java with the class path (`classes` last, as kept classes go with its beginning) and
    the opened packages, then the given options."""
    opens = [part for package in OPENED_PACKAGES for part in ("--add-opens", f"{package}=ALL-UNNAMED")]
    places = class_path() if classes is None else f"{class_path()}{os.pathsep}{classes}"
    return [java_executable(), *opens, "-cp", places, *options]


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
