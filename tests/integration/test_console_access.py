"""Who sees and does what in the console: every page and action by every role, read-only or not, and every origin."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from interpulse.console.actions.catalogue import ACTIONS
from interpulse.console.pages.catalogue import PAGES
from interpulse.testing import InProcessBroker
from tests.front_ends import access
from tests.front_ends.access import ROLES, token
from tests.front_ends.brokers import NO_JOB
from tests.integration.console_visits import ACTION_ROWS, PAGE_ROWS
from tests.support.console_browser import PlainBrowser, address
from tests.support.tokens import SECRET

FOREIGN = {
    "another origin": {"Origin": "http://evil.example"},
    "no origin": {"Origin": "null"},
    "another site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "a sibling site": {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
    "a frame of another site": {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "iframe",
    },
}
FOLLOWED_LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
UNLOAD = address("actions/unload-topic", ACTION_ROWS["unload-topic"].fields)


@pytest.fixture(scope="module")
def open_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    """Without authentication."""
    with InProcessBroker(tmp_path_factory.mktemp("open"), NO_JOB) as broker:
        yield broker


@pytest.fixture(scope="module")
def read_only_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    """With the same roles as `token_broker`."""
    directory = tmp_path_factory.mktemp("read-only")
    settings = access.settings(directory) | NO_JOB | {"consoleReadOnly": "true"}
    with InProcessBroker(directory / "data", settings) as broker:
        access.Player(broker.service_url, broker.web_url).prepare()
        yield broker


def by_role(broker: InProcessBroker, role: str) -> PlainBrowser:
    return PlainBrowser(broker.web_url, Authorization=f"Bearer {token(role)}")


def test_every_page_and_action_has_a_row() -> None:
    assert set(PAGE_ROWS) == set(PAGES)
    assert set(ACTION_ROWS) == set(ACTIONS)


@pytest.mark.parametrize("name", PAGE_ROWS)
def test_page_when_visited_by_every_role_then_shows_what_rest_shows(token_broker: InProcessBroker, name: str) -> None:
    row = PAGE_ROWS[name]
    for role in ROLES:
        expected = row.answered if role in row.allowed.split() else row.refused
        for place in (name, f"{name}.json"):
            page = by_role(token_broker, role).get(address(place, row.query))
            assert (role, place, page.status) == (role, place, expected), page.text
    stranger = PlainBrowser(token_broker.web_url)
    assert stranger.get(address(name, row.query)).headers["Location"].startswith("/console/sign-in?next=/console/")
    assert stranger.get(address(f"{name}.json", row.query)).status == 401


@pytest.mark.parametrize("name", ACTION_ROWS)
def test_action_when_asked_for_by_every_role_then_is_done_as_rest_does_it(
    token_broker: InProcessBroker, read_only_broker: InProcessBroker, name: str
) -> None:
    row = ACTION_ROWS[name]
    place = address(f"actions/{name}", row.fields)
    for role in ROLES:
        allowed = role in row.allowed.split()
        browser = by_role(token_broker, role)
        page = browser.get(place)
        assert page.status == 200
        assert f"interpulse-admin {row.command}" in page.text
        assert ('role="alert"' not in page.text, "<button" in page.text) == (allowed, allowed), role
        done = browser.post(place, {"token": page.token if allowed else "0"})
        assert done.status != 401 if allowed else done.status == 403, (role, done.text)
        browser = by_role(read_only_broker, role)
        assert "The console is read-only" in browser.get(place).text
        assert "<button" not in browser.get(place).text


def test_action_when_the_role_may_not_then_the_token_of_the_form_does_not_help(token_broker: InProcessBroker) -> None:
    """A token says that a form was shown to this browser, nothing of what its user may do."""
    browser = by_role(token_broker, "admin")
    sent = browser.get(UNLOAD).token
    browser.headers = {"Authorization": f"Bearer {token('nobody')}"}
    assert browser.post(UNLOAD, {"token": sent}).status == 401


def test_action_when_the_console_becomes_read_only_then_the_token_of_the_form_does_not_help(
    open_broker: InProcessBroker,
) -> None:
    browser = PlainBrowser(open_broker.web_url)
    sent = browser.get(UNLOAD).token
    before = open_broker.app.context.dynamic.config
    open_broker.app.context.dynamic.config = replace(before, console_read_only=True)
    try:
        assert browser.post(UNLOAD, {"token": sent}).status == 403
    finally:
        open_broker.app.context.dynamic.config = before
    assert browser.post(UNLOAD, {"token": sent}).status == 404, "there is no such topic"


@pytest.mark.parametrize("told", FOREIGN)
def test_request_when_it_comes_from_another_site_then_is_refused(open_broker: InProcessBroker, told: str) -> None:
    browser = PlainBrowser(open_broker.web_url)
    token = browser.get(UNLOAD).token
    for page in (
        browser.get("/console/overview", FOREIGN[told]),
        browser.get("/console/overview.json", FOREIGN[told]),
        browser.get(UNLOAD, FOREIGN[told]),
        browser.post(UNLOAD, {"token": token}, FOREIGN[told]),
    ):
        assert page.status == 403


def test_link_of_another_site_when_followed_then_the_page_is_shown_and_nothing_done(
    open_broker: InProcessBroker,
) -> None:
    browser = PlainBrowser(open_broker.web_url)
    assert browser.get("/console/overview", FOLLOWED_LINK).status == 200
    page = browser.get(UNLOAD, FOLLOWED_LINK)
    assert page.status == 200
    assert browser.post(UNLOAD, {"token": page.token}, FOLLOWED_LINK).status == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example", 403), ("evil.example:8080", 403), ("localhost", 200), ("127.0.0.1", 200), ("[::1]:1", 200)],
)
def test_request_when_it_is_meant_for_another_host_then_is_refused(
    open_broker: InProcessBroker, host: str, status: int
) -> None:
    assert PlainBrowser(open_broker.web_url, Host=host).get("/console/overview").status == status


def test_form_when_its_token_is_not_for_it_then_nothing_is_done(open_broker: InProcessBroker) -> None:
    browser, other = PlainBrowser(open_broker.web_url), PlainBrowser(open_broker.web_url)
    token, foreign = browser.get(UNLOAD).token, other.get(UNLOAD).token
    another = browser.get(address("actions/unload-topic", {"topic": "public/default/another"})).token
    for sent in ({}, {"token": ""}, {"token": foreign}, {"token": another}, {"token": "\u2028"}, {"token": "0" * 64}):
        page = browser.post(UNLOAD, sent)
        assert page.status == 403
        assert "nothing was done" in page.text
    browser.cookies.clear()
    assert browser.post(UNLOAD, {"token": token}).status == 403


def test_action_when_done_then_the_log_tells_who_did_what(
    token_broker: InProcessBroker, caplog: pytest.LogCaptureFixture
) -> None:
    browser = by_role(token_broker, "acme-admin")
    place = address("actions/unload-topic", {"topic": access.TOPIC})
    token = browser.get(place).token
    with caplog.at_level(logging.INFO, "interpulse.console"):
        page = browser.post(place, {"token": token})
        browser.post(place, {"token": "0"})
    assert page.status == 303
    told = [record.getMessage() for record in caplog.records if "console action" in record.getMessage()]
    assert told == [
        "console action action=unload-topic call=PUT path=/admin/v2/persistent/acme/app/t/unload role=acme-admin "
        f"address=127.0.0.1 outcome={outcome}"
        for outcome in ("done", "Forbidden")
    ]
    back = browser.get(f"/console/overview?done={page.headers['Location'].rpartition('done=')[2]}")
    assert ACTIONS["unload-topic"].done in back.text


def test_sign_in_when_the_token_is_good_then_the_browser_gets_a_random_cookie(token_broker: InProcessBroker) -> None:
    browser = PlainBrowser(token_broker.web_url)
    place = browser.get("/console/overview?a=b").headers["Location"]
    page = browser.post(browser.get(place).form, {"token": browser.get(place).token, "password": token("nobody")})
    assert (page.status, page.headers["Location"]) == (303, "/console/overview?a=b")
    told = page.headers["Set-Cookie"]
    assert "HttpOnly" in told
    assert "SameSite=Lax" in told
    assert "Path=/console" in told
    assert token("nobody") not in told
    shown = browser.get("/console/overview")
    assert shown.status == 200
    assert ">nobody<" in shown.text
    session = dict(browser.cookies)
    assert browser.post("/console/sign-out", {"token": "0"}).status == 403
    assert browser.post(shown.form, {"token": shown.token}).status == 303
    browser.cookies = session
    assert browser.get("/console/overview").status == 303, "a session that was ended is over, whoever has its cookie"


@pytest.mark.parametrize("password", ["", "nonsense", "e30.e30.", SECRET.hex()])
def test_sign_in_when_the_token_is_bad_then_says_so(token_broker: InProcessBroker, password: str) -> None:
    browser = PlainBrowser(token_broker.web_url)
    page = browser.sign_in(password)
    assert page.status == 401
    assert "does not accept these credentials" in page.text
    assert browser.get("/console/overview").status == 303


@pytest.mark.parametrize(
    "place",
    ["//evil.example/console", "https://evil.example", "/console/%2f%2fevil", "/console/..\\x", "/consoles", "x"],
)
def test_sign_in_when_it_is_to_go_on_elsewhere_then_goes_to_the_console(
    token_broker: InProcessBroker, place: str
) -> None:
    page = PlainBrowser(token_broker.web_url).sign_in(token("admin"), then=place)
    assert page.headers["Location"] == "/console"


def test_sign_in_when_the_form_is_of_another_browser_then_is_refused(token_broker: InProcessBroker) -> None:
    """Else a page of somebody else could sign a visitor in under its own role."""
    page = PlainBrowser(token_broker.web_url).get("/console/sign-in")
    browser = PlainBrowser(token_broker.web_url)
    browser.get("/console/sign-in")
    assert browser.post(page.form, {"token": page.token, "password": token("admin")}).status == 403
