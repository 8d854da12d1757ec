"""What is wrong with copies, of groups that fit in memory: the model that the job has to agree with."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from interpulse.spark.verify.judging import Problem


class Item(NamedTuple):
    """One entry or message, as one side holds it."""

    identity: Hashable
    content: bytes
    place: str
    overtaken: bool = False


class Discrepancy(NamedTuple):
    """One problem, with the side or sides that have the item."""

    problem: Problem
    original: Item | None
    copy: Item | None

    @property
    def shown(self) -> str:
        """The problem, and where it is on the source, else on the target."""
        found = self.original or self.copy
        assert found is not None, "one side has it"
        return f"{self.problem} {found.place}"


def judge(originals: Sequence[Item], copies: Sequence[Item]) -> Iterator[Discrepancy]:
    """Every problem of one group, both sides in their order."""
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
