"""Command lines of Java programs on the class path of a real Pulsar, and the Java that runs them."""

import hashlib
import os
import shutil
from pathlib import Path
from typing import Final

from tools.engines.jars import Unavailable, cache_directory, class_path

LOGGING = Path(__file__).with_name("log4j2.xml")

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


def java_executable() -> str:
    """The `java` of JAVA_HOME, else the one on PATH. Raises Unavailable."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if found is None:
        raise Unavailable(
            "Java 17 or newer is needed for ZooKeeper, BookKeeper and Pulsar and was not found: install it (on Debian "
            "and Ubuntu: sudo apt-get install openjdk-17-jre-headless), or set JAVA_HOME to one"
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
