from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import Position
from interpulse.storage.logs.journal import Run
from interpulse.storage.logs.tail_cache import LogTail, TailCache, as_log_entries, within


def test_as_log_entries_when_built_then_real_positions_and_entries() -> None:
    (found,) = as_log_entries(7, 3, [b"x"])
    assert found.position == Position(7, 3)
    assert type(found.position) is Position
    assert found.position.ledger == 7
    assert found.entry == b"x"


@given(st.lists(st.binary(max_size=5)), st.integers(0, 20), st.booleans())
def test_within_when_bounded_then_longest_beginning_that_fits(
    entries: list[bytes], bytes_max: int, first_always: bool
) -> None:
    found = within(entries, bytes_max, first_always=first_always)
    assert found == entries[: len(found)]
    if len(found) > 1 or not first_always:
        assert sum(map(len, found)) <= bytes_max
    if len(found) < len(entries):
        assert sum(map(len, entries[: len(found) + 1])) > bytes_max
    assert found or not entries or not first_always


@given(
    st.lists(st.tuples(st.integers(0, 2), st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=4))),
    st.integers(0, 400),
)
def test_cache_when_filled_then_bounded_and_tails_have_no_gap(runs: list[tuple[int, list[bytes]]], bound: int) -> None:
    cache = TailCache(bound)
    tails = [LogTail(), LogTail(), LogTail()]
    written: list[list[bytes]] = [[], [], []]
    for owner, entries in runs:
        cache.add(tails[owner], Run(1, len(written[owner]), entries), sum(map(len, entries)))
        written[owner] += entries
        assert cache.bytes_held <= bound
    for tail, all_entries in zip(tails, written, strict=True):
        if tail.runs:
            first = tail.runs[0].first
            found = tail.read(Position(1, first), 1000, 10_000)
            assert found is not None
            assert [each.entry for each in found] == all_entries[first:]
            assert first == 0 or tail.read(Position(1, first - 1), 1, 1) is None
    for tail in tails:
        cache.remove(tail)
    assert cache.bytes_held == 0
    cache.add(LogTail(), Run(1, 0, [b"x" * 1000]), 1000)
    assert cache.bytes_held == 0, "old mentions and a run above the bound are both gone"


def test_read_when_bounds_end_inside_runs_then_exactly_so_much() -> None:
    cache, tail = TailCache(10_000), LogTail()
    for number in range(3):
        cache.add(tail, Run(1, number * 2, [b"ab", b"cd"]), 4)

    def payloads(entry: int, entries_max: int, bytes_max: int) -> int:
        found = tail.read(Position(1, entry), entries_max, bytes_max)
        assert found is not None
        assert found[0].position == Position(1, entry)
        return len(found)

    assert payloads(1, 100, 100) == 5
    assert payloads(1, 3, 100) == 3
    assert payloads(1, 100, 6) == 3
    assert payloads(1, 100, 7) == 3
    assert payloads(0, 100, 1) == 1
    assert payloads(0, 100, 2) == 1


def test_cache_when_logs_come_and_go_then_nothing_of_them_is_kept() -> None:
    cache, staying = TailCache(10_000), LogTail()
    cache.add(staying, Run(1, 0, [b"x"]), 1)
    for number in range(1000):
        tail = LogTail()
        cache.add(tail, Run(2 + number, 0, [b"x"]), 1)
        cache.remove(tail)
    assert len(cache._order) < 5
    cache.add(LogTail(), Run(2000, 0, [b"x" * 9_950]), 9_950)
    assert staying.runs == [], "the oldest run still goes first"
