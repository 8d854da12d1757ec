"""Long lists, page by page."""

from __future__ import annotations

import random

import pytest

from interpulse.console.pages.parts.paging import PAGE_ROWS, TopRows, page_of


@pytest.mark.parametrize(
    ("rows", "asked", "number", "first", "last", "pages"),
    [(0, 0, 0, 0, 0, 1), (1, 0, 0, 1, 1, 1), (PAGE_ROWS, 0, 0, 1, PAGE_ROWS, 1), (PAGE_ROWS + 1, 1, 1, 51, 51, 2),
     (120, 99, 2, 101, 120, 3)],
)  # fmt: skip
def test_page_of(rows: int, asked: int, number: int, first: int, last: int, pages: int) -> None:
    page = page_of(range(rows), asked)
    assert (page.number, page.first, page.last, page.pages, page.total) == (number, first, last, pages, rows)
    assert list(page.rows) == list(range(rows))[number * PAGE_ROWS : (number + 1) * PAGE_ROWS]


def test_foremost_when_there_are_many_then_is_what_sorting_all_of_them_gives() -> None:
    numbers = random.Random(7).choices(range(10_000), k=7_777)
    top_rows: TopRows[int] = TopRows(100, lambda number: -number)
    for number in numbers:
        top_rows.add(number)
    assert top_rows.rows == sorted(numbers, reverse=True)[:100]
    assert top_rows.total == 7_777
    top_rows.add(10_001)
    assert top_rows.rows[0] == 10_001
