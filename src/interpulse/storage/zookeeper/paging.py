"""The order of whole keys, computed from the names on each level: ``a-b`` < ``a/b`` < ``a0``."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush


def keys_after(names: Sequence[str], beginning: str, after: str) -> Iterator[str]:
    """Yield the sorted names with this beginning that follow ``after``.

    ``name`` stands for the key itself, ``name/`` for everything below it. The cost depends on the part that is
    consumed.
    """
    below: list[str] = []  # a heap: subtrees of names that were yielded
    for length in range(1, len(after) + 1):
        name = after[:length]
        index, subtree = bisect_left(names, name), f"{name}/"
        goes_on = after < subtree or after.startswith(subtree)
        if names[index : index + 1] == [name] and name.startswith(beginning) and goes_on:
            heappush(below, subtree)
    first = max(bisect_left(names, beginning), bisect_right(names, after) if after else 0)
    for index in range(first, len(names)):
        name = names[index]
        if not name.startswith(beginning):
            break
        while below and below[0] < name:
            yield heappop(below)
        yield name
        heappush(below, f"{name}/")
    while below:
        yield heappop(below)
