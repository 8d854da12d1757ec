from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.log_search import (
    after_skipping,
    bytes_after,
    first_published_since,
    nth_position,
    nth_waiting,
    position_leaving,
    publish_time_of,
    trim_before,
    waiting,
)
from interpulse.model.ids import EARLIEST, LATEST, Position
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.storage.api import LedgerRecord


@pytest.mark.parametrize("since", range(998, 1012))
async def test_first_published_since_finds_what_a_walk_would_find(bench: Any, since: int) -> None:
    """Entry n was published at 1000 + n; ledgers of 3, 1 and 5 entries, one of them trimmed."""
    topic = await bench.topic()
    numbers = iter(range(12))
    for size in (3, 1, 5):
        await topic.log.roll()
        await bench.publish(topic, *(next(numbers) for _ in range(size)))
    await topic.log.trim(Position(2, 0))
    kept = await topic.log.read(EARLIEST, entries_max=99, bytes_max=10**6)
    expected = next((each.position for each in kept if publish_time_of(each.entry) >= since), None)
    assert await first_published_since(topic.log, since) == expected


LEDGERS = [LedgerRecord(1, 3, 30, 0), LedgerRecord(2, 0, 0, 0), LedgerRecord(4, 2, 20, 0), LedgerRecord(5, 0, 0, 0)]


@pytest.mark.parametrize(
    ("number", "from_end", "expected"),
    [
        (1, False, Position(1, 0)),
        (3, False, Position(1, 2)),
        (4, False, Position(4, 0)),
        (5, False, Position(4, 1)),
        (6, False, Position(4, 1)),
        (10**18, False, Position(4, 1)),
        (1, True, Position(4, 1)),
        (3, True, Position(1, 2)),
        (5, True, Position(1, 0)),
        (6, True, None),
        (10**18, True, None),
    ],
)
def test_nth_position_is_counted_from_either_end(number: int, from_end: bool, expected: Position | None) -> None:
    assert nth_position(LEDGERS, number, from_end=from_end) == expected


@pytest.mark.parametrize("from_end", [False, True])
def test_nth_position_of_an_empty_log_is_none(from_end: bool) -> None:
    assert nth_position([LedgerRecord(1, 0, 0, 0)], 1, from_end=from_end) is None


def test_publish_time_of_bytes_that_are_no_entry_is_zero() -> None:
    assert publish_time_of(b"?") == 0


@pytest.mark.parametrize(
    ("position", "size"),
    [(EARLIEST, 150), (Position(1, 4), 100), (Position(1, 9), 50), (Position(3, 0), 25), (Position(3, 1), 0)],
)
def test_bytes_after(position: Position, size: int) -> None:
    assert bytes_after([LedgerRecord(1, 10, 100, 0), LedgerRecord(3, 2, 50, 0)], position) == size


@pytest.mark.parametrize(
    ("after", "size", "expected"),
    [
        pytest.param(EARLIEST, 1000, EARLIEST, id="all of it is few enough"),
        pytest.param(EARLIEST, 150, EARLIEST, id="exactly"),
        pytest.param(EARLIEST, 149, Position(1, 0), id="one byte too many costs an entry"),
        pytest.param(EARLIEST, 50, Position(1, 9), id="up to the end of a ledger"),
        pytest.param(EARLIEST, 49, Position(3, 0), id="in the last ledger"),
        pytest.param(EARLIEST, 0, Position(3, 1), id="nothing is left"),
        pytest.param(Position(3, 0), 40, Position(3, 0), id="never back"),
        pytest.param(Position(1, 4), 75, Position(1, 7), id="from the middle"),
    ],
)
def test_position_leaving(after: Position, size: int, expected: Position) -> None:
    ledgers = [
        LedgerRecord(1, 10, 100, 0),
        LedgerRecord(2, 0, 0, 0),
        LedgerRecord(3, 2, 50, 0),
        LedgerRecord(4, 0, 0, 0),
    ]
    found = position_leaving(ledgers, after, size)
    assert found == expected
    assert bytes_after(ledgers, found) <= size


@pytest.fixture
async def cursor(bench: Any) -> Any:
    """Entries 1:0 to 1:2 and 2:0 to 2:2, of which 1:1 and 2:0 are acknowledged."""
    topic = await bench.topic()
    await topic.create_subscription("s")
    await bench.publish(topic, 0, 1, 2)
    await topic.log.roll()
    await bench.publish(topic, 3, 4, 5)
    cursor = topic.subscription("s").cursor
    cursor.acknowledge(Position(1, 1))
    cursor.acknowledge(Position(2, 0))
    return cursor


async def test_waiting_walks_across_ledgers(bench: Any, cursor: Any) -> None:
    topic = await bench.topic()
    assert list(waiting(topic.log, cursor)) == [(1, 0), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize(("number", "position"), [(1, (1, 0)), (2, (1, 2)), (4, (2, 2)), (5, None)])
async def test_nth_waiting(bench: Any, cursor: Any, number: int, position: tuple[int, int] | None) -> None:
    topic = await bench.topic()
    assert nth_waiting(topic.log, cursor, number) == position


@pytest.mark.parametrize(("number", "position"), [(0, (1, -1)), (1, (1, 0)), (3, (2, 1)), (99, (2, 2))])
async def test_after_skipping(bench: Any, cursor: Any, number: int, position: tuple[int, int]) -> None:
    topic = await bench.topic()
    assert after_skipping(topic.log, cursor, number) == position


MINUTE, MEGABYTE = 60_000, 1024 * 1024
RETAINED = [
    LedgerRecord(1, 10, MEGABYTE, 0),
    LedgerRecord(4, 10, MEGABYTE, 10 * MINUTE),
    LedgerRecord(7, 10, MEGABYTE, 20 * MINUTE),
]


@pytest.mark.parametrize(
    ("acknowledged", "retention", "before"),
    [
        pytest.param(LATEST, (0, 0), Position(7, 0), id="nothing is kept: all but the current one goes"),
        pytest.param(Position(4, 9), (0, 0), Position(7, 0), id="a cursor at the end of a ledger has passed it"),
        pytest.param(Position(4, 8), (0, 0), Position(4, 0), id="a cursor inside a ledger keeps it"),
        pytest.param(Position(1, 3), (0, 0), None, id="a cursor in the first ledger keeps everything"),
        pytest.param(LATEST, (-1, -1), None, id="unlimited"),
        pytest.param(LATEST, (15, -1), Position(4, 0), id="by time: full for 20 minutes goes, for 10 stays"),
        pytest.param(LATEST, (-1, 2), Position(4, 0), id="by size: until 2 MB are left"),
        pytest.param(LATEST, (-1, 3), None, id="by size: 3 MB are allowed"),
    ],
)
def test_trim_before(acknowledged: Position, retention: tuple[int, int], before: Position | None) -> None:
    assert trim_before(RETAINED, acknowledged, RetentionPolicies(*retention), 30 * MINUTE) == before


def test_trim_before_when_there_is_only_the_current_ledger_then_nothing_goes() -> None:
    assert trim_before(RETAINED[:1], LATEST, RetentionPolicies(0, 0), 99 * MINUTE) is None
    assert trim_before([], LATEST, RetentionPolicies(0, 0), 99 * MINUTE) is None
