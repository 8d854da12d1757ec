"""Something done in between, at a moment that a test chooses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from interpulse.storage.api import Change
from tests.support.memory_storage import MemoryMetadataStore


def right_before_commit_of(
    monkeypatch: pytest.MonkeyPatch, store: MemoryMetadataStore, key: str, act: Callable[[], Awaitable[object]]
) -> None:
    """Do this, once, when everything was read and decided and the first commit that changes ``key`` is about to be."""
    commit, armed = store.commit, True

    async def interleaved(changes: Sequence[Change], expect: Mapping[str, int | None] = {}) -> None:
        nonlocal armed
        if armed and any(each.key == key for each in changes):
            armed = False
            await act()
        await commit(changes, expect)

    monkeypatch.setattr(store, "commit", interleaved)
