"""The archive of Spark's classes, made once per machine by ``python -m interpulse.spark.class_archive``.

With it Java starts in half the processor time. Java maps it into memory (class data sharing) instead of reading some
15,000 classes from jars at every start. An archive belongs to one Java and one PySpark; others neither see nor use it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from interpulse.model.extras import pip_install

_QUICK_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compiler and collector options.

Java only moves our data: without its second compiler it warms up sooner and is no slower afterwards
(benchmarks/replication.py: first copy after 15 instead of 25 s, delays at low rates almost halved, rates no lower).
"""

_TRAINING: Final = Path(__file__).with_name("class_training.py")
_SECONDS_MAX: Final = 600
_SILENT: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Options that hide warnings. Java runs without an unusable archive, and the warnings would mix with a job's lines."""


class ArchiveFailed(Exception):
    """A run of Java that wrote no archive. The message has its output."""


def archive_path() -> Path | None:
    """Return the path of the archive for this Java and PySpark, existing or not.

    Return None if one of them is missing.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home, "bin", "java") if home else "java")
    spark = _spark_home()
    if java is None or spark is None:
        return None
    program = Path(java).resolve()
    release = program.parent.parent / "release"
    version = release.read_text() if release.exists() else str(program.stat().st_mtime_ns)
    # Java refuses an archive whose jars have another time, as after an installation in the same place.
    jars = [(jar.name, jar.stat().st_mtime_ns) for jar in sorted(spark.glob("jars/*.jar"))]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place, state = _digest(str(program), str(spark)), _digest(version, repr(jars))
    return cache / "interpulse" / f"spark-classes-{place}-{state}.jsa"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def java_options() -> str:
    """Return the options of the Java that runs our jobs, with the archive if it exists."""
    path = archive_path()
    return f"{_QUICK_JAVA} {_SILENT} -XX:SharedArchiveFile={path}" if path and path.exists() else _QUICK_JAVA


def make_archive() -> Path:
    """Run a few small queries and store the classes that Java loads: about 190 MB, once, in a minute or two.

    Raises `ArchiveFailed` without Java or PySpark, and if Java writes nothing.
    """
    path, spark = archive_path(), _spark_home()
    if path is None or spark is None:
        raise ArchiveFailed(f"Java 17 or newer and the spark extra are needed: {pip_install('spark')}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch, path.name)
        done = _run_training(spark, f"{_QUICK_JAVA} {_SILENT} -XX:ArchiveClassesAtExit={made}", scratch)
        if done.returncode != 0 or not made.exists():
            raise ArchiveFailed(f"Java wrote no archive of Spark's classes (exit {done.returncode}):\n{done.stdout}")
        made.replace(path)
    place = path.name.rpartition("-")[0]
    for older in set(path.parent.glob(f"{place}-*.jsa")) - {path}:
        older.unlink(missing_ok=True)
    return path


def _spark_home() -> Path | None:
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        return None
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.origin).parent)


def _run_training(spark: Path, options: str, scratch: str) -> subprocess.CompletedProcess[str]:
    local = "127.0.0.1"
    command = [str(spark / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "700m"]
    command += ["--conf", f"spark.driver.extraJavaOptions={options}", "--conf", f"spark.driver.host={local}"]
    command += ["--conf", f"spark.driver.bindAddress={local}", "--conf", "spark.ui.enabled=false"]
    command += ["--conf", "spark.log.level=ERROR"]
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment = os.environ | {"SPARK_HOME": str(spark), "SPARK_LOCAL_IP": local, **python}
    return subprocess.run(
        [*command, str(_TRAINING), scratch],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS_MAX,
        env=environment,
    )


if __name__ == "__main__":
    import click

    existing = archive_path()
    if existing is not None and existing.exists():
        click.echo(f"{existing} exists already; remove it to create it again")
        sys.exit()
    click.echo("Java loads the classes of Spark and keeps them; that takes a minute or two")
    try:
        archive = make_archive()
    except ArchiveFailed as failed:
        sys.exit(str(failed))
    click.echo(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB")
