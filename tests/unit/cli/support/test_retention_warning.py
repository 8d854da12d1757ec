"""The warning that a topic keeps no messages, and when it is left out."""

import asyncio
import time
from typing import Any

import pytest

from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.cli.support.retention_warning import warn_if_not_retained
from interpulse.model.names import TopicName
from tests.support.stub_web import StubWeb

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
    monkeypatch.setattr("interpulse.cli.support.retention_warning._WAITED_S", 60)
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
    monkeypatch.setattr("interpulse.cli.support.retention_warning._WAITED_S", 0.1)
    web.say_nothing("GET", f"{ROOT}/subscriptions")
    began = time.monotonic()
    assert told(web.url, capsys) == ""
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("service_url", ["pulsar://elsewhere:6650", "pulsar://localhost:16650"])
def test_web_service_when_it_is_not_known_to_be_of_the_same_cluster_then_is_not_asked(service_url: str) -> None:
    assert ConnectionSettings.resolve({"brokerServiceUrl": service_url}, {}).paired_admin_url is None


def test_topic_when_not_persistent_then_the_web_service_is_not_asked(
    web: StubWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(web.url, capsys, TopicName.parse("non-persistent://a/b/c")) == ""
    assert web.asked == []
