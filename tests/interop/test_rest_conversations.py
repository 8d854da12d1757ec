"""The conversations of ``tests/scripts/rest``, held with a real Pulsar: what they say of it is true."""

from __future__ import annotations

import uuid

import pytest

from tests.interop.conftest import RealPulsarFactory
from tests.scripts.rest_player import CONVERSATIONS, play, read_conversation

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_real_pulsar_answers_as_written_down(start_real_pulsar: RealPulsarFactory) -> None:
    real = start_real_pulsar("standalone")
    wrong = []
    for path in CONVERSATIONS:
        unique = uuid.uuid4().hex[:8]
        values = {"tenant": f"demo-{unique}", "cluster": "standalone", "remote": f"west-{unique}"}
        steps = read_conversation(path, values)
        wrong += [f"{path.name}, {each}" for each in play(real.address.web_url, steps, real=True)]
    assert not wrong, "\n".join(wrong)
