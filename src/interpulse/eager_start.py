"""Eager start of coroutines: run to the first wait without a task, as Python 3.12's eager tasks do."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any


def start_eagerly(work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None] | None:
    """Run ``work`` up to its first wait. Return the rest for the caller to run in a task, or None if it has finished.

    Until the first wait ``work`` runs outside any task, so it must not ask for the current one. Errors raised before
    the first wait are raised here.
    """
    try:
        awaited = work.send(None)
    except StopIteration:
        return None
    return _left(work, awaited)


async def _left(work: Coroutine[Any, Any, None], awaited: Any) -> None:
    await _resumed(work, awaited)


@types.coroutine
def _resumed(work: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    """Connect a task to ``work``, which is already waiting for ``awaited``."""
    try:
        while True:
            try:
                value = yield awaited
            except BaseException as error:  # noqa: BLE001 - a cancellation belongs to ``work``
                awaited = work.throw(error)
            else:
                awaited = work.send(value)
    except StopIteration:
        return
    finally:
        work.close()
