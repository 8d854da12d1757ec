"""Bugs of a lookup proxy, which S5 must find."""

from __future__ import annotations

import asyncio
from typing import Any

from interpulse.proxy.lookup.lookup_session import Answers
from interpulse.proxy.lookup.questions import Questions


def owner_kept_past_a_move() -> None:
    """141: a proxy answers each lookup as it did the first time, although the topic has moved."""
    find = Questions.find
    owners: dict[str, Any] = {}

    async def kept(self: Questions, lookup: Any, connection: Any = None) -> Any:
        if lookup.topic not in owners:
            owners[lookup.topic] = await find(self, lookup, connection)
        return owners[lookup.topic]

    Questions.find = kept  # type: ignore[method-assign]


def permit_kept_by_a_client_that_is_gone() -> None:
    """142: a question keeps its permit when its client goes away before the answer."""
    answer = Answers.answer

    async def leaking(self: Answers, *question: Any) -> bytes:
        try:
            return await answer(self, *question)
        except asyncio.CancelledError:
            self._permits.taken += 1
            raise

    Answers.answer = leaking  # type: ignore[assignment, method-assign]
