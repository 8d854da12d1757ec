"""``interpulse replicate``: the geo-replication job by hand."""

from __future__ import annotations

import os
import sys

import click

from interpulse.cli.support.logs import LogFormat, configure_logging, log_options

__all__ = ["command"]


@click.command("replicate")
@click.option("--config", "config_path", required=True, metavar="FILE", help="TOML file of the pipeline.")
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--supervised", is_flag=True, hidden=True, help="End when standard input does.")
@log_options
def command(config_path: str, dry_run: bool, supervised: bool, log_level: str, log_format: LogFormat) -> None:
    """Copy topics to other clusters, continuously and exactly once, as a Spark job.

    Prints one JSON object per micro-batch. Ends on Ctrl-C or SIGTERM; the next start continues there.
    """
    from interpulse.spark.job.launch import replicate
    from interpulse.spark.worker_logs import pass_to_workers

    configure_logging(log_level, log_format)
    if not dry_run:
        pass_to_workers(configure_logging.__module__, configure_logging.__name__, log_level, log_format)
    code = replicate(config_path, dry_run=dry_run, supervised=supervised)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that wait for a Java process that was killed would hold an ordinary exit up.
    os._exit(code)
