"""The conversations of ``tests/scripts/rest``, held with our broker in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.scripts.rest_player import CONVERSATIONS, play, read_conversation
from tests.support.rest_broker import rest_broker

VALUES = {"tenant": "demo", "cluster": "standalone", "remote": "west"}


@pytest.mark.parametrize("path", CONVERSATIONS, ids=lambda path: path.stem)
async def test_conversation(path: Path) -> None:
    steps = read_conversation(path, VALUES)
    async with rest_broker() as broker:
        wrong = await asyncio.to_thread(play, broker.web_url, steps, real=False)
    assert not wrong, "\n".join(wrong)
