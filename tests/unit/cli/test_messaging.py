"""Parts shared by commands that send or receive: a steady rate, and the warning about messages that are not kept."""

import asyncio
import time
from typing import Any

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.cli.messaging import Pace, warn_if_not_retained
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.model.names import TopicName
from tests.support.stub_web import StubWeb


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


TOPIC = TopicName.parse("a/b/c")
ROOT = "/admin/v2/persistent/a/b/c"


def told(web_url: str | None, capsys: pytest.CaptureFixture[str], topic: TopicName = TOPIC, **flags: str) -> str:
    asyncio.run(warn_if_not_retained(ConnectionSettings.resolve({"webServiceUrl": web_url, **flags}, {}), topic))
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("subscriptions", "retention", "warned"),
    [
        ([], None, True),
        ([], {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}, True),
        ([], {"retentionTimeInMinutes": 0, "retentionSizeInMB": -1}, True),
        ([], {"retentionTimeInMinutes": -1, "retentionSizeInMB": 100}, False),
        (["s"], None, False),
    ],
)
def test_topic_when_nothing_keeps_its_messages_then_the_producer_is_told(
    web: StubWeb,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    subscriptions: list[str],
    retention: Any,
    warned: bool,
) -> None:
    monkeypatch.setattr("interpulse.cli.messaging._WAITED_S", 60)
    web.answer("GET", f"{ROOT}/subscriptions", subscriptions)
    web.answer("GET", f"{ROOT}/retention", retention)
    text = told(web.url, capsys)
    assert text.startswith("Warning: persistent://a/b/c has neither a subscription nor retention: ") == warned
    assert text.count("\n") == warned


@pytest.mark.parametrize("status", [401, 404, 500])
def test_web_service_when_it_refuses_then_there_is_no_warning(
    web: StubWeb, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    web.answer("GET", f"{ROOT}/subscriptions", {"reason": "no"}, status=status)
    assert told(web.url, capsys) == ""


def test_web_service_when_it_is_silent_then_is_not_waited_for(
    web: StubWeb, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.cli.messaging._WAITED_S", 0.1)
    web.say_nothing("GET", f"{ROOT}/subscriptions")
    began = time.monotonic()
    assert told(web.url, capsys) == ""
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("service_url", ["pulsar://elsewhere:6650", "pulsar://localhost:16650"])
def test_web_service_of_an_unknown_cluster_is_not_asked(service_url: str) -> None:
    assert ConnectionSettings.resolve({"brokerServiceUrl": service_url}, {}).paired_admin_url is None


def test_topic_when_not_persistent_then_the_web_service_is_not_asked(
    web: StubWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(web.url, capsys, TopicName.parse("non-persistent://a/b/c")) == ""
    assert web.asked == []
