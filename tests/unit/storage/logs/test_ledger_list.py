from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.storage.api import LedgerRecord
from interpulse.storage.logs.ledger_list import LedgerList

counts = st.dictionaries(st.integers(0, 6), st.integers(0, 3)).map(lambda found: dict(sorted(found.items())))
positions = st.one_of(st.builds(Position, st.integers(-1, 7), st.integers(-1, 4)), st.just(EARLIEST), st.just(LATEST))


def ledger_list(counts: dict[int, int]) -> LedgerList:
    return LedgerList(LedgerRecord(ledger, entries, entries * 10, ledger) for ledger, entries in counts.items())


def all_positions(counts: dict[int, int]) -> list[Position]:
    return [Position(ledger, entry) for ledger, entries in counts.items() for entry in range(entries)]


@given(counts, positions, positions)
def test_walks_when_compared_with_a_plain_list_of_positions_then_equal(
    counts: dict[int, int], one: Position, two: Position
) -> None:
    ledgers, every = ledger_list(counts), all_positions(counts)
    assert ledgers.first_position() == (every[0] if every else None)
    newest = Position(max(counts), -1) if counts else Position(-1, -1)
    assert ledgers.last_position() == (every[-1] if every else newest)
    assert ledgers.at_or_after(one) == next((each for each in every if each >= one), None)
    assert ledgers.next_position(one) == next((each for each in every if each > one), None)
    assert ledgers.entries_between(one, two) == len([each for each in every if one < each <= two])
    before = ledgers.before(one)
    assert (
        before
        == [ledger for ledger, entries in counts.items() if Position(ledger, max(entries - 1, -1)) < one][: len(before)]
    )
    assert [each for each in every if each.ledger not in before and each < one] == [
        each for each in every if each.ledger == one.ledger and each < one and one.ledger not in before
    ]


def test_extend_when_ledgers_grow_then_counts_and_sizes_follow() -> None:
    ledgers = ledger_list({3: 2})
    ledgers.begin(5, 77)
    ledgers.extend(3, 2, 1, 4)
    ledgers.extend(5, 0, 2, 9)
    assert list(ledgers.records) == [LedgerRecord(3, 3, 24, 3), LedgerRecord(5, 2, 9, 77)]
    assert ledgers.newest == (5, 2, 9, 77)
    assert ledgers.entries_of(3) == 3
    ledgers.drop([3])
    assert list(ledgers.records) == [LedgerRecord(5, 2, 9, 77)]


def test_before_when_ledgers_are_whole_or_not_then_only_whole_ones() -> None:
    ledgers = ledger_list({1: 2, 2: 0, 4: 2})
    assert ledgers.before(Position(1, 1)) == []
    assert ledgers.before(Position(1, 2)) == [1]
    assert ledgers.before(Position(4, 1)) == [1, 2]
    assert ledgers.before(LATEST) == [1, 2, 4]
    assert ledgers.before(EARLIEST) == []
