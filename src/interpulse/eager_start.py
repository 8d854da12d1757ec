"""Running a coroutine up to its first wait without a task, as eager tasks do from Python 3.12 on."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any

__all__ = ["start_eagerly"]


def start_eagerly(work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None] | None:
    """Run ``work`` up to its first wait; the rest of it, to be run in a task, or None if it is done.

    Up to there it runs in no task: it must not ask for its own. An error that it raises up to there is raised here.
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
    """Stand between a task and ``work``, which waits for ``awaited`` already."""
    try:
        while True:
            try:
                value = yield awaited
            except BaseException as error:  # noqa: BLE001 - a cancellation, which is for ``work``
                awaited = work.throw(error)
            else:
                awaited = work.send(value)
    except StopIteration:
        return
    finally:
        work.close()
