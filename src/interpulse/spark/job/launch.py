"""Starting the replication job from a command line; imports Spark only once it is known to be there."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Final

from interpulse.model.errors import PulsarError
from interpulse.spark.job.pipeline_config import PipelineConfig, PipelineConfigError, load_pipeline_config
from interpulse.spark.session import SparkMissing, check_spark_installed

__all__ = ["EXIT_CANNOT_RUN", "replicate"]

EXIT_CANNOT_RUN: Final = 2


def replicate(config_path: str, *, dry_run: bool = False, supervised: bool = False) -> int:
    """Run the job until it is told to stop; the exit code. What cannot run says so in one sentence, code 2.

    Threads may be left that wait for Java: the caller ends the process with ``os._exit``.
    """
    try:
        config = load_pipeline_config(config_path)
        if not dry_run:
            check_spark_installed()
        return _run(config, dry_run=dry_run, supervised=supervised)
    except (PipelineConfigError, SparkMissing) as problem:
        print(f"interpulse replicate: {problem}", file=sys.stderr)  # noqa: T201 - a program's last words
        return EXIT_CANNOT_RUN


def _run(config: PipelineConfig, *, dry_run: bool, supervised: bool) -> int:
    logging.getLogger("py4j").setLevel(logging.WARNING)
    if dry_run:
        return _dry_run(config)
    from interpulse.spark.job.replication_job import ReplicationJob

    # asyncio.run would wait at the end for threads that talk to Java, however long Spark takes to start or to stop.
    return asyncio.new_event_loop().run_until_complete(ReplicationJob(config, supervised=supervised).run())


def _dry_run(config: PipelineConfig) -> int:
    from interpulse.spark.job.inspection.dry_run import print_plan

    try:
        return asyncio.run(print_plan(config))
    except PulsarError as problem:
        print(f"interpulse replicate: source cannot be asked: {problem}", file=sys.stderr)  # noqa: T201
        return EXIT_CANNOT_RUN
