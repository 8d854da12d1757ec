"""Lane files on disk."""

import errno
import os
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest

from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import NO_SEQUENCE, LaneState, lane_key, pack_sequence
from interpulse.spark.state_disk import LocalDisk, write_atomically
from interpulse.spark.state_files import LAST_COMMIT_FILE, NO_BATCH, TOPICS_FILE, LaneFiles, load_summaries


def state(number):
    return LaneState(number, Position(1, number))


def test_newest_file_below_a_batch_is_its_start(tmp_path):
    files = LaneFiles(str(tmp_path))
    assert files.newest() == (-1, {})
    files.commit(0, {"a": state(1)})
    files.commit(1, {"a": state(2)})
    assert files.newest() == (1, {"a": state(2)})
    assert files.newest(below=1) == (0, {"a": state(1)})


def test_lanes_that_did_not_move_are_carried_on(tmp_path):
    files = LaneFiles(str(tmp_path))
    files.commit(0, {"a": state(1), "b": state(7)})
    files.commit(1, {"a": state(2)})
    assert files.newest()[1] == {"a": state(2), "b": state(7)}


def test_commit_of_a_replayed_batch_keeps_what_the_first_one_recorded(tmp_path):
    """The repeated tasks may find nothing left to do, and what was written is acknowledged on the source meanwhile."""
    files = LaneFiles(str(tmp_path))
    files.commit(0, {"a": state(1)})
    first = LaneState(20, Position(2, 7), claimed=3, reached=Position(5, 9))
    files.commit(1, {"a": first, "b": state(9)})
    files.commit(1, {"a": LaneState(NO_SEQUENCE, EARLIEST, claimed=6, reached=Position(5, 1)), "c": state(2)})
    assert files.newest()[1] == {"a": first._replace(claimed=6), "b": state(9), "c": state(2)}
    assert files.newest(below=1)[1] == {"a": state(1)}


def test_a_hundred_files_are_kept(tmp_path):
    files = LaneFiles(str(tmp_path))
    for batch in range(103):
        files.commit(batch, {"a": state(batch)})
    assert len(list((tmp_path / "lanes").iterdir())) == 100


def test_anchors_and_summary(tmp_path):
    files = LaneFiles(str(tmp_path))
    assert files.anchors() == {}
    assert files.summary_of(4) is None
    files.write_anchors({"a": state(3)})
    files.write_summary({"batchId": 4})
    assert files.anchors() == {"a": state(3)}
    assert files.summary_of(4) == {"batchId": 4}


def test_forgetting_leaves_no_state(tmp_path):
    files = LaneFiles(str(tmp_path))
    files.write_anchors({"a": state(3)})
    files.commit(4, {"a": state(5)})
    files.forget()
    assert files.anchors() == {}
    assert files.newest() == (-1, {})


def copied(**positions):
    return {topic: (position, 1, 1, 10) for topic, position in positions.items()}


def test_positions_of_the_batch_in_progress_are_the_furthest_of_all_attempts(tmp_path):
    files = LaneFiles(str(tmp_path))
    assert (files.live_positions(), files.has_attempts()) == ({}, False)
    assert files.begin_attempt() == (1, {})
    assert files.has_attempts()
    files.commit(3, {"a": state(1)})
    files.write_live(4, 0, copied(a=Position(1, 4)), attempt=1)
    files.write_live(4, 1, copied(a=Position(1, 2), b=Position(2, 7)), attempt=1)
    assert files.live_positions() == {"a": Position(1, 4), "b": Position(2, 7)}
    assert files.begin_attempt() == (2, {"a": Position(1, 4), "b": Position(2, 7)})
    assert files.live_positions() == {"a": Position(1, 4), "b": Position(2, 7)}
    files.write_live(4, 0, copied(b=Position(2, 8)), attempt=2)  # its tasks have other topics
    files.write_live(4, 1, {}, attempt=2)
    assert files.begin_attempt() == (3, {"a": Position(1, 4), "b": Position(2, 8)})
    assert files.begin_attempt() == (4, {"a": Position(1, 4), "b": Position(2, 8)})
    files.commit(4, {"a": state(4)})
    assert files.live_positions() == {}
    assert files.begin_attempt() == (5, {"a": Position(1, 4), "b": Position(2, 8)}), "Spark may repeat it"
    files.write_live(5, 0, copied(b=Position(2, 9)), attempt=5)
    assert files.begin_attempt() == (6, {"b": Position(2, 9)})
    files.commit(6, {})
    assert files.begin_attempt() == (7, {})


def test_reports_of_an_attempt_that_was_given_up_count_no_more(tmp_path):
    """Its tasks may live on, and the source must not lose what the next attempt is planned to read."""
    files = LaneFiles(str(tmp_path))
    for attempt in (1, 2):
        assert files.begin_attempt() == (attempt, {})
    files.write_live(0, 0, copied(a=Position(1, 9)), attempt=1)
    files.write_live(0, 0, copied(a=Position(1, 3)), attempt=2)
    files.write_live(0, 0, copied(a=Position(1, 10)), attempt=1)
    assert files.live_positions() == {"a": Position(1, 3)}
    assert files.begin_attempt() == (3, {"a": Position(1, 3)})
    assert files.live() == {}


def test_forgetting_drops_the_positions_of_the_batch_in_progress(tmp_path):
    files = LaneFiles(str(tmp_path))
    files.write_live(4, 0, copied(a=Position(1, 4)))
    files.begin_attempt()
    files.forget()
    assert files.live_positions() == {}


def test_held_ranges_are_kept_until_they_are_written(tmp_path):
    files = LaneFiles(str(tmp_path))
    files.hold({"a": (Position(1, 4), "terminated"), "b": (Position(2, -1), "quota")}, released=[], now_ms=1000)
    files.hold({"a": (Position(1, 4), "terminated")}, released=["b"], now_ms=5000)
    held = files.held()
    assert list(held) == ["a"]
    assert (held["a"].after, held["a"].attempts, held["a"].since_ms) == (Position(1, 4), 2, 1000)
    assert held["a"].retry_at_ms > 5000
    files.forget()
    assert files.held() == {}


def test_summaries_of_some_batches_stay_and_one_that_is_written_again_counts_once(tmp_path):
    files = LaneFiles(str(tmp_path))
    assert files.summary_of(0) is None
    for batch in [*range(50), 49]:
        files.write_summary({"batchId": batch, "entries": batch, "topics": {"t": (1, 2, 3)}})
    assert (files.summary_of(49) or {})["topics"] == {"t": [1, 2, 3]}
    assert (files.summary_of(49) or {})["entries"] == 49
    assert files.summary_of(48) == {"batchId": 48, "entries": 48, "topics": {"t": [1, 2, 3]}}
    assert files.summary_of(40) is not None
    assert files.summary_of(10) is None
    for batch in (50, 51):
        files.write_summary({"batchId": batch, "topics": dict.fromkeys(map(str, range(1000)), (1, 2, 3))})
    assert files.summary_of(50) == {"batchId": 50, "topics": {}}
    assert len((files.summary_of(51) or {})["topics"]) == 1000
    assert list(load_summaries(tmp_path / LAST_COMMIT_FILE)["earlier"]) == [str(batch) for batch in range(31, 51)]


@pytest.mark.parametrize("left", ["", "{", '{"batchId": 1, "topi', "\0" * 20])
def test_summaries_when_a_crash_left_a_part_of_the_file_then_the_next_batch_writes_them_anew(tmp_path, caplog, left):
    files = LaneFiles(str(tmp_path))
    (tmp_path / LAST_COMMIT_FILE).write_text(left)
    assert files.summary_of(1) is None
    assert f"file={tmp_path / LAST_COMMIT_FILE}" in caplog.text
    files.write_summary({"batchId": 2})
    files.write_summary({"batchId": 3})
    assert (files.summary_of(2), files.summary_of(3)) == ({"batchId": 2, "topics": {}}, {"batchId": 3})


class CountingDisk(LocalDisk):
    def __init__(self) -> None:
        self.synced: list[Path] = []

    def sync_directory(self, directory: Path) -> None:
        super().sync_directory(directory)
        self.synced.append(directory)


def test_lane_file_when_a_batch_is_committed_then_its_name_is_synced(tmp_path: Path) -> None:
    disk = CountingDisk()
    files = LaneFiles(str(tmp_path / "state"), disk)
    files.commit(0, {"a": state(1)})
    assert disk.synced == [tmp_path, tmp_path / "state", tmp_path / "state" / "lanes"]
    files.commit(1, {"a": state(2)})
    assert disk.synced[3:] == [tmp_path / "state" / "lanes"]
    files.write_summary({"batchId": 1})
    assert len(disk.synced) == 4


def test_file_when_written_atomically_then_leaves_no_temporary_one(tmp_path: Path) -> None:
    for text in ("first", "second"):
        write_atomically(tmp_path / "file", text)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["second"]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_directory_when_its_file_system_cannot_sync_it_then_that_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="no") if number == errno.EIO else nullcontext():
        LocalDisk().sync_directory(tmp_path)


def test_what_lanes_have_copied_is_the_furthest_of_a_topic(tmp_path):
    files = LaneFiles(str(tmp_path))
    assert (files.copied(), files.newest_batch()) == ({}, NO_BATCH)
    numbered = LaneState(pack_sequence(3, 7), Position(1, 1))
    files.commit(6, {"a": numbered, "b": numbered._replace(reached=Position(3, 9)), "c": LaneState(-1, EARLIEST)})
    files.commit(7, {lane_key("a", "e1"): numbered._replace(sequence_id=pack_sequence(3, 8))})
    assert files.copied() == {"a": Position(3, 8), "b": Position(3, 9), "c": EARLIEST}
    assert files.newest_batch() == 7


def test_watched_files_change_with_the_list_of_topics_and_with_a_request_to_end(tmp_path):
    files = LaneFiles(str(tmp_path))
    versions = [files.run_ahead_watch()]
    files.end_run_ahead(1)
    versions.append(files.run_ahead_watch())
    files.end_run_ahead(2)
    versions.append(files.run_ahead_watch())
    write_atomically(tmp_path / TOPICS_FILE, "{}")
    versions.append(files.run_ahead_watch())
    assert all(before != after for before, after in pairwise(versions))
    assert versions[-1] == files.run_ahead_watch()


def test_live_figures_are_those_of_batches_that_are_not_committed(tmp_path):
    files = LaneFiles(str(tmp_path))
    files.write_live(4, 0, {"a": (Position(3, 9), 10, 20, 300)})
    files.write_live(5, 1, {"b": (Position(4, 0), 1, 2, 30)})
    assert len(files.live()) == 2
    files.commit(4, {})
    assert files.live() == {"0-1.json": (5, {"b": ["4:0", 1, 2, 30]})}
    files.commit(5, {})
    assert files.live() == {}


def test_live_figures_are_forgotten_with_the_lanes(tmp_path):
    """A new checkpoint counts its batches from zero."""
    files = LaneFiles(str(tmp_path))
    files.commit(4, {"a": state(1)})
    files.write_live(5, 0, {"a": (Position(3, 9), 10, 20, 300)})
    files.forget()
    assert (files.newest_batch(), files.live()) == (NO_BATCH, {})
