"""Trying again when somebody else was faster."""

from __future__ import annotations

import pytest

from interpulse.model.errors import MetadataError
from interpulse.storage.api import CommitConflict
from interpulse.storage.cas import until_unchanged


async def test_attempt_is_repeated_until_it_goes_through() -> None:
    tries = []

    async def attempt() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise CommitConflict("/x")
        return "done"

    assert await until_unchanged(attempt) == "done"
    assert len(tries) == 3


async def test_attempt_that_never_goes_through_is_given_up_with_the_key() -> None:
    async def attempt() -> None:
        raise CommitConflict("/x")

    with pytest.raises(MetadataError, match="/x keeps changing"):
        await until_unchanged(attempt)
