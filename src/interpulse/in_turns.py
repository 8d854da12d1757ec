"""Long work on an event loop, done in turns: everything else on the loop gets its own after a few milliseconds."""

from __future__ import annotations

import asyncio
import heapq
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeVar

__all__ = ["Turn", "dumped_in_turns", "in_turns", "parsed_in_turns", "sorted_in_turns"]

T = TypeVar("T")

_TURN_SECONDS: Final = 0.005
_AT_ONCE: Final = 100
"""Values between two looks at the clock; they have to take less than a turn."""
_DECODER: Final = json.JSONDecoder()
_BLANKS: Final = " \t\r\n"
_BETWEEN: Final = f"{_BLANKS},"


class Turn:
    """The time that long work has on the event loop until others get theirs."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + _TURN_SECONDS

    async def give_way(self) -> None:
        """Let others have their turn if this one is over; called often, it costs next to nothing."""
        if time.perf_counter() >= self._ends:
            await asyncio.sleep(0)
            self._ends = time.perf_counter() + _TURN_SECONDS


async def in_turns(values: Iterable[T], at_once: int = _AT_ONCE) -> AsyncIterator[list[T]]:
    """The values in lists of so many; whatever computes them, and what is done with a list, ends a turn in time."""
    iterator, turn = iter(values), Turn()
    while some := list(islice(iterator, at_once)):
        yield some
        await turn.give_way()


async def sorted_in_turns(values: Iterable[T], key: Callable[[T], str]) -> list[T]:
    """As `sorted`."""
    runs = [sorted(some, key=key) async for some in in_turns(values, 1000)]
    if len(runs) < 2:
        return runs[0] if runs else []
    merged: list[T] = []
    async for some in in_turns(heapq.merge(*runs, key=key)):
        merged += some
    return merged


async def parsed_in_turns(text: str) -> Any:
    """A JSON array, or an object. Raises ValueError for another text."""
    if text.lstrip(_BLANKS)[:1] == "{":
        members: dict[str, Any] = {}
        async for pairs in in_turns(_members(text)):
            members |= pairs
        await asyncio.sleep(0)
        return members
    parsed: list[Any] = []
    async for some in in_turns(_values(text)):
        parsed += some
    await asyncio.sleep(0)  # who gets many values looks at all of them
    return parsed


def _values(text: str) -> Iterator[Any]:
    at = _behind(text, 0, _BLANKS)
    if text[at : at + 1] != "[":
        raise ValueError("not an array")
    at = _behind(text, at + 1, _BETWEEN)
    while text[at : at + 1] != "]":
        value, at = _DECODER.raw_decode(text, at)
        yield value
        at = _behind(text, at, _BETWEEN)


def _members(text: str) -> Iterator[tuple[str, Any]]:
    at = _behind(text, _behind(text, 0, _BLANKS) + 1, _BETWEEN)
    while text[at : at + 1] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _behind(text, at, _BLANKS)
        if not isinstance(name, str) or text[at : at + 1] != ":":
            raise ValueError(f"not an object: no name at character {at}")
        value, at = _DECODER.raw_decode(text, _behind(text, at + 1, _BLANKS))
        yield name, value
        at = _behind(text, at, _BETWEEN)


def _behind(text: str, at: int, skipped: str) -> int:
    while at < len(text) and text[at] in skipped:
        at += 1
    return at


async def dumped_in_turns(values: Iterable[Any] | Mapping[str, Any]) -> bytes:
    """The values as a JSON array, a mapping as an object."""
    if isinstance(values, Mapping):
        first, last = b"{", b"}"
        parts = [json.dumps(dict(some))[1:-1].encode() async for some in in_turns(values.items())]
    else:
        first, last = b"[", b"]"
        parts = [json.dumps(some)[1:-1].encode() async for some in in_turns(values)]
    content = b"".join((first, b", ".join(parts), last))
    await asyncio.sleep(0)  # that copied megabytes of many values
    return content
