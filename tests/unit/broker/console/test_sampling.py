"""Samples while somebody watches."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interpulse.broker.console.sampling import Samples
from interpulse.model.errors import ServiceNotReady, TopicNotFound


class Source:
    """Counts how often it was asked."""

    def __init__(self, fails_after: int = 10**9) -> None:
        self.taken = 0
        self.many = asyncio.Event()
        self._fails_after = fails_after

    async def take(self) -> Any:
        if self.taken >= self._fails_after:
            raise TopicNotFound("gone")
        self.taken += 1
        if self.taken == 1000:
            self.many.set()
        return self.taken


async def allowed() -> str:
    return ""


def samples_of(raw: bytes) -> list[int]:
    assert raw.startswith(b"data: ")
    found: list[int] = json.loads(raw[6:])
    return found


async def test_watchers_when_there_are_two_then_one_task_samples_and_the_second_sees_what_was() -> None:
    samples, source = Samples(0.001), Source()
    first = samples.watch("a", source.take, allowed)
    assert (await anext(first)).startswith(b":")
    seen: list[int] = []
    while len(seen) < 5:
        seen += samples_of(await anext(first))
    assert seen == list(range(1, len(seen) + 1))
    second = samples.watch("a", Source().take, allowed)
    await anext(second)
    assert samples_of(await anext(second))[:5] == [1, 2, 3, 4, 5]
    assert samples.watchers == 2
    await first.aclose()
    await second.aclose()
    assert samples.watchers == 0


async def test_watcher_when_it_reads_slowly_then_misses_what_is_old_and_memory_stays() -> None:
    samples, source = Samples(0), Source()
    stream = samples.watch("a", source.take, allowed)
    await anext(stream)
    await anext(stream)
    await source.many.wait()
    late = samples_of(await anext(stream))
    assert len(late) <= 300
    assert late == list(range(late[0], late[0] + len(late)))
    await stream.aclose()


async def test_watching_ends_when_nobody_watches_then_nothing_is_asked_any_more() -> None:
    samples, source = Samples(0), Source()
    stream = samples.watch("a", source.take, allowed)
    await anext(stream)
    await anext(stream)
    await stream.aclose()
    await asyncio.sleep(0)
    before = source.taken
    for _ in range(20):
        await asyncio.sleep(0)
    assert source.taken == before
    assert not samples._series


async def test_stream_when_the_visitor_may_not_any_more_then_ends_and_says_so() -> None:
    samples, refusal = Samples(0), [""]

    async def check() -> str:
        return refusal[0]

    stream = samples.watch("a", Source().take, check)
    await anext(stream)
    await anext(stream)
    refusal[0] = "Not any more"
    rest = [each async for each in stream]
    assert rest[-1] == b'event: ended\ndata: "Not any more"\n\n'


async def test_stream_when_the_topic_is_gone_then_ends() -> None:
    stream = Samples(0).watch("a", Source(fails_after=2).take, allowed)
    rest = [each async for each in stream]
    assert rest[-1].startswith(b"event: ended")


async def test_watch_when_too_many_watch_then_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpulse.broker.console.sampling._WATCHERS_MAX", 1)
    samples = Samples(0)
    stream = samples.watch("a", Source().take, allowed)
    await anext(stream)
    with pytest.raises(ServiceNotReady, match="watched already"):
        samples.watch("b", Source().take, allowed)
    await stream.aclose()
