"""Files with the positions of copies, from many writers to one reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.model.ids import Position
from interpulse.replication.position_runs import Run
from interpulse.spark import position_files
from interpulse.spark.position_files import PositionFiles


def run(source: int, length: int = 1) -> Run:
    return Run(Position(5, source), Position(9, source), length)


def written(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "positions").iterdir())


def test_runs_of_all_writers_are_read_once_by_topic(tmp_path: Path) -> None:
    files = PositionFiles(tmp_path)
    assert files.read_new() == {}
    PositionFiles(tmp_path).write({"a": [run(0), run(2, 7)], "b": [run(1)]}, writer="1-0")
    PositionFiles(tmp_path).write({"a": [run(9)]}, writer="1-1")
    assert files.read_new() == {"a": [run(0), run(2, 7), run(9)], "b": [run(1)]}
    PositionFiles(tmp_path).write({"a": [run(20)]}, writer="commit-3")
    assert files.read_new() == {"a": [run(20)]}
    assert files.read_new() == {}
    assert (written(tmp_path), files.has_gap) == ([], False)


def test_nothing_is_written_without_runs(tmp_path: Path) -> None:
    PositionFiles(tmp_path).write({}, writer="1-0")
    assert list(tmp_path.iterdir()) == []


def test_reader_that_starts_again_gets_what_the_last_one_may_not_have_kept(tmp_path: Path) -> None:
    files = PositionFiles(tmp_path)
    for number in range(3):
        files.write({"a": [run(number)]}, writer=f"1-{number}")
        assert files.read_new() == {"a": [run(number)]}
    assert PositionFiles(tmp_path).read_new() == {"a": [run(2)]}


@pytest.mark.parametrize("left", ["", "[1]", '{"a": 1}', '{"a": [[1, 2]]}', '{"a": [[1, 2, 3, 4, 0]]}', "{"])
def test_file_that_a_crash_left_damaged_is_a_gap(tmp_path: Path, caplog: pytest.LogCaptureFixture, left: str) -> None:
    files = PositionFiles(tmp_path)
    files.write({"a": [run(1)]}, writer="1-0")
    damaged = tmp_path / "positions" / "1-0-0.json"
    damaged.write_text(left)
    assert (files.read_new(), files.has_gap) == ({"a": [run(1)]}, True)
    assert f"file={damaged}" in caplog.text
    assert (files.read_new(), files.has_gap, written(tmp_path)) == ({}, False, [])


def test_file_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    files = PositionFiles(tmp_path)
    files.write({"a": [run(1)]}, writer="1-0")
    (tmp_path / "positions" / ".2-1-0.json.7.tmp").write_text("{")
    assert files.read_new() == {"a": [run(1)]}
    files.read_new()
    assert written(tmp_path) == [".2-1-0.json.7.tmp"]


def test_files_that_no_one_reads_are_deleted_and_leave_a_gap(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(position_files, "_FILES_MAX", 3)
    for number in range(5):
        PositionFiles(tmp_path).write({"a": [run(number)]}, writer=f"1-{number}")
    assert f"directory={tmp_path / 'positions'}" in caplog.text
    for files in (PositionFiles(tmp_path), PositionFiles(tmp_path)):
        assert (files.read_new(), files.has_gap) == ({"a": [run(3), run(4)]}, True)
    for number in range(7):
        files.write({"a": [run(number)]}, writer=f"2-{number}")
    assert (files.read_new(), files.has_gap) == ({"a": [run(4), run(5), run(6)]}, True), "another gap"
    assert (files.read_new(), files.has_gap, written(tmp_path)) == ({}, False, [])


def test_cleared_files_are_gone_unread(tmp_path: Path) -> None:
    files = PositionFiles(tmp_path)
    files.clear()
    files.write({"a": [run(1)]}, writer="1-0")
    files.clear()
    assert (files.read_new(), written(tmp_path)) == ({}, [])
