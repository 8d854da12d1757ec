"""The programs on Spark as commands; ``interpulse`` and ``python -m interpulse.spark`` have them."""

from __future__ import annotations

from typing import Final

from interpulse.terminal.lazy import LazyCommand

_SECTION: Final = "Run"
COMMANDS: Final = {
    "audit": LazyCommand("interpulse.spark.audit.commands:audit", "Compare two clusters, on Spark.", _SECTION),
    "replicate": LazyCommand(
        "interpulse.spark.job.commands:command", "Run the geo-replication job on Spark.", _SECTION
    ),
    "verify": LazyCommand(
        "interpulse.spark.verify.commands:command", "Compare topics of two clusters, on Spark.", _SECTION
    ),
}
