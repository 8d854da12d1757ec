"""Showing an answer again and again."""

import asyncio

import click
import pytest

from interpulse.cli.support.watched import show_watched
from interpulse.model.errors import NotConnected


async def test_answer_when_not_watched_then_is_shown_once() -> None:
    shown: list[int] = []

    async def ask() -> int:
        return 1

    await show_watched(ask, shown.append, watched=False)
    assert shown == [1]


async def test_answer_when_watched_then_is_shown_when_it_changes_until_it_is_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script: list[int | NotConnected] = [1, 1, NotConnected("away"), 2]
    answers, shown = iter(script), list[int]()

    async def ask() -> int:
        answer = next(answers, None)
        if answer is None:
            raise asyncio.CancelledError
        if isinstance(answer, Exception):
            raise answer
        return answer

    await show_watched(ask, shown.append, watched=True, pause_s=0)
    assert shown == [1, 2]
    assert "away" in click.unstyle(capsys.readouterr().err)
