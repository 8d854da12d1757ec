"""Long work on an event loop, done in turns: everything else on the loop gets its own after a few milliseconds."""

from __future__ import annotations

import asyncio
import heapq
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final, TypeVar

__all__ = ["Turn", "dumped_in_turns", "in_turns", "parsed_in_turns", "sorted_in_turns"]

T = TypeVar("T")

_TURN_SECONDS: Final = 0.005
_AT_ONCE: Final = 100
"""Values between two looks at the clock; they have to take less than a turn."""
_DECODER: Final = json.JSONDecoder()
_BLANKS: Final = " \t\r\n"
_BETWEEN: Final = f"{_BLANKS},"
_OPENING: Final = ("[", "{")


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
    turn = Turn()
    for some in _some_each(values, at_once):
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


async def parsed_in_turns(text: str, *, levels: int = 1) -> Any:
    """A JSON array or object; only what stands ``levels`` deep is read in one turn. Raises ValueError for others."""
    at = _behind(text, 0, _BLANKS)
    if not text.startswith(_OPENING, at):
        raise ValueError("not an array")
    parsed, _ = await _value(text, at, levels)
    await asyncio.sleep(0)  # who gets many values looks at all of them
    return parsed


async def _value(text: str, at: int, levels: int) -> tuple[Any, int]:
    """The value that begins there, and the place behind it."""
    if levels and text.startswith("[", at):
        return await _array(text, at, levels)
    if levels and text.startswith("{", at):
        return await _object(text, at, levels)
    return _DECODER.raw_decode(text, at)


async def _array(text: str, at: int, levels: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    turn = Turn()
    at = _behind(text, at + 1, _BETWEEN)
    while not text.startswith("]", at):
        value, at = await _value(text, at, levels - 1)
        values.append(value)
        at = _behind(text, at, _BETWEEN)
        if len(values) % _AT_ONCE == 0:
            await turn.give_way()
    return values, at + 1


async def _object(text: str, at: int, levels: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    turn = Turn()
    at = _behind(text, at + 1, _BETWEEN)
    while not text.startswith("}", at):
        name, at = _DECODER.raw_decode(text, at)
        at = _behind(text, at, _BLANKS)
        if not isinstance(name, str) or not text.startswith(":", at):
            raise ValueError(f"not an object: no name at character {at}")
        members[name], at = await _value(text, _behind(text, at + 1, _BLANKS), levels - 1)
        at = _behind(text, at, _BETWEEN)
        if len(members) % _AT_ONCE == 0:
            await turn.give_way()
    return members, at + 1


def _behind(text: str, at: int, skipped: str) -> int:
    while at < len(text) and text[at] in skipped:
        at += 1
    return at


async def dumped_in_turns(values: Iterable[Any] | Mapping[str, Any], *, levels: int = 1) -> bytes:
    """The values as a JSON array, a mapping as an object.

    Only what stands ``levels`` deep is written in one turn; higher, any iterable is an array.
    """
    content = b"".join([part async for some in in_turns(_parts(values, levels), 1) for part in some])
    await asyncio.sleep(0)  # that copied megabytes of many values
    return content


def _parts(value: Any, levels: int) -> Iterator[bytes]:
    """Its JSON in parts, of which each is written in less than a turn."""
    if not levels or isinstance(value, str) or not isinstance(value, Iterable):
        yield json.dumps(value).encode()
    elif isinstance(value, Mapping):
        yield from _enclosed(b"{", _members(value, levels), b"}")
    else:
        yield from _enclosed(b"[", _elements(value, levels), b"]")


def _enclosed(first: bytes, items: Iterable[Iterable[bytes]], last: bytes) -> Iterator[bytes]:
    yield first
    for number, parts in enumerate(items):
        if number:
            yield b", "
        yield from parts
    yield last


def _elements(values: Iterable[Any], levels: int) -> Iterator[Iterable[bytes]]:
    if levels == 1:
        return ([json.dumps(some)[1:-1].encode()] for some in _some_each(values))
    return (_parts(each, levels - 1) for each in values)


def _members(values: Mapping[str, Any], levels: int) -> Iterator[Iterable[bytes]]:
    if levels == 1:
        return ([json.dumps(dict(some))[1:-1].encode()] for some in _some_each(values.items()))
    return (chain([json.dumps(name).encode(), b": "], _parts(each, levels - 1)) for name, each in values.items())


def _some_each(values: Iterable[T], count: int = _AT_ONCE) -> Iterator[list[T]]:
    iterator = iter(values)
    while some := list(islice(iterator, count)):
        yield some
