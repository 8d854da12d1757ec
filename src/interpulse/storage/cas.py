"""Doing a read-decide-commit step again when somebody else was faster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from interpulse.model.errors import MetadataError
from interpulse.storage.api import CommitConflict

__all__ = ["until_unchanged"]

T = TypeVar("T")

# Each lost race means that somebody else's commit went through, so a burst of callers on one key needs one round each.
_ATTEMPTS_MAX: Final = 1000


async def until_unchanged(attempt: Callable[[], Awaitable[T]]) -> T:
    """Run ``attempt``, which reads, decides and commits under the versions it read, until no `CommitConflict` ends it.

    Raises MetadataError if that does not happen within a bounded number of rounds.
    """
    for _ in range(_ATTEMPTS_MAX):
        try:
            return await attempt()
        except CommitConflict as conflict:
            key = conflict.key
    raise MetadataError(f"{key} keeps changing; gave up after {_ATTEMPTS_MAX} attempts")
