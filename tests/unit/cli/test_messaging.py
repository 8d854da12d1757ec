"""What ``produce`` and ``consume`` share."""

import asyncio

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.cli.messaging import Pace


async def test_pace_when_unlimited_then_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(seconds: float) -> None:
        raise AssertionError(f"waited {seconds} s")

    monkeypatch.setattr(asyncio, "sleep", refuse)
    pace = Pace(0)
    for _ in range(3):
        await pace.wait()


async def test_pace_when_limited_then_spreads_events_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting takes no time here, so each event has to wait for all the ones before it."""
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    pace = Pace(0.01)
    for _ in range(4):
        await pace.wait()
    assert waits == pytest.approx([100, 200, 300], abs=1)


def test_web_url_when_it_has_the_path_of_requests_then_is_wrong_usage() -> None:
    result = CliRunner().invoke(main, ["produce", "--url", "http://localhost:1/admin/v2", "t", "-m", "x"])
    assert result.exit_code == 2
    assert "omit /admin/v2" in result.stderr
