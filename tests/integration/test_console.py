"""What holds for every address of the console."""

from __future__ import annotations

import re
from collections.abc import Iterator

import aiohttp
import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.console.host import ROOT
from interpulse.console.pages.catalogue import PAGES
from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import NO_JOB
from tests.integration.console_visits import PAGE_ROWS
from tests.support.console_browser import PlainBrowser, address
from tests.support.rest_broker import rest_broker

INLINE = re.compile(r"<script(?![^>]*\bsrc=)|<style|\son[a-z]+\s*=|\sstyle\s*=|javascript:", re.IGNORECASE)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainBrowser]:
    with InProcessBroker(tmp_path_factory.mktemp("console"), NO_JOB) as broker:
        yield PlainBrowser(broker.web_url)


@pytest.mark.parametrize("name", PAGES)
def test_page_when_visited_then_has_nothing_inline_and_every_header(browser: PlainBrowser, name: str) -> None:
    for place in (name, f"{name}.json"):
        page = browser.get(address(place, PAGE_ROWS[name].query))
        policy = page.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["Cache-Control"] == "no-store"
        assert not INLINE.search(page.text)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/console", 303),
        ("GET", "/console/", 303),
        ("GET", "/console/nothing", 404),
        ("GET", "/console/nothing.json", 404),
        ("GET", "/console/overview/x", 404),
        ("GET", "/console/actions/nothing", 404),
        ("GET", "/console/static/nothing.js", 404),
        ("GET", "/console/static/../site.py", 404),
        ("GET", "/console/static/vendored.json", 404),
        ("GET", "/consoles", 404),
        ("POST", "/console/overview", 405),
        ("POST", "/console/actions/unload-topic", 400),
        ("PUT", "/console/overview", 405),
        ("DELETE", "/console/overview", 405),
        ("HEAD", "/console/overview", 200),
        ("GET", "/console/actions/unload-topic?topic=%ff", 400),
        ("GET", "/console/actions/unload-topic?topic=a%00b/c", 400),
        ("GET", "/console/overview?" + "&".join(f"a{n}=" for n in range(60)), 400),
    ],
)
def test_address_when_it_is_asked_for_then_is_answered(
    browser: PlainBrowser, method: str, path: str, status: int
) -> None:
    page = browser.request(method, path)
    assert page.status in (status, 412 if status == 400 else status), page.text


def test_form_when_it_is_huge_then_is_refused(browser: PlainBrowser) -> None:
    assert browser.post("/console/actions/unload-topic", {"token": "x" * 100_000}).status == 413


def test_static_file_when_its_address_has_its_mark_then_is_kept_by_browsers(browser: PlainBrowser) -> None:
    page = browser.get("/console/overview").text
    for path in re.findall(rf'(?:src|href)="({ROOT}/static/[^"]+)"', page):
        found = browser.get(path)
        assert found.status == 200
        assert "immutable" in found.headers["Cache-Control"]


@pytest.mark.parametrize(
    ("setting", "status"),
    [({"console_enabled": "false"}, 404), ({"console_enabled": "auto"}, 200), ({"console_enabled": "true"}, 200)],
)
async def test_console_when_turned_off_then_says_how_to_turn_it_on(setting: dict[str, str], status: int) -> None:
    async with (
        rest_broker(BrokerConfig(**setting)) as broker,  # type: ignore[arg-type]
        aiohttp.request("GET", f"{broker.web_url}/console") as answer,
    ):
        assert answer.status == status
        assert status == 200 or "consoleEnabled" in await answer.text()


async def test_console_when_its_extra_is_missing_then_says_so_at_the_start_and_to_who_looks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("interpulse.broker.console_host.extra_installed", lambda: False)
    sentence = "the console needs its extra: pip install 'interpulse[console]', or '.[console]' in a checkout"
    with caplog.at_level("INFO", "interpulse.broker.console_host"):
        async with rest_broker() as broker, aiohttp.request("GET", f"{broker.web_url}/console/overview") as answer:
            assert (answer.status, await answer.text()) == (404, f"{sentence}\n")
    assert [record.getMessage() for record in caplog.records] == [f"no console reason={sentence}"]


async def test_broker_when_it_stops_then_does_not_wait_for_who_watches() -> None:
    async with rest_broker() as broker, aiohttp.ClientSession(broker.web_url) as http:
        async with http.put("/admin/v2/persistent/public/default/watched") as created:
            assert created.status == 204
        async with http.get("/console/topic-rates?name=public/default/watched") as stream:
            assert await stream.content.readline() == b": begins\n"
            await broker.app.stop()
            async for _ in stream.content:  # it ends
                pass
