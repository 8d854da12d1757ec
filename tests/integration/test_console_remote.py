"""The console of a cluster that is asked over its admin API: here one of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import NO_JOB
from tests.support.console_browser import PlainBrowser, address
from tests.support.remote_console import console_of, walk

AWAY = "http://127.0.0.1:1"
UNLOAD = address("actions/unload-topic", {"topic": "persistent://public/default/t"})


def test_console_when_walked_then_shows_topics_and_does_what_it_is_told(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path, NO_JOB) as broker, console_of(broker.web_url, "--actions") as browser:
        walk(browser, broker.service_url, broker.web_url, "public/default")


def test_console_when_the_cluster_is_away_then_says_so() -> None:
    with console_of(AWAY) as browser:
        assert "The cluster does not answer:" in browser.get(address("overview", {})).text


def test_console_when_no_actions_are_asked_for_then_changes_nothing() -> None:
    with console_of(AWAY) as browser:
        page = browser.get(UNLOAD)
        assert "<button" not in page.text
        assert browser.post(UNLOAD, {"token": "0"}).status == 403


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}]
)
def test_console_when_a_page_of_another_site_asks_then_is_refused(headers: dict[str, str]) -> None:
    with console_of(AWAY) as browser:
        assert PlainBrowser(f"http://{browser.place}", **headers).get("/console/overview").status == 403
