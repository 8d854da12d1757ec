"""The entries of a topic, counted over its ledgers."""

import pytest

from interpulse.console.messages.topic_messages import EntryRange
from interpulse.model.ids import Position

LEDGERS = [(3, 2), (5, 0), (8, 4)]


def test_entries_when_counted_then_each_has_its_position_and_back() -> None:
    entries = EntryRange(LEDGERS)
    positions = [entries[number] for number in range(len(entries))]
    assert positions == [Position(3, 0), Position(3, 1), *(Position(8, entry) for entry in range(4))]
    assert [entries.number(each) for each in positions] == list(range(6))


@pytest.mark.parametrize(
    ("position", "number"),
    [
        (Position(0, 9), 0),
        (Position(3, 2), 2),
        (Position(3, 99), 2),
        (Position(5, 0), 2),
        (Position(7, 0), 2),
        (Position(8, -1), 2),
        (Position(8, 4), 6),
        (Position(9, 0), 6),
    ],
)
def test_position_when_no_entry_is_there_then_counts_as_the_next_one(position: Position, number: int) -> None:
    assert EntryRange(LEDGERS).number(position) == number


@pytest.mark.parametrize("number", [-1, 6])
def test_entry_when_there_is_none_then_is_refused(number: int) -> None:
    with pytest.raises(IndexError):
        EntryRange(LEDGERS)[number]


@pytest.mark.parametrize(
    ("stats", "count"),
    [
        ({"ledgers": []}, 0),
        ({"ledgers": [{"ledgerId": 1, "entries": 3}, {"ledgerId": 2}], "currentLedgerEntries": 4}, 7),
        ({"ledgers": [{"ledgerId": 1, "entries": 3}], "currentLedgerEntries": 3}, 3),
    ],
)
def test_statistics_when_the_last_ledger_is_open_then_its_count_is_taken_from_beside(
    stats: dict[str, object], count: int
) -> None:
    assert len(EntryRange.of(stats)) == count
