"""Compare-and-set is tried again after a lost race."""

from __future__ import annotations

import asyncio

import pytest

from interpulse.model.errors import MetadataError
from interpulse.storage.api import CommitConflict
from interpulse.storage.cas import advance_counter, retry_on_conflict
from tests.support.memory_storage import MemoryMetadataStore


async def test_attempt_is_repeated_until_it_goes_through() -> None:
    tries = []

    async def attempt() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise CommitConflict("/x")
        return "done"

    assert await retry_on_conflict(attempt) == "done"
    assert len(tries) == 3


async def test_attempt_that_never_goes_through_is_given_up_with_the_key() -> None:
    async def attempt() -> None:
        raise CommitConflict("/x")

    with pytest.raises(MetadataError, match="/x keeps changing"):
        await retry_on_conflict(attempt)


async def test_conflict_of_a_key_that_the_caller_expects_is_raised() -> None:
    async def attempt() -> None:
        raise CommitConflict("/x")

    with pytest.raises(CommitConflict):
        await retry_on_conflict(attempt, raised_for={"/x": 3})


async def test_counter_that_many_advance_at_once_gives_each_its_own_numbers() -> None:
    store = MemoryMetadataStore()
    given = await asyncio.gather(*(advance_counter(store, "/counter", 10, start=1) for _ in range(20)))
    assert sorted(given) == list(range(1, 201, 10))
    assert await advance_counter(store, "/counter", 1, start=1) == 201
