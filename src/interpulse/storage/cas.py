"""Compare and set: a step that reads, decides and commits is repeated after a conflict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeVar

from interpulse.model.errors import MetadataError
from interpulse.storage.api import CommitConflict, MetadataStore, Put

T = TypeVar("T")

# Each lost race means that another commit went through, so a burst of callers on one key needs one attempt each.
_ATTEMPTS_MAX: Final = 1000
_NUMBERS: Final = "/counters/sequential"


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]], *, raised_for: Collection[str] = ()) -> T:
    """Run ``attempt``, which commits under the versions it read, until it succeeds without a `CommitConflict`.

    A conflict of a key in ``raised_for`` is raised. Raise MetadataError after a bounded number of attempts.
    """
    for _ in range(_ATTEMPTS_MAX):
        try:
            return await attempt()
        except CommitConflict as conflict:
            if conflict.key in raised_for:
                raise
            key = conflict.key
    raise MetadataError(f"{key} keeps changing; gave up after {_ATTEMPTS_MAX} attempts")


async def advance_counter(store: MetadataStore, key: str, count: int, *, start: int) -> int:
    """Add ``count`` to a stored counter that begins at ``start``, and return the value before. Durable on return."""

    async def attempt() -> int:
        stored = await store.get(key)
        before = int(stored.value) if stored else start
        await store.commit([Put(key, str(before + count).encode())], {key: stored.version if stored else None})
        return before

    return await retry_on_conflict(attempt)


async def create_numbered(store: MetadataStore, prefix: str, value: bytes) -> str:
    """Create a sequential key in a store that has no numbers of its own: one counter serves all keys."""
    number = await advance_counter(store, _NUMBERS, 1, start=0)
    key = f"{prefix}{number:010d}"
    await store.commit([Put(key, value, ephemeral=True)], {key: None})
    return key
