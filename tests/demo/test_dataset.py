"""Reading the demonstration's rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dataset import DatasetError, read_rows


def test_flights_when_read_carry_key_and_scheduled_departure() -> None:
    first = next(iter(read_rows(None, None, 1)))
    assert first.key == "UA-N14228"
    assert first.event_time_ms == 1_357_035_300_000  # 2013-01-01 10:15 UTC = 05:15 in New York
    assert json.loads(first.value)["sched_dep_time"] == 515


def test_rows_when_csv_take_the_key_column(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("id,name\n1,a\n2,b\n")
    rows = list(read_rows(source, "id", None))
    assert [(row.key, json.loads(row.value)) for row in rows] == [
        ("1", {"id": "1", "name": "a"}),
        ("2", {"id": "2", "name": "b"}),
    ]


def test_rows_when_ndjson_are_limited(tmp_path: Path) -> None:
    source = tmp_path / "rows.ndjson"
    source.write_text('{"id": 1}\n\n{"id": 2}\n{"id": 3}\n')
    assert [row.value for row in read_rows(source, None, 2)] == [b'{"id":1}', b'{"id":2}']


@pytest.mark.parametrize(
    ("name", "text", "key", "said"),
    [
        pytest.param("rows.ndjson", "{}\nnonsense\n", None, "line 2 is not JSON", id="not-json"),
        pytest.param("rows.ndjson", "[1]\n", None, "line 1 is not a JSON object", id="not-an-object"),
        pytest.param("rows.csv", "id\n1\n", "carrier", "KEY=carrier", id="no-such-column"),
        pytest.param("rows.parquet", "", None, "only .ndjson", id="unknown-kind"),
        pytest.param("rows.csv", "id\n", None, "no rows", id="empty"),
    ],
)
def test_rows_when_input_is_bad_say_where(tmp_path: Path, name: str, text: str, key: str | None, said: str) -> None:
    source = tmp_path / name
    source.write_text(text)
    with pytest.raises(DatasetError, match=said):
        list(read_rows(source, key, None))


def test_rows_when_file_is_missing_name_it(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="No such file"):
        list(read_rows(tmp_path / "absent.csv", None, None))
