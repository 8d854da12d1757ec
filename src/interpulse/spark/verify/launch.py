"""The start of the comparison from a command line. Spark is imported only after the check that it is installed."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from interpulse.spark.job.pipeline_config import PipelineConfig, SparkSettings
from interpulse.spark.session import check_spark_installed, session_of_program
from interpulse.spark.verify.comparisons import Comparison, comparisons_of

if TYPE_CHECKING:
    from interpulse.spark.verify.verification import Report


def planned(config: PipelineConfig, topics: Sequence[str], *, match: str, last_ms: int | None) -> list[Comparison]:
    """Return the comparisons of a pipeline; see `comparisons_of`."""
    return asyncio.run(comparisons_of(config, topics, match=match, last_ms=last_ms))


def compare(
    comparisons: Sequence[Comparison],
    *,
    directory: Path | None,
    settings: SparkSettings,
    on_progress: Callable[[int, int], None],
) -> Iterator[Report]:
    """Yield the reports one by one. Each run has its own directory below ``directory``, kept only if one is passed.

    Raises SparkMissing, VerifyError, and errors of clusters and Spark. Threads that wait for Java may remain: the
    caller ends the process with ``os._exit``.
    """
    check_spark_installed()
    from interpulse.spark.verify.verification import verify

    with ExitStack() as running:
        root = running.enter_context(_kept_or_temporary(directory))
        spark = running.enter_context(
            session_of_program(
                "interpulse verify",
                master=settings.master,
                driver_memory=settings.driver_memory,
                directory=root,
                conf={"spark.sql.shuffle.partitions": "8", **settings.conf},
            )
        )
        for comparison in comparisons:
            yield verify(spark, comparison, root / comparison.target.cluster, on_progress)


@contextmanager
def _kept_or_temporary(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        yield directory.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="interpulse-verify-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary)
