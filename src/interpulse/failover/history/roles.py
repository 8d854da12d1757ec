"""Properties of roles: fences hold, epochs rise. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from interpulse.failover.history.events import Fence, Release, RoleSeen
from interpulse.failover.history.record import History, Violation
from interpulse.model.ids import LATEST, Position
from interpulse.rules.failover_role import Role


class _Fenced(NamedTuple):
    fence: Fence
    upto: Position


def fenced(history: History) -> Iterator[Violation]:
    """Yield messages that clients have published behind a fence.

    Copies are allowed, and the gaps in which the holder of a fence was away.
    """
    fences = _fences(history)
    for log in history.logs:
        for fence, upto in fences.get((log.site, log.topic), ()):
            for position, _, message, source in log.messages:
                if source is None and fence.position < position <= upto and not _in_gap(fence, position):
                    yield Violation(
                        "fenced", f"{message} at {position} of {log.site} is behind the fence at {fence.position}"
                    )


def _fences(history: History) -> dict[tuple[str, str], list[_Fenced]]:
    """Return the fences of each log, with the position up to which each holds."""
    fences: dict[tuple[str, str], list[_Fenced]] = defaultdict(list)
    for event in history.events:
        if isinstance(event, Fence):
            fences[event.site, event.topic].append(_Fenced(event, LATEST))
        elif isinstance(event, Release) and (held := fences.get((event.site, event.topic))):
            held[-1] = held[-1]._replace(upto=event.position)
    return fences


def _in_gap(fence: Fence, position: Position) -> bool:
    return any(after < position <= upto for after, upto in fence.gaps)


def epochs(history: History) -> Iterator[Violation]:
    """Yield roles that make two sites active in one epoch of a namespace, or one active in an older epoch."""
    active: dict[str, RoleSeen] = {}
    for event in history.events:
        if not isinstance(event, RoleSeen) or event.role != Role.ACTIVE:
            continue
        newest = active.setdefault(event.namespace, event)
        if event.epoch < newest.epoch:
            yield Violation(
                "epochs",
                f"{event.site} is active for {event.namespace} in epoch {event.epoch} at {event.at_ms} ms, "
                f"after {newest.site} in epoch {newest.epoch}",
            )
        elif event.epoch == newest.epoch and event.site != newest.site:
            yield Violation(
                "epochs",
                f"{event.site} and {newest.site} are both active for {event.namespace} in epoch {event.epoch}, "
                f"at {event.at_ms} ms and {newest.at_ms} ms",
            )
        else:
            active[event.namespace] = event
