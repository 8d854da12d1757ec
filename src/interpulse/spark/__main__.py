"""``python -m interpulse.spark replicate --config FILE``; also the main file for spark-submit."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m interpulse.spark")
    verbs = parser.add_subparsers(dest="verb", required=True)
    replicate = verbs.add_parser("replicate", help="copy topics to other clusters, continuously and exactly once")
    replicate.add_argument("--config", required=True, metavar="FILE", help="TOML file of the pipeline")
    replicate.add_argument("--dry-run", action="store_true", help="print what would be done and change nothing")
    replicate.add_argument("--supervised", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)

    from interpulse.spark.job import launch

    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    return launch.replicate(given.config, dry_run=given.dry_run, supervised=given.supervised)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that wait for a killed Java process would hold an ordinary exit up.
    os._exit(code)
