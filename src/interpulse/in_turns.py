"""Long work on an event loop: cut into turns of a few milliseconds, or many calls of which some run at a time."""

from __future__ import annotations

import asyncio
import heapq
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final, TypeVar

A = TypeVar("A")
T = TypeVar("T")

_TURN_SECONDS: Final = 0.005
_AT_ONCE: Final = 100
"""Number of values handled between two looks at the clock. They must take less than a turn."""
_DECODER: Final = json.JSONDecoder()
_BLANKS: Final = " \t\r\n"
_BETWEEN: Final = f"{_BLANKS},"
_OPENING: Final = ("[", "{")


class Turn:
    """A slice of time on the event loop, after which long work gives way to other tasks."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + _TURN_SECONDS

    async def give_way(self) -> None:
        """Let other tasks run if this turn is over. Cheap enough to call often."""
        if time.perf_counter() >= self._ends:
            await asyncio.sleep(0)
            self._ends = time.perf_counter() + _TURN_SECONDS


async def in_turns(values: Iterable[T], at_once: int = _AT_ONCE) -> AsyncIterator[list[T]]:
    """Yield the values in lists of at most ``at_once``, and give way between lists when a turn is over.

    Computing one list and handling it must together take less than a turn.
    """
    turn = Turn()
    for batch in _batches(values, at_once):
        yield batch
        await turn.give_way()


async def sorted_in_turns(values: Iterable[T], key: Callable[[T], str]) -> list[T]:
    """Return the values sorted by ``key``, like `sorted`, without holding the loop."""
    runs = [sorted(batch, key=key) async for batch in in_turns(values, 1000)]
    if len(runs) < 2:
        return runs[0] if runs else []
    merged: list[T] = []
    async for batch in in_turns(heapq.merge(*runs, key=key)):
        merged += batch
    return merged


async def parsed_in_turns(text: str, *, levels: int = 1) -> Any:
    """Parse a JSON array or object. Raise ValueError for any other text.

    Values nested ``levels`` deep are each parsed in one turn.
    """
    at = _behind(text, 0, _BLANKS)
    if not text.startswith(_OPENING, at):
        raise ValueError("not an array")
    parsed, _ = await _value(text, at, levels)
    await asyncio.sleep(0)  # the caller usually walks all of the values
    return parsed


async def _value(text: str, at: int, levels: int) -> tuple[Any, int]:
    """Return the value that begins at ``at``, and the index behind it."""
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
    """Write the values as a JSON array, or a mapping as an object.

    Values nested ``levels`` deep are each written in one turn. Above that level any iterable becomes an array.
    """
    content = b"".join([part async for batch in in_turns(_parts(values, levels), 1) for part in batch])
    await asyncio.sleep(0)  # joining many values copies megabytes
    return content


def _parts(value: Any, levels: int) -> Iterator[bytes]:
    """Yield the JSON of ``value`` in parts, each written in less than a turn."""
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
        return ([json.dumps(batch)[1:-1].encode()] for batch in _batches(values))
    return (_parts(value, levels - 1) for value in values)


def _members(values: Mapping[str, Any], levels: int) -> Iterator[Iterable[bytes]]:
    if levels == 1:
        return ([json.dumps(dict(batch))[1:-1].encode()] for batch in _batches(values.items()))
    return (chain([json.dumps(name).encode(), b": "], _parts(value, levels - 1)) for name, value in values.items())


def _batches(values: Iterable[T], count: int = _AT_ONCE) -> Iterator[list[T]]:
    iterator = iter(values)
    while batch := list(islice(iterator, count)):
        yield batch


async def concurrently(call: Callable[[A], Awaitable[T]], items: Iterable[A], *, limit: int = 16) -> list[T]:
    """Return the result of ``call`` for each item, in order. At most ``limit`` calls run at the same time.

    The first failure cancels the other calls and is raised.
    """
    slots = asyncio.Semaphore(limit)

    async def one(item: A) -> T:
        async with slots:
            return await call(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
