"""Whether copies are the same as their originals: what is missing, extra, duplicated, reordered or different.

`judge` takes the messages of one key, or one entry and its copies: the caller splits what is larger into such groups.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

__all__ = ["Discrepancy", "Item", "Problem", "judge"]


class Problem(StrEnum):
    """What can be wrong with a copy."""

    MISSING = "missing"
    EXTRA = "extra"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    DIFFERENT = "different"


class Item(NamedTuple):
    """One entry or message, as one side holds it.

    ``identity`` is what an original and its copy have in common, ``content`` what has to be equal. ``overtaken`` is a
    copy that stands behind the copy of a later original of another group.
    """

    identity: Hashable
    content: bytes
    place: str
    overtaken: bool = False


class Discrepancy(NamedTuple):
    """One problem, with the side or sides that have the item."""

    problem: Problem
    original: Item | None
    copy: Item | None


def judge(originals: Sequence[Item], copies: Sequence[Item]) -> list[Discrepancy]:
    """Every problem of one group, both sides in their order; nothing if the copies are the same.

    As often as an identity comes on one side, it has to come on the other. A copy is reordered if the copy of a later
    original stands before it. Where both an original and a copy are left over, one is taken for the altered other.
    """
    if len(originals) == len(copies) == 1 and originals[0][:2] == copies[0][:2] and not copies[0].overtaken:
        return []
    return list(_judge(originals, copies))


def _judge(originals: Sequence[Item], copies: Sequence[Item]) -> Iterator[Discrepancy]:
    waiting: dict[Hashable, deque[int]] = {}
    for index, original in enumerate(originals):
        waiting.setdefault(original.identity, deque()).append(index)
    unknown: list[Item] = []
    highest = -1
    for copy in copies:
        indices = waiting.get(copy.identity)
        if indices is None:
            unknown.append(copy)
        elif not indices:
            yield Discrepancy(Problem.DUPLICATED, None, copy)
        else:
            index = indices.popleft()
            original = originals[index]
            if original.content != copy.content:
                yield Discrepancy(Problem.DIFFERENT, original, copy)
            if copy.overtaken or index < highest:
                yield Discrepancy(Problem.REORDERED, original, copy)
            highest = max(highest, index)
    left = [originals[index] for index in sorted(index for indices in waiting.values() for index in indices)]
    altered = min(len(left), len(unknown))
    for original, copy in zip(left, unknown, strict=False):
        yield Discrepancy(Problem.DIFFERENT, original, copy)
    for original in left[altered:]:
        yield Discrepancy(Problem.MISSING, original, None)
    for copy in unknown[altered:]:
        yield Discrepancy(Problem.EXTRA, None, copy)
