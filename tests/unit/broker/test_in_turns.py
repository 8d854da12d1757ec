"""Long work in turns: the result is that of the plain call, and others get their turn between."""

import asyncio
import json
import random
from collections.abc import Awaitable
from typing import Any

import pytest

from interpulse.broker.in_turns import dumped_in_turns, in_turns, parsed_in_turns, sorted_in_turns


async def turns_of_others(work: Awaitable[Any]) -> tuple[Any, int]:
    """The result, and how often another task came to its turn meanwhile."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(other())
    result = await work
    task.cancel()
    return result, turns


async def test_values_when_many_then_others_get_a_turn_after_each_list() -> None:
    async def collect() -> list[int]:
        return [len(some) async for some in in_turns(range(1001), 100)]

    sizes, turns = await turns_of_others(collect())
    assert sizes == [100] * 10 + [1]
    assert turns >= 10


async def test_values_when_sorted_then_are_in_order_and_others_get_their_turn() -> None:
    values = [str(number) for number in range(5000)]
    random.Random(1).shuffle(values)
    found, turns = await turns_of_others(sorted_in_turns(values, key=str))
    assert found == sorted(values)
    assert turns >= 15
    assert await sorted_in_turns([], key=str) == []


async def test_array_when_dumped_and_parsed_then_is_the_same() -> None:
    values = [{"number": number, "text": 'a]b,[\\" é'} for number in range(3000)]
    content, turns = await turns_of_others(dumped_in_turns(values))
    assert json.loads(content) == values
    assert turns >= 5
    parsed, turns = await turns_of_others(parsed_in_turns(content.decode()))
    assert parsed == values
    assert turns >= 5
    assert await parsed_in_turns(json.dumps(values[:3], indent=2)) == values[:3]
    assert await parsed_in_turns("[]") == await parsed_in_turns((await dumped_in_turns([])).decode()) == []


@pytest.mark.parametrize("text", ["", "{}", "[1", "[1, x]", "null"])
async def test_text_when_not_an_array_then_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not an array|Expecting"):
        await parsed_in_turns(text)
