"""Runs single-file Java programs on the class path of the real Pulsar, and finds the Java to do it with."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.interop.real_pulsar.jars import Unavailable, class_path

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


def java_command(*options: str) -> list[str]:
    """The start of a command line: java with the class path and the opened packages, then the given options."""
    opens = [part for package in OPENED_PACKAGES for part in ("--add-opens", f"{package}=ALL-UNNAMED")]
    return [java_executable(), *opens, "-cp", class_path(), *options]


def run_java(source: Path, *arguments: str, stdin: bytes = b"", timeout_s: float = 240) -> bytes:
    """Compiles and runs one source file, returns what it wrote to standard output; needs a JDK, not only a runtime."""
    command = java_command(f"-Dlog4j2.configurationFile={LOGGING}", str(source), *arguments)
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s)
    if done.returncode != 0:
        printed = (done.stdout + done.stderr).decode(errors="replace")
        raise JavaCheckFailed(f"{source.name} {' '.join(arguments)} ended with {done.returncode}:\n{printed}")
    return done.stdout
