"""States in which faults meet brokers, seen from outside: by the coroutines that their tasks are in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, Final

from interpulse.broker.live.registry.topic_registry import TopicRegistry
from interpulse.broker.ownership.shared_ownership import SharedOwnership
from interpulse.storage.logs.topic_log import TopicLog
from interpulse.storage.logs.topic_log_store import TopicLogStore
from interpulse.storage.segments.journal import open_log_store
from tests.simulation.nodes import Node

STATES: Final[Mapping[CodeType, str]] = {
    open_log_store.__code__: "recovering",
    TopicLogStore._recovered.__code__: "recovering",
    TopicRegistry._load_now.__code__: "loading",
    TopicLog._roll.__code__: "rolling",
    TopicRegistry._close_failed.__code__: "fenced",
    SharedOwnership._attempt.__code__: "taking over",
}
COLUMNS: Final = ("loading", "rolling", "recovering", "fenced", "taking over", "idle", "down")


def states_of(node: Node) -> set[str]:
    """Return the states of a node: several, if its tasks are in several; idle, if none is in any."""
    if not node.alive:
        return {"down"}
    code = {each for task in asyncio.all_tasks(node.loop) for each in _code_of(task.get_coro())}
    return {STATES[each] for each in code if each in STATES} or {"idle"}


def render(met: Counter[tuple[str, str]]) -> str:
    """Return the table of how often each kind of fault met each state."""
    rows = {kind: [met[kind, state] for state in COLUMNS] for kind in sorted({kind for kind, _ in met})}
    head = f"{'':20}" + "".join(f"{state:>12}" for state in COLUMNS)
    return "\n".join([head, *(f"{kind:20}" + "".join(f"{count:12}" for count in row) for kind, row in rows.items())])


def _code_of(awaited: Any) -> Iterator[CodeType]:
    """Yield the code of a coroutine and of those that it awaits."""
    while awaited is not None:
        code = getattr(awaited, "cr_code", None) or getattr(awaited, "gi_code", None)
        if code is not None:
            yield code
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
