"""Long work on the event loop, done in turns: other clients get theirs after every few milliseconds."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

__all__ = ["dumped_in_turns", "in_turns", "parsed_in_turns", "sorted_in_turns"]

T = TypeVar("T")

_AT_ONCE: Final = 500
_DECODER: Final = json.JSONDecoder()
_BETWEEN: Final = " \t\r\n,"


async def in_turns(values: Iterable[T], at_once: int = _AT_ONCE) -> AsyncIterator[list[T]]:
    """The values in lists of so many; whatever computes them is at work only for one list at a time."""
    iterator = iter(values)
    while some := list(islice(iterator, at_once)):
        yield some
        await asyncio.sleep(0)


async def sorted_in_turns(values: Iterable[T], key: Callable[[T], str]) -> list[T]:
    """As `sorted`."""
    runs = [sorted(some, key=key) async for some in in_turns(values)]
    if len(runs) < 2:
        return runs[0] if runs else []
    merged: list[T] = []
    async for some in in_turns(heapq.merge(*runs, key=key)):
        merged += some
    return merged


async def parsed_in_turns(text: str) -> list[Any]:
    """The values of a JSON array. Raises ValueError for another text."""
    parsed: list[Any] = []
    async for some in in_turns(_values(text)):
        parsed += some
    return parsed


def _values(text: str) -> Iterator[Any]:
    at = _behind(text, 0, " \t\r\n")
    if text[at : at + 1] != "[":
        raise ValueError("not an array")
    at = _behind(text, at + 1, _BETWEEN)
    while text[at : at + 1] != "]":
        value, at = _DECODER.raw_decode(text, at)
        yield value
        at = _behind(text, at, _BETWEEN)


def _behind(text: str, at: int, skipped: str) -> int:
    while at < len(text) and text[at] in skipped:
        at += 1
    return at


async def dumped_in_turns(values: Iterable[Any]) -> bytes:
    """The values as a JSON array."""
    parts = [json.dumps(some)[1:-1].encode() async for some in in_turns(values)]
    return b"[" + b", ".join(parts) + b"]"
