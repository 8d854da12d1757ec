"""``python -m interpulse.spark replicate --config FILE``; also the main file for spark-submit.

The verbs beside it (``lag``, ``why``, ...) are those of ``interpulse replicate``.
"""

from __future__ import annotations

import logging
import os
import sys

import click

from interpulse.spark.job.verbs import VERBS


@click.group()
def main() -> None:
    """Copy topics between clusters with Spark, and look at what was copied."""


@main.command()
@click.option("--config", "config_path", required=True, metavar="FILE", help="TOML file of the pipeline.")
@click.option("--dry-run", is_flag=True, help="Print what would be done and change nothing.")
@click.option("--supervised", is_flag=True, hidden=True)
def replicate(config_path: str, dry_run: bool, supervised: bool) -> None:
    """Copy topics to other clusters, continuously and exactly once."""
    from interpulse.spark.job import launch

    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    code = launch.replicate(config_path, dry_run=dry_run, supervised=supervised)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that wait for a killed Java process would hold an ordinary exit up.
    os._exit(code)


for verb in VERBS:
    main.add_command(verb)

if __name__ == "__main__":
    main(prog_name="python -m interpulse.spark")
