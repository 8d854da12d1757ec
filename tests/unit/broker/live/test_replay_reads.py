"""Replays are read again only if they were not kept, and little is kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from interpulse.broker.live import replay_reads
from interpulse.broker.live.api import Delivery
from interpulse.broker.live.cursor import Cursor
from interpulse.broker.live.replay_reads import ReplayReads
from interpulse.model.ids import EARLIEST, Position
from interpulse.storage.api import LogEntry


def at(entry: int) -> Position:
    return Position(1, entry)


def payload(entry: int) -> bytes:
    return b"%010d" % entry


class FakeLog:
    """Every entry from ``first`` on is in memory; it is its own source, too."""

    def __init__(self) -> None:
        self.log = self
        self.first = 0
        self.asked: list[tuple[int, int]] = []
        self.gone: set[Position] = set()

    def read_cached(self, start: Position, *, entries_max: int, bytes_max: int) -> list[LogEntry]:
        self.asked.append((start.entry, entries_max))
        found = range(max(start.entry, self.first), start.entry + entries_max)
        return [LogEntry(at(each), payload(each)) for each in found]

    def on_gone(self, positions: Iterable[Position]) -> None:
        self.gone.update(positions)


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


@pytest.fixture
def reads(log: Any) -> ReplayReads:
    return ReplayReads(log, Cursor(log, EARLIEST), log.on_gone, lambda: None)


def held(*entries: int) -> list[Delivery]:
    return [Delivery(at(each), payload(each)) for each in entries]


def fetched(reads: ReplayReads, *entries: int) -> list[int]:
    found = reads.fetch([at(each) for each in entries])
    assert all(each.payload == payload(each.position.entry) for each in found)
    return [each.position.entry for each in found]


def test_what_was_kept_is_not_read_again(reads: ReplayReads, log: FakeLog) -> None:
    reads.keep(held(2, 4, 7))
    assert fetched(reads, 2, 4, 7) == [2, 4, 7]
    assert log.asked == []
    assert fetched(reads, 2, 3, 4, 90) == [2, 3, 4, 90]
    assert log.asked == [(3, 1), (90, 1)]


def test_more_than_there_is_room_for_then_the_oldest_are_read_again(
    reads: ReplayReads, log: FakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_reads, "KEPT_BYTES_MAX", 35)
    reads.keep(held(0, 1, 2, 3))
    reads.forget(at(2))
    reads.forget(at(2))
    reads.keep(held(4))
    assert fetched(reads, 0, 1, 3, 4) == [0, 1, 3, 4]
    assert log.asked == [(0, 1)]


def test_what_was_forgotten_is_read_again(reads: ReplayReads, log: FakeLog) -> None:
    reads.keep(held(0, 1, 2))
    reads.forget_upto(at(1))
    assert fetched(reads, 1, 2) == [1, 2]
    reads.forget_all()
    assert fetched(reads, 2) == [2]
    assert log.asked == [(1, 1), (2, 1)]


def test_what_the_log_has_dropped_is_told(reads: ReplayReads, log: FakeLog) -> None:
    log.first = 5
    assert fetched(reads, 3, 4, 5) == [5]
    assert log.gone == {at(3), at(4)}
