"""The conversations of ``tests/scripts/rest``, held with a real Pulsar: what they say of it is true."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from tests.interop.conftest import RealPulsarFactory
from tests.scripts.rest_player import CONVERSATIONS, play, read_conversation
from tests.support.rest_client import call
from tests.support.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_real_pulsar_answers_as_written_down(start_real_pulsar: RealPulsarFactory, tmp_path: Path) -> None:
    file = tmp_path / "in-rotation"
    real = start_real_pulsar("standalone", {"statusFilePath": str(file)})
    assert _status_page(real.address.web_url) == (404, None)
    file.touch()  # a real one keeps an answer for a second, and repeats a refusal as 503
    assert until(lambda: _status_page(real.address.web_url)[1]) == "OK"
    wrong = []
    for path in CONVERSATIONS:
        unique = uuid.uuid4().hex[:8]
        values = {"tenant": f"demo-{unique}", "cluster": "standalone", "remote": f"west-{unique}"}
        steps = read_conversation(path, values)
        wrong += [f"{path.name}, {each}" for each in play(real.address.web_url, steps, real=True)]
    assert not wrong, "\n".join(wrong)


def _status_page(web_url: str) -> tuple[int, str | None]:
    """As this broker's, but for the page that a refusal comes with."""
    reply = asyncio.run(call(web_url, "GET", "/status.html"))
    return reply.status, reply.body.decode() if reply.headers["Content-Type"] == "text/plain" else None
