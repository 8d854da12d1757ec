"""Spark's workers show their log as the program that runs the job, unless configured otherwise."""

import os
import subprocess
import sys

from interpulse.cli.support.logs import configure_logging
from interpulse.spark import worker_logs

PROGRAM = (
    "import logging, interpulse.spark.data_source; logging.getLogger('interpulse.x').warning('gone topic=%s', 'a')"
)


def told_by_a_worker():
    return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stderr


def test_worker_shows_its_log_as_the_program_does():
    with worker_logs.passed_to_workers(configure_logging.__module__, configure_logging.__name__, "WARNING", "json"):
        told = told_by_a_worker()
    assert '"event": "gone"' in told
    assert '"topic": "a"' in told
    assert '"timestamp": ' in told


def test_worker_of_another_session_is_left_alone():
    assert worker_logs._VARIABLE not in os.environ
    assert told_by_a_worker() == "gone topic=a\n"
