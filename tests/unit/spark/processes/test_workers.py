"""Spark's workers show their log as the program that runs the job does, and keep what is loaded out of collections."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from interpulse.model.errors import TopicNotFound
from interpulse.spark.processes import workers
from interpulse.spark.processes.workers import settle_memory, strip_traceback, strip_traceback_while_reading
from interpulse.terminal.logs import configure_logging

PROGRAM = (
    "import logging, interpulse.spark.data_source; logging.getLogger('interpulse.x').warning('gone topic=%s', 'a')"
)


def told_by_a_worker():
    return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stderr


def test_worker_shows_its_log_as_the_program_does():
    with workers.passed_to_workers(configure_logging.__module__, configure_logging.__name__, "WARNING", "json"):
        told = told_by_a_worker()
    assert '"event": "gone"' in told
    assert '"topic": "a"' in told
    assert '"timestamp": ' in told


def test_worker_of_another_session_is_left_alone():
    assert workers._VARIABLE not in os.environ
    assert told_by_a_worker() == "gone topic=a\n"


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(workers, "_settled_in", None)
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_daemon_when_it_forks_workers_of_tasks_then_has_read_what_they_need() -> None:
    """And has made nothing of a client, which no forked process could use."""
    program = (
        "import sys, threading, pyspark.daemon, interpulse.spark.processes.worker_daemon as ours;"
        "pyspark.daemon.manager = lambda: print(sorted(set(sys.argv[2:]) - set(sys.modules)), threading.active_count(),"
        "__import__('gc').get_freeze_count() > 0);"
        "ours.main()"
    )
    needed = ("interpulse.spark.writing.lane_writer", "interpulse.spark.reading.fetch", "pyarrow")
    for module, missing in (("pyspark.worker", []), ("pyspark.sql.worker.create_data_source", sorted(needed))):
        command = [sys.executable, "-c", program, module, *needed]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert said.strip() == f"{missing} 1 {not missing}"


def test_pandas_when_excluded_then_arrow_and_spark_do_without_it() -> None:
    """In a process of its own, since the tests of this one may have imported it."""
    program = (
        "import sys, interpulse.spark.processes.no_pandas as ours; ours.exclude_pandas(); ours.exclude_pandas();"
        "import pyarrow as pa; from pyspark.testing.utils import have_pandas;"
        "print(pa.array([b'']).to_pylist(), have_pandas, 'pandas' in sys.modules);"
        "print(sum(type(finder).__module__ == ours.__name__ for finder in sys.meta_path))"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["[b''] False False", "1"]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_daemon_when_it_forks_workers_of_tasks_then_its_libraries_run_no_threads() -> None:
    """A lock that one of them held would stay locked in the workers."""
    program = (
        "import os, pyspark.daemon, interpulse.spark.processes.worker_daemon as ours;"
        "pyspark.daemon.manager = lambda: print(len(os.listdir('/proc/self/task')));"
        "ours.main()"
    )
    environment = {name: os.environ[name] for name in os.environ if not name.endswith(("_NUM_THREADS", "_MALLOC_CONF"))}
    command = [sys.executable, "-c", program, "pyspark.worker"]
    assert subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout == "1\n"


def run_as(monkeypatch: pytest.MonkeyPatch, module: str | None) -> None:
    main = ModuleType("__main__")
    main.__spec__ = None if module is None else ModuleSpec(module, None)
    monkeypatch.setitem(sys.modules, "__main__", main)


@pytest.mark.parametrize("daemon", ["pyspark.daemon", "interpulse.spark.processes.worker_daemon"])
def test_memory_when_settled_in_a_worker_then_left_out_once(
    monkeypatch: pytest.MonkeyPatch, thawed: None, daemon: str
) -> None:
    run_as(monkeypatch, daemon)
    settle_memory()
    assert gc.get_freeze_count() > 10_000
    gc.unfreeze()
    settle_memory()
    assert gc.get_freeze_count() == 0


def test_memory_when_the_worker_is_a_forked_one_then_left_out_there_too(
    monkeypatch: pytest.MonkeyPatch, thawed: None
) -> None:
    run_as(monkeypatch, "pyspark.daemon")
    settle_memory()
    gc.unfreeze()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    settle_memory()
    assert gc.get_freeze_count() > 0


@pytest.mark.parametrize("module", [None, "pytest", "pyspark.sql.streaming.python_streaming_source_runner"])
def test_memory_when_the_process_is_no_worker_then_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, thawed: None, module: str | None
) -> None:
    run_as(monkeypatch, module)
    settle_memory()
    assert gc.get_freeze_count() == 0


def fail(error):
    try:
        raise KeyError("inside")
    except KeyError as cause:
        raise error from cause


@strip_traceback
def step(error):
    fail(error)


@strip_traceback_while_reading
def steps(error):
    yield 1
    fail(error)


@pytest.mark.parametrize("call", [step, lambda error: list(steps(error))])
def test_missing_package_is_told_with_what_to_do(call):
    with pytest.raises(ModuleNotFoundError, match=r"^package google is not installed where .* into the archive$"):
        call(ModuleNotFoundError("No module named 'google'", name="google"))


@pytest.mark.parametrize("call", [step, lambda error: list(steps(error))])
@pytest.mark.parametrize(("error", "is_plain"), [(TopicNotFound("no topic"), True), (AssertionError("ours"), False)])
def test_errors_for_users_come_without_traceback(call, error, is_plain):
    with pytest.raises(type(error)) as caught:
        call(error)
    text = "".join(traceback.format_exception(caught.value))
    assert str(error) in text
    assert ("KeyError" not in text and "in fail" not in text) == is_plain
