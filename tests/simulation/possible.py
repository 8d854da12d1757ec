"""Values that may be true of one thing, after answers that arrived and answers that were lost: property T2.

One program changes a thing, one request at a time. A request that was answered has happened, or has not; one without an
answer may still happen, until the server certainly no longer has it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

Value: TypeAlias = Hashable


class Refused(Enum):
    """The result of an effect that must be answered with a refusal."""

    REFUSED = "refused"


REFUSED: Final = Refused.REFUSED
Effect: TypeAlias = Callable[[Value], Value]
"""The value that a request makes of another one, or `REFUSED`."""


class _Lost(NamedTuple):
    effect: Effect
    life: int
    """The last life of the server that may have the request."""


class Possible:
    """The values of one thing, in the order of requests and answers."""

    def __init__(self, name: str, value: Value, now: Callable[[], float]) -> None:
        self.name = name
        self._now = now
        self._lost: list[_Lost] = []
        self._values: frozenset[Value] = frozenset()
        self._past: list[tuple[float, frozenset[Value]]] = []
        self._set([value])

    @property
    def values(self) -> frozenset[Value]:
        """The values of now, without the effect of a request that waits for its answer."""
        return self._values

    def sent(self, effect: Effect) -> None:
        """Note that a request may have happened from now on."""
        self._past.append((self._now(), self._values | self._after(effect)))

    def done(self, effect: Effect) -> bool:
        """Note that the request that was sent is done. Return False if it had to be refused."""
        after = self._after(effect)
        self._set(after or self._values)
        return bool(after)

    def refused(self, effect: Effect) -> bool:
        """Note that the request that was sent was refused. Return False if it had to be done."""
        before = [value for value in self._values if effect(value) is REFUSED]
        self._set(before or self._values)
        return bool(before)

    def lost(self, effect: Effect, life: int) -> None:
        """Note that the request that was sent may happen until the end of this life of the server."""
        self._lost.append(_Lost(effect, life))
        self._set(self._values)

    def forget_lost(self, before_life: int) -> None:
        """Forget the lost requests that only lives before this one can have."""
        self._lost = [each for each in self._lost if each.life >= before_life]

    def seen(self, value: Value) -> bool:
        """Note that this is the value. Return False if it cannot be."""
        possible = value in self._values
        self._set([value])
        return possible

    def between(self, begin: float, end: float) -> set[Value]:
        """Return the values that were possible at any moment of this time."""
        ends = [at for at, _ in self._past[1:]] + [end]
        times = zip(self._past, ends, strict=True)
        return {value for (at, values), until in times if at <= end and until >= begin for value in values}

    def _after(self, effect: Effect) -> frozenset[Value]:
        return frozenset(effect(value) for value in self._values) - {REFUSED}

    def _set(self, values: Iterable[Value]) -> None:
        """Set the values, and those that lost requests make of them."""
        reached = set(values)
        fresh = list(reached)
        while fresh:
            value = fresh.pop()
            more = {each.effect(value) for each in self._lost} - reached - {REFUSED}
            reached |= more
            fresh += more
        self._values = frozenset(reached)
        self._past.append((self._now(), self._values))
