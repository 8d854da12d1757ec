"""Figures of a batch in progress, and of what its end adds to them."""

from __future__ import annotations

from interpulse.model.ids import Position
from interpulse.spark.job.routes.live_copies import LiveCopies
from interpulse.spark.state_files import LaneFiles


def test_live_figures_are_counted_once_however_a_batch_goes_on(tmp_path):
    files = LaneFiles(str(tmp_path))
    live = LiveCopies(files)
    assert (live.refresh(), live.positions) == ({}, {})
    files.write_live(4, 0, {"a": (Position(3, 9), 10, 20, 300)})
    files.write_live(4, 1, {"b": (Position(5, 0), 1, 1, 9)})
    assert live.refresh() == {"a": (10, 20, 300), "b": (1, 1, 9)}
    assert live.positions == {"a": Position(3, 9), "b": Position(5, 0)}
    assert live.refresh() == {}
    files.write_live(4, 0, {"a": (Position(3, 19), 20, 40, 600)})
    assert live.refresh() == {"a": (10, 20, 300)}
    files.commit(4, {})
    assert live.complete(4, {"a": (25, 50, 750), "b": (1, 1, 9)}) == {"a": (5, 10, 150)}
    assert (live.refresh(), live.positions) == ({}, {}), "the batch is over"
    files.write_live(5, 0, {"a": (Position(3, 30), 2, 2, 20)})
    assert live.refresh() == {"a": (2, 2, 20)}


def test_figures_of_a_batch_that_an_earlier_run_of_the_job_completed_count_no_more(tmp_path):
    files = LaneFiles(str(tmp_path))
    files.write_live(4, 0, {"a": (Position(3, 9), 10, 20, 300)})
    files.commit(4, {})
    live = LiveCopies(files)
    assert (live.refresh(), live.positions) == ({}, {})


def test_batch_that_was_not_seen_in_progress_counts_whole(tmp_path):
    live = LiveCopies(LaneFiles(str(tmp_path)))
    assert live.complete(0, {"a": (1, 2, 3)}) == {"a": (1, 2, 3)}
