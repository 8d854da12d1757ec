"""Replication jobs of several configuration files in one process, with one Spark session; they end with standard input.

python -m tests.spark.one_session CONFIG...
"""

import asyncio
import logging
import os
import sys

from interpulse.spark.job.pipeline_config import load_pipeline_config
from interpulse.spark.job.replication_job import ReplicationJob


async def run(paths: list[str]) -> None:
    jobs = [ReplicationJob(load_pipeline_config(path), supervised=True) for path in paths]
    await asyncio.gather(*(job.run() for job in jobs))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)  # as in the program
    asyncio.new_event_loop().run_until_complete(run(sys.argv[1:]))
    os._exit(0)  # threads may wait for Java
