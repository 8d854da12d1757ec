"""Samples of topics while visitors watch them, and the rate of the watchers."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, aclosing
from typing import Any

import pytest

from interpulse.console.sampling import PollingRate, Samples
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


def samples_every(seconds: float) -> Samples:
    return Samples(PollingRate("charts", every_seconds=seconds, per_second_max=1e9, most=1000))


def samples_of(raw: bytes) -> list[int]:
    assert raw.startswith(b"data: ")
    found: list[int] = json.loads(raw[6:])
    return found


async def test_second_watcher_sees_the_samples_of_the_same_task() -> None:
    samples, source = samples_every(0.001), Source()
    first = samples.watch("a", source.take, allowed)
    assert (await anext(first)).startswith(b":")
    seen: list[int] = []
    while len(seen) < 5:
        seen += samples_of(await anext(first))
    assert seen == list(range(1, len(seen) + 1))
    second = samples.watch("a", Source().take, allowed)
    await anext(second)
    assert samples_of(await anext(second))[:5] == [1, 2, 3, 4, 5]
    await first.aclose()
    await second.aclose()


async def test_watcher_when_it_reads_slowly_then_misses_what_is_old_and_memory_stays() -> None:
    samples, source = samples_every(0), Source()
    stream = samples.watch("a", source.take, allowed)
    await anext(stream)
    await anext(stream)
    await source.many.wait()
    late = samples_of(await anext(stream))
    assert len(late) <= 300
    assert late == list(range(late[0], late[0] + len(late)))
    await stream.aclose()


async def test_watching_ends_when_nobody_watches_then_nothing_is_asked_any_more() -> None:
    samples, source = samples_every(0), Source()
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
    samples, refusal = samples_every(0), [""]

    async def check() -> str:
        return refusal[0]

    stream = samples.watch("a", Source().take, check)
    await anext(stream)
    await anext(stream)
    refusal[0] = "Not any more"
    rest = [event async for event in stream]
    assert rest[-1] == b'event: ended\ndata: "Not any more"\n\n'


async def test_stream_when_the_topic_is_gone_then_ends() -> None:
    stream = samples_every(0).watch("a", Source(fails_after=2).take, allowed)
    rest = [event async for event in stream]
    assert rest[-1].startswith(b"event: ended")


async def test_watch_when_too_many_watch_then_is_refused() -> None:
    samples = Samples(PollingRate("charts", every_seconds=0, per_second_max=1e9, most=1))
    stream = samples.watch("a", Source().take, allowed)
    await anext(stream)
    with pytest.raises(ServiceNotReady, match="1 charts are watched already"):
        samples.watch("b", Source().take, allowed)
    await stream.aclose()
    await samples.watch("b", Source().take, allowed).aclose()


async def test_sample_is_taken_and_written_once_for_all_watchers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[Any] = []

    def to_json(value: Any) -> str:
        written.append(value)
        return json.dumps(value)

    monkeypatch.setattr("interpulse.console.sampling.to_json", to_json)
    samples, source = samples_every(0), Source()
    streams = [samples.watch("a", source.take, allowed) for _ in range(1000)]
    for stream in streams:
        await anext(stream)
    last = [samples_of(await anext(stream))[-1] for stream in streams]
    assert written == list(range(1, source.taken + 1))
    assert source.taken == max(last)
    for stream in streams:
        await stream.aclose()


async def test_waking_a_thousand_watchers_gives_others_their_turn() -> None:
    samples, source, got, turns = samples_every(60), Source(), 0, 0

    async def follow() -> None:
        nonlocal got
        async with aclosing(samples.watch("a", source.take, allowed)) as stream:
            await anext(stream)
            await anext(stream)
            got += 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(1000):
            tasks.create_task(follow())
        most, before = 0, 0
        while got < 1000:
            await asyncio.sleep(0)
            most, before, turns = max(most, got - before), got, turns + 1
    assert source.taken == 1
    assert most <= 20
    assert turns >= 50


@pytest.mark.parametrize(("watchers", "seconds"), [(0, 1), (1, 1), (200, 1), (201, 1.005), (1000, 5)])
def test_seconds_when_so_many_watch_then_all_together_look_no_more_often(watchers: int, seconds: float) -> None:
    pace = PollingRate("charts", every_seconds=1, per_second_max=200, most=1000)
    with ExitStack() as stack:
        for _ in range(watchers):
            stack.enter_context(pace.watching())
        assert pace.seconds == seconds
    assert pace.seconds == 1


def test_room_when_as_many_watch_as_may_then_refuses_one_more() -> None:
    pace = PollingRate("tails of topics", every_seconds=1, per_second_max=1, most=2)
    with pace.watching():
        with pace.watching(), pytest.raises(ServiceNotReady, match="2 tails of topics are watched already"):
            pace.check_room()
        pace.check_room()


def test_watching_when_room_is_taken_meanwhile_then_is_refused() -> None:
    pace = PollingRate("charts", every_seconds=1, per_second_max=1, most=1)
    pace.check_room()
    with pace.watching():
        with pytest.raises(ServiceNotReady), pace.watching():
            pass
        assert pace.watchers == 1
