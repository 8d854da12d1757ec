"""A topic that another broker has taken over: its clients are sent away, and nothing of it is written any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from interpulse.model.errors import ServiceNotReady
from interpulse.storage.api import FenceCause, LogFenced
from interpulse.storage.cursors import CursorRecord
from tests.support.waiting import eventually


class TakenCursors:
    """Cursors whose records another broker has claimed."""

    def __init__(self, cursors: Any) -> None:
        self._cursors = cursors
        self.flushes: list[bool] = []

    def of(self, log_name: str) -> Any:
        self.load, self.put = self._cursors.of(log_name).load, self._cursors.of(log_name).put
        return self

    async def flush(self, records: Mapping[str, CursorRecord], *, last: bool = False) -> None:
        self.flushes.append(last)
        raise LogFenced("x", "another broker has taken the topic over", FenceCause.OWNED_ELSEWHERE)


@pytest.fixture
def cursors(bench: Any) -> TakenCursors:
    bench.registry.cursor_store = TakenCursors(bench.registry.cursor_store)
    return bench.registry.cursor_store


async def test_topic_when_its_cursors_are_taken_then_goes_without_writing(
    bench: Any, cursors: TakenCursors, join: Any, publish: Any
) -> None:
    topic = await bench.topic()
    await join(topic)
    topic.subscription("s").cursor.changes += 1
    await bench.registry.flush()
    topic.cursors_changed()
    await bench.registry.flush()
    await eventually(lambda: bench.registry.get(topic.name) is None)
    assert topic.failed
    assert cursors.flushes == [False]
    with pytest.raises(ServiceNotReady):
        topic.check_open()


async def test_topic_when_its_log_is_taken_then_stores_no_cursor(bench: Any, cursors: TakenCursors, join: Any) -> None:
    topic = await bench.topic()
    await join(topic)
    topic.subscription("s").cursor.changes += 1
    topic.on_log_failed(LogFenced("x", "another process opened it", FenceCause.OWNED_ELSEWHERE))
    await eventually(lambda: bench.registry.get(topic.name) is None)
    assert cursors.flushes == []


async def test_topic_when_it_is_taken_while_it_is_closed_then_closing_tells(
    bench: Any, cursors: TakenCursors, join: Any
) -> None:
    topic = await bench.topic()
    await join(topic)
    topic.subscription("s").cursor.changes += 1
    with pytest.raises(LogFenced):
        await bench.registry.unload(topic.name)
    assert bench.registry.get(topic.name) is None
    assert cursors.flushes == [True]
