"""Blocking twins of coroutine methods, with the same parameters, docstrings and types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from interpulse.client.portal import Portal

A = TypeVar("A")
P = ParamSpec("P")
Result = TypeVar("Result")


class Blocking(Generic[A]):
    """Blocking twin of an asynchronous object, whose coroutines run in the thread of a portal."""

    def __init__(self, portal: Portal, inner: A) -> None:
        self._portal = portal
        self._inner = inner


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Blocking[A], P], Result]:
    """Return the blocking twin of a coroutine method."""

    @functools.wraps(method)
    def call(self: Blocking[A], /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return self._portal.call(lambda: method(self._inner, *args, **kwargs))

    return call
