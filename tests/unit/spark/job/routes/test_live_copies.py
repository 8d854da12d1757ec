"""Figures of a batch in progress, and of what its end adds to them."""

from __future__ import annotations

from interpulse.model.ids import Position
from interpulse.spark.job.reports.report import Written
from interpulse.spark.job.routes.live_copies import LiveCopies
from interpulse.spark.state_files import LaneFiles


def test_live_figures_are_counted_once_however_a_batch_goes_on(tmp_path):
    files = LaneFiles(str(tmp_path))
    live = LiveCopies(files)
    assert (live.refresh(), live.positions, live.take()) == ({}, {}, (0, 0, 0))
    files.write_live(4, 0, {"a": (Position(3, 9), 10, 20, 300)})
    files.write_live(4, 1, {"b": (Position(5, 0), 1, 1, 9)})
    assert live.refresh() == {"a": (10, 20, 300), "b": (1, 1, 9)}
    assert live.positions == {"a": Position(3, 9), "b": Position(5, 0)}
    assert live.take() == (11, 21, 309)
    assert (live.refresh(), live.take()) == ({}, (0, 0, 0))
    files.write_live(4, 0, {"a": (Position(3, 19), 20, 40, 600)})
    assert live.refresh() == {"a": (10, 20, 300)}
    files.commit(4, {})
    assert live.complete(4, {"a": Written(25, 50, 750), "b": Written(1, 1, 9)}, Written(26, 51, 759)) == {
        "a": (5, 10, 150)
    }
    assert live.take() == (15, 30, 450)
    assert (live.refresh(), live.positions) == ({}, {}), "the batch is over"
    files.write_live(5, 0, {"a": (Position(3, 30), 2, 2, 20)})
    assert live.refresh() == {"a": (2, 2, 20)}


def test_attempts_of_a_batch_are_counted_each(tmp_path):
    """Another attempt counts what it writes itself, and may give a topic to another task."""
    files = LaneFiles(str(tmp_path))
    live = LiveCopies(files)
    files.write_live(4, 0, {"a": (Position(3, 9), 10, 20, 300)})
    live.refresh()
    files.write_live(4, 1, {"a": (Position(3, 11), 2, 4, 60)})
    assert live.refresh() == {"a": (2, 4, 60)}
    assert live.refresh() == {}
    files.write_live(4, 0, {"a": (Position(3, 12), 1, 2, 30)})
    assert live.refresh() == {"a": (1, 2, 30)}
    assert live.take() == (13, 26, 390)


def test_figures_of_a_batch_that_an_earlier_run_of_the_job_completed_count_no_more(tmp_path):
    files = LaneFiles(str(tmp_path))
    files.write_live(4, 0, {"a": (Position(3, 9), 10, 20, 300)})
    files.commit(4, {})
    live = LiveCopies(files)
    assert (live.refresh(), live.positions) == ({}, {})


def test_batch_that_was_not_seen_in_progress_counts_whole(tmp_path):
    live = LiveCopies(LaneFiles(str(tmp_path)))
    assert live.complete(0, {"a": Written(1, 2, 3)}, Written(1, 2, 3)) == {"a": (1, 2, 3)}
    assert live.complete(1, {}, Written(4, 5, 6)) == {}, "too many topics to list"
    assert live.take() == (5, 7, 9)
