"""``format("interpulse-copy")``: the data source of the replication job, registered in its session only.

Options with the prefix ``source.`` are those of a stream that reads entry mode, and with ``target.`` those of an
exactly-once sink of entry mode. ``runAheadMs`` is how long tasks go on copying what arrives, and ``cursorFollows`` says
if the cursor on the source moves meanwhile; see ``run_ahead.py``. With ``positionRuns`` the positions of copies are
written to `PositionFiles`, which something must read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from interpulse.spark.processes.workers import configure_worker, strip_traceback

if TYPE_CHECKING:
    from interpulse.spark.writing.write_options import WriteOptions

COPY_FORMAT: Final = "interpulse-copy"
_SOURCE: Final = "source."
_TARGET: Final = "target."
_RUN_AHEAD_MS: Final = "runAheadMs"
_CURSOR_FOLLOWS: Final = "cursorFollows"
_POSITION_RUNS: Final = "positionRuns"

configure_worker()


class CopyDataSource(DataSource):
    """A stream whose tasks copy ranges. ``ReportCommit`` commits their reports."""

    @classmethod
    def name(cls) -> str:
        return COPY_FORMAT

    def schema(self) -> str:
        """Return the columns: a row is the pickled report of one topic-partition in one batch."""
        return "report BINARY"

    @strip_traceback
    def streamReader(self, schema: object) -> DataSourceStreamReader:
        from interpulse.spark.copying.copy_reader import CopyReader
        from interpulse.spark.options.option import Purpose
        from interpulse.spark.reading.read_options import parse_read_options

        options = parse_read_options(_with_prefix(_SOURCE, self.options), Purpose.STREAM_READ)
        return CopyReader(
            options,
            self._target(),
            run_ahead_ms=int(self.options.get(_RUN_AHEAD_MS, "0")),
            cursor_follows=self.options.get(_CURSOR_FOLLOWS) == "true",
            position_runs=self.options.get(_POSITION_RUNS) == "true",
        )

    def _target(self) -> WriteOptions:
        from interpulse.spark.options.option import OptionError, Purpose
        from interpulse.spark.writing.write_options import parse_write_options

        target = parse_write_options(_with_prefix(_TARGET, self.options), Purpose.STREAM_WRITE)
        if not (target.exactly_once and target.assume_deduplication and target.state_path):
            raise OptionError(
                f"{COPY_FORMAT} copies exactly once, with target.statePath and target.assumeDeduplication=true"
            )
        return target


def copy_options(
    source: Mapping[str, str],
    target: Mapping[str, str],
    *,
    run_ahead_ms: int = 0,
    cursor_follows: bool = False,
    position_runs: bool = False,
) -> dict[str, str]:
    """Return the options of a query: those of both sides, and its own as in `CopyReader`."""
    options = {_SOURCE + key: value for key, value in source.items()}
    options |= {_TARGET + key: value for key, value in target.items()}
    flags = {_CURSOR_FOLLOWS: cursor_follows, _POSITION_RUNS: position_runs}
    options |= {name: str(is_set).lower() for name, is_set in flags.items()}
    return options | {_RUN_AHEAD_MS: str(run_ahead_ms)}


def _with_prefix(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
