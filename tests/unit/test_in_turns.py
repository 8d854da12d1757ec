"""Long work in turns: the result is that of the plain call, and others get their turn between."""

import asyncio
import json
import random
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import pytest

from interpulse.in_turns import (
    _TURN_SECONDS,
    Turn,
    concurrently,
    dumped_in_turns,
    in_turns,
    parsed_in_turns,
    sorted_in_turns,
)


async def turns_of_others(work: Awaitable[Any]) -> tuple[Any, int]:
    """The result, and how often another task came to its turn meanwhile."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    result = await work
    task.cancel()
    return result, turns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the work sees; each look at them takes a hundredth of a turn."""
    seconds = [0.0]

    def now() -> float:
        seconds[0] += _TURN_SECONDS / 100
        return seconds[0]

    monkeypatch.setattr("interpulse.in_turns.time", SimpleNamespace(perf_counter=now))
    return seconds


async def test_values_when_they_take_long_then_others_get_a_turn_whenever_one_is_over(clock: list[float]) -> None:
    async def collect(seconds: float) -> list[int]:
        sizes = []
        async for some in in_turns(range(1001), 100):
            clock[0] += seconds
            sizes.append(len(some))
        return sizes

    sizes, turns = await turns_of_others(collect(_TURN_SECONDS))
    assert sizes == [100] * 10 + [1]
    assert turns == 11
    assert (await turns_of_others(collect(0.0)))[1] == 0
    assert (await turns_of_others(collect(_TURN_SECONDS / 3)))[1] == 3


async def test_turn_when_it_is_over_then_the_next_begins_after_those_of_the_others(clock: list[float]) -> None:
    async def work() -> None:
        turn = Turn()
        for _ in range(10):
            await turn.give_way()
        clock[0] += _TURN_SECONDS
        for _ in range(10):
            await turn.give_way()

    assert (await turns_of_others(work()))[1] == 1


async def test_values_when_sorted_then_are_in_order_and_others_get_their_turn(clock: list[float]) -> None:
    values = [str(number) for number in range(80_000)]
    random.Random(1).shuffle(values)
    found, turns = await turns_of_others(sorted_in_turns(values, key=str))
    assert found == sorted(values)
    assert turns >= 5
    assert await sorted_in_turns([], key=str) == []


async def test_array_when_dumped_and_parsed_then_is_the_same(clock: list[float]) -> None:
    values = [{"number": number, "text": 'a]b,[\\" é'} for number in range(60_000)]
    content, turns = await turns_of_others(dumped_in_turns(values))
    assert json.loads(content) == values
    assert turns >= 5
    parsed, turns = await turns_of_others(parsed_in_turns(content.decode()))
    assert parsed == values
    assert turns >= 5
    assert await parsed_in_turns(json.dumps(values[:3], indent=2)) == values[:3]
    assert await parsed_in_turns("[]") == await parsed_in_turns((await dumped_in_turns([])).decode()) == []


async def test_object_when_dumped_and_parsed_then_is_the_same(clock: list[float]) -> None:
    values = {f'{number}:,}}"': None if number % 2 else {"number": number} for number in range(60_000)}
    content, turns = await turns_of_others(dumped_in_turns(values))
    assert json.loads(content) == values
    assert turns >= 5
    parsed, turns = await turns_of_others(parsed_in_turns(content.decode()))
    assert parsed == values
    assert turns >= 5
    few = {"a": [1], "b": "}"}
    assert await parsed_in_turns(json.dumps(few, indent=2)) == few
    assert await parsed_in_turns(" {}") == await parsed_in_turns((await dumped_in_turns({})).decode()) == {}


async def test_document_when_its_arrays_are_deep_then_they_are_dumped_and_parsed_in_turns(clock: list[float]) -> None:
    values = [{"number": number, "text": "]}"} for number in range(60_000)]
    few: dict[str, list[Any]] = {"few": [[1], {}, "x", None]}
    document = {"name": "é", "parts": [{"none": [], "many": values}, few], "end": {}}
    made = {**document, "parts": iter([{"none": iter([]), "many": iter(values)}, few])}
    content, turns = await turns_of_others(dumped_in_turns(made, levels=4))
    assert content == json.dumps(document).encode()
    assert turns >= 5
    parsed, turns = await turns_of_others(parsed_in_turns(content.decode(), levels=4))
    assert parsed == document
    assert turns >= 5
    for levels in range(1, 7):
        assert await parsed_in_turns(json.dumps(document, indent=1), levels=levels) == document


@pytest.mark.parametrize("text", ["", "[1", "[1, x]", "null", "{", '{"a"', '{"a": ', '{"a": 1', "{1: 2}", "{a: 1}"])
async def test_text_when_neither_array_nor_object_then_is_refused(text: str) -> None:
    for levels in (1, 2):
        with pytest.raises(ValueError, match=r"not an (array|object)|Expecting"):
            await parsed_in_turns(text, levels=levels)


async def test_concurrent_calls_are_bounded_and_answer_in_order() -> None:
    running = most = 0

    async def call(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return number * 2

    assert await concurrently(call, range(10), limit=3) == [number * 2 for number in range(10)]
    assert most == 3


async def test_first_failure_of_concurrent_calls_is_raised_and_cancels_the_others() -> None:
    ended = asyncio.Event()

    async def call(number: int) -> None:
        if number == 0:
            raise LookupError("first")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(LookupError, match="first"):
        await concurrently(call, range(3), limit=2)
    assert ended.is_set()
