"""Spark sessions of our own jobs: recommended settings, loopback only, the running Python."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interpulse.model.extras import pip_install
from interpulse.spark.class_archive import java_options
from interpulse.spark.processes.no_pandas import exclude_pandas
from interpulse.spark.processes.workers import WORKER_DAEMON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STARTING: Final = threading.Lock()


class SparkMissing(Exception):
    """A missing requirement of Spark. The message names it and how to install it."""


def check_spark_installed() -> None:
    """Check for Java and the spark extra without imports. Raises SparkMissing."""

    java_home = os.environ.get("JAVA_HOME")
    if not (java_home and Path(java_home, "bin", "java").exists()) and shutil.which("java") is None:
        raise SparkMissing(
            "Java 17 or newer is needed for Spark: install one (for example openjdk-17-jre-headless) or set JAVA_HOME"
        )
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "pyarrow")):
        raise SparkMissing(f"PySpark is needed: {pip_install('spark')}")


def recommended_conf() -> dict[str, str]:
    """Return Spark settings that suit this source; see docs/reference/spark-options.md.

    Nothing applies them by itself.
    """
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.buffer.size": "1048576",
        "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.minBatchesToRetain": "100",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.speculation": "false",
        "spark.task.maxFailures": "4",
    }


def file_url(path: Path) -> str:
    """Return the file URL of a local path. Without the scheme, Spark may take it for a path of HDFS."""
    return f"file://{path.absolute()}"


def start_session(
    name: str, *, master: str, driver_memory: str, directory: Path, conf: Mapping[str, str]
) -> SparkSession:
    """Start a session for a job, or return that of spark-submit. Takes about four seconds.

    Local Spark listens on loopback only.
    """
    from pyspark.sql import SparkSession

    from interpulse.spark.data_source import register

    builder = SparkSession.builder.appName(name)
    settings = dict(recommended_conf())
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        settings |= {
            "spark.master": master,
            "spark.driver.memory": driver_memory,
            "spark.driver.extraJavaOptions": java_options(),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "WARN",
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.python.daemon.module": WORKER_DAEMON,
        }
    for key, value in (settings | dict(conf)).items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    register(spark)
    return spark


@contextmanager
def session_of_program(
    name: str, *, master: str, driver_memory: str, directory: Path, conf: Mapping[str, str]
) -> Iterator[SparkSession]:
    """Start a session as `start_session` does, and stop it at the end. Raises SparkMissing.

    Threads may be left that wait for Java: the caller ends the process with ``os._exit``.
    """
    check_spark_installed()
    exclude_pandas()
    spark = start_session(name, master=master, driver_memory=driver_memory, directory=directory, conf=conf)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def starting_a_query(spark: SparkSession) -> Iterator[None]:
    """Serialize the start of queries. Hold it around the reading and writing side of each query, in any thread.

    Each query gets its own registration of the data source, because Spark writes environment variables into the
    registration without a lock. Two queries that begin at the same moment could break it for good: every task, also of
    later attempts, would end with an OptionalDataException.
    """
    from interpulse.spark.data_source import register

    with _STARTING:
        _make_active(spark)
        register(spark)
        yield


def _make_active(spark: SparkSession) -> None:
    """Let this thread start queries. Spark looks for a sink's format only in the thread's active session.

    Only the thread that began the session has one; in others a query ends with DATA_SOURCE_NOT_FOUND. PySpark offers no
    call for it, and does the same before it makes a data frame of local rows.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None, "a classic session, not a remote one"
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


OnProgress = Callable[[int, int], None]
"""A callback that takes the finished number and the total."""

_POLL_S: Final = 0.2


@contextmanager
def task_progress(spark: SparkSession, on_progress: OnProgress) -> Iterator[None]:
    """Report the finished tasks of the stages that run in this context repeatedly, from another thread."""
    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def show() -> None:
        while not ended.wait(_POLL_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = sum(stage.numTasks for stage in stages if stage)
            if tasks:
                on_progress(sum(stage.numCompletedTasks for stage in stages if stage), tasks)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
