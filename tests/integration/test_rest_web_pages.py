"""No web page reaches the broker: every route of the router, with the headers of a browser that shows another site."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.rest.http.call import Route
from interpulse.broker.rest.server import ROUTES
from interpulse.model.operations import Access
from interpulse.testing import InProcessBroker
from tests.support import commands
from tests.support.raw_client import RawClient, entry
from tests.support.rest_broker import RestBroker, rest_broker

FOREIGN: Mapping[str, Mapping[str, str]] = {
    "Origin: http://evil.example": {"Origin": "http://evil.example", "Content-Type": "text/plain"},
    "Origin: null": {"Origin": "null", "Content-Type": "application/x-www-form-urlencoded"},
    "Sec-Fetch-Site: cross-site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "Sec-Fetch-Site: same-site": {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
    "Host: evil.example:8080": {
        "Host": "evil.example:8080",
        "Origin": "http://evil.example:8080",
        "Sec-Fetch-Site": "same-origin",
    },
}
PROGRAM = {"Content-Type": "application/json", "User-Agent": "Pulsar-Java-v5.0.0"}


def paths(route: Route) -> list[str]:
    """Paths that belong to a route, one for each domain of topics."""
    path = re.sub(r"\{(?!domain)\w+\}", "1", route.operation.path)
    return [path.replace("{domain}", domain) for domain in ("persistent", "non-persistent")] if "{" in path else [path]


@pytest.fixture
async def broker() -> AsyncIterator[RestBroker]:
    async with rest_broker() as started:
        yield started


@pytest.fixture
async def http(broker: RestBroker) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(broker.web_url) as session:
        yield session


@pytest.mark.parametrize("told", FOREIGN)
async def test_every_route_when_a_page_of_another_site_calls_then_is_refused(
    told: str, http: aiohttp.ClientSession
) -> None:
    for route in ROUTES:
        for path in paths(route):
            async with http.request(route.operation.method, path, headers=FOREIGN[told], data=b"{}") as answer:
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert "Access-Control-Allow-Origin" not in answer.headers
                if route.operation.permission is Access.OPEN:
                    assert answer.status == (404 if path == "/status.html" else 200), path  # there is no such file
                else:
                    assert (answer.status, route.operation.method, path) == (403, route.operation.method, path)
                    assert (await answer.json())["reason"].startswith(f"{told} ")


async def test_every_route_when_a_program_calls_then_is_not_taken_for_a_page(http: aiohttp.ClientSession) -> None:
    for route in ROUTES:
        for path in paths(route):
            async with http.request(route.operation.method, path, headers=PROGRAM, data=b"{}") as answer:
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert "web page" not in await answer.text(), path


@pytest.mark.parametrize("path", ["/admin/v2/nothing/here", "/", "/admin/v2/clusters"])
async def test_refusal_when_nothing_is_there_then_types_are_not_guessed_either(
    path: str, http: aiohttp.ClientSession
) -> None:
    async with http.delete(path) as answer:
        assert answer.status in (404, 405)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_preflight_when_a_page_asks_whether_it_may_then_it_may_not(http: aiohttp.ClientSession) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "PUT"}
    async with http.options("/admin/v2/persistent/public/default/t", headers=headers) as answer:
        assert answer.status == 405
        assert not [name for name in answer.headers if name.startswith("Access-Control")]


def test_backlog_when_a_page_posts_text_then_stays(tmp_path: Path) -> None:
    """A form in any page can post text to any address, and its browser does not ask before."""
    page = {"Content-Type": "text/plain", "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    with InProcessBroker(tmp_path) as broker, RawClient(broker.service_url) as client:
        client.ask(commands.subscribe(1, 1, "t", "s"))
        client.ask(commands.producer(2, 1, "t"))
        client.ask(commands.send(1, 0, entry(b"kept")))
        topic = f"{broker.web_url}/admin/v2/persistent/public/default/t"

        def skip_all(headers: Mapping[str, str]) -> urllib.request.Request:
            return urllib.request.Request(f"{topic}/subscription/s/skip_all", b"", headers, method="POST")

        def backlog() -> int:
            with urllib.request.urlopen(f"{topic}/stats", timeout=60) as answer:
                return json.load(answer)["subscriptions"]["s"]["msgBacklog"]

        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(skip_all(page), timeout=60)
        assert backlog() == 1
        urllib.request.urlopen(skip_all({}), timeout=60).close()
        assert backlog() == 0


async def test_topic_when_a_page_asks_for_its_partitions_then_is_not_created(http: aiohttp.ClientSession) -> None:
    """A GET is enough to create a topic where that is automatic; an image in a page is enough for a GET."""
    path = "/admin/v2/persistent/public/default/new/partitions?checkAllowAutoCreation=true"
    async with http.get(path, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"}) as answer:
        assert answer.status == 403
    async with http.get("/admin/v2/persistent/public/default") as listed:
        assert await listed.json() == []


async def test_host_when_the_name_is_allowed_then_answers() -> None:
    async with (
        rest_broker(BrokerConfig(web_service_allowed_hosts="pulsar")) as started,
        aiohttp.ClientSession(started.web_url) as http,
        http.get("/admin/v2/clusters", headers={"Host": "pulsar:8080"}) as answer,
    ):
        assert answer.status == 200


async def test_image_of_a_page_over_plain_http_then_creates_no_topic(http: aiohttp.ClientSession) -> None:
    partitions = "/admin/v2/persistent/public/default/pictured/partitions"
    wanted = f"{partitions}?checkAllowAutoCreation=true"
    image = {"User-Agent": "Mozilla/5.0", "Accept": "image/avif,image/webp,*/*;q=0.8"}
    async with http.get(wanted, headers=image) as answer:
        assert answer.status == 403
    async with http.get(partitions, headers=PROGRAM) as answer:
        assert answer.status == 404
    async with http.get(wanted, headers=PROGRAM) as answer:
        assert answer.status == 200
