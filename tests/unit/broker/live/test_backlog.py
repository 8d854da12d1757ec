from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.backlog import after_skipping, nth_waiting, waiting
from interpulse.model.ids import Position


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
