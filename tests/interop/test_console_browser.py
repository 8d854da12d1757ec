"""A real browser walks every page and every action of the console, among names of somebody who means ill.

With ``CONSOLE_SCREENSHOTS=1`` it makes the pictures of the guide.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from interpulse.console.actions.catalogue import ACTIONS
from interpulse.console.pages.catalogue import DOWNLOADS, PAGES
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from tests.front_ends import access
from tests.front_ends.brokers import NO_JOB
from tests.integration.console_visits import ACTION_ROWS, PAGE_ROWS
from tests.interop.chromium import chromium
from tests.support.console_browser import address
from tests.support.console_scene import HOSTILE, HOSTILE_SUBSCRIPTIONS, Scene, set_scene

pytestmark = [pytest.mark.slow, pytest.mark.interop]

AXE: Final = (Path(__file__).parents[1] / "support" / "axe" / "axe.min.js").read_text()
PICTURES: Final = Path(__file__).parents[2] / "docs" / "howto" / "console"
SERIOUS: Final = ("serious", "critical")
PRESSES_MAX: Final = 400
PICTURE_BYTES_MAX: Final = 250_000
HEIGHTS: Final = {"topic": 1210, "overview": 900, "replication": 900, "confirm": 430}
WATCHED_SECONDS: Final = 75
"""A little more than the minute that rates are of."""

LARGE: Final = 5_000_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    settings = NO_JOB | {"clusterName": "berlin", "brokerDeleteInactiveTopicsEnabled": "false"}
    with InProcessBroker(tmp_path_factory.mktemp("console"), settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def scene(broker: InProcessBroker) -> Scene:
    """With messages of every hostile text, of bytes that are none, and of 5 MB."""
    scene = broker.call(set_scene)
    contents = [*(text.encode() for text in HOSTILE), b"\xff\xfe\x00bad", b"<b>" * (LARGE // 3)]
    with (
        Client(broker.service_url) as client,
        client.create_producer(str(scene.plain), batching_enabled=False) as producer,
    ):
        sent = [
            producer.send(content, key=HOSTILE[number % len(HOSTILE)], properties={HOSTILE[0]: HOSTILE[5]})
            for number, content in enumerate(contents)
        ]
    return replace(scene, messages=tuple(str(each) for each in (sent[0], sent[-2], sent[-1])))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page, and everything about it that must not be."""

    def __init__(self, page: Page, web_url: str) -> None:
        self.page = page
        self.web_url = web_url
        self.faults: list[str] = []
        self.refusals_expected = False
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("request", lambda request: self._on_request(request.url))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))

    def go(self, place: str) -> None:
        answer = self.page.goto(urljoin(self.web_url, place))
        assert answer is not None
        assert answer.status == 200, f"{place}: {answer.status} {answer.text()[-600:]}"
        if self.page.locator("meta[http-equiv=refresh]").count():
            self.page.wait_for_selector("meta[http-equiv=refresh]", state="detached")

    def check(self) -> None:
        """Nothing went wrong so far, and nobody's script has run."""
        assert not self.faults, self.faults
        assert "owned" not in self.page.title()

    def axe(self) -> None:
        """No serious finding of accessibility."""
        session = self.page.context.new_cdp_session(self.page)
        self._evaluate(session, AXE)
        found = self._evaluate(session, "axe.run({resultTypes: ['violations']})")["violations"]
        told = [
            (each["id"], each["help"], [node["html"][:200] for node in each["nodes"][:3]])
            for each in found
            if each["impact"] in SERIOUS
        ]
        session.detach()
        assert not told, f"{self.page.url}: {told}"

    def links(self) -> list[str]:
        """Addresses of the console that this page leads to."""
        found = self.page.eval_on_selector_all("a[href]", "links => links.map(link => link.getAttribute('href'))")
        return [link for link in found if link.startswith("/console/")]

    @staticmethod
    def _evaluate(session: Any, expression: str) -> Any:
        """In the debugger, which the policy of the page does not concern."""
        answer = session.send(
            "Runtime.evaluate",
            {
                "expression": expression,
                "awaitPromise": True,
                "returnByValue": expression != AXE,
                "allowUnsafeEvalBlockedByCSP": True,
            },
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _on_console(self, message: ConsoleMessage) -> None:
        refused = "Failed to load resource" in message.text and self.refusals_expected
        if message.type in ("error", "warning") and not refused:
            self.faults.append(f"{message.type}: {message.text} at {self.page.url}")

    def _on_request(self, url: str) -> None:
        if urlsplit(url).netloc != urlsplit(self.web_url).netloc:
            self.faults.append(f"request to elsewhere: {url}")


@contextmanager
def watched(browser: Browser, broker: InProcessBroker, **options: Any) -> Iterator[Watched]:
    context = browser.new_context(**{"viewport": {"width": 1180, "height": 820}, **options})
    context.set_default_timeout(60_000)
    try:
        page = Watched(context.new_page(), broker.web_url)
        yield page
        page.check()
    finally:
        context.close()


def places(scene: Scene) -> list[str]:
    """Every page, and those that show hostile names."""
    plain = str(scene.plain)
    queries: dict[str, list[dict[str, str]]] = {
        "topic": [{"name": str(name)} for name in (scene.plain, scene.partitioned, *scene.topics)],
        "door": [{}, {"name": str(scene.topics[0])}, {"name": "public/default/none"}],
        "overview": [{}, {"text": HOSTILE[0]}, {"text": "\u202e"}],
        "replication": [{}, {"state": "HELD"}, {"text": HOSTILE[1]}],
        "messages": [
            {"name": plain},
            {"name": plain, "view": "hex", "from": "earliest"},
            {"name": plain, "key": HOSTILE[0]},
        ],
        "message": [{"name": plain, "id": each} for each in scene.messages],
        "subscription": [{"name": plain, "subscription": each} for each in HOSTILE_SUBSCRIPTIONS[:6]],
        "schemas": [{"name": plain}],
        "differences": [{}, {"namespace": "shop/orders"}],
        "doctor": [{}, {"namespace": "shop/orders"}, {"namespace": "public/default"}],
        "broker": [{"origin": "changed"}, {"text": HOSTILE[0]}],
    }
    return [address(name, query) for name in PAGES for query in queries.get(name, [dict(PAGE_ROWS[name].query)])]


def test_every_page_when_walked_then_nothing_of_anybody_runs_and_everything_is_accessible(
    browser: Browser, broker: InProcessBroker, scene: Scene
) -> None:
    with watched(browser, broker) as page:
        links: dict[str, str] = {}
        for place in places(scene):
            page.go(place)
            page.check()
            page.axe()
            links.update({link.partition("?")[0]: link for link in page.links()})
        for path, link in links.items():
            if not path.endswith((".json", *DOWNLOADS)):
                page.go(link)
                page.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_when_it_is_day_or_night_then_have_enough_contrast(
    browser: Browser, broker: InProcessBroker, scene: Scene, scheme: str
) -> None:
    with watched(browser, broker, color_scheme=scheme) as page:
        for place in (
            "replication",
            "overview",
            address("topic", {"name": str(scene.plain)}).removeprefix("/console/"),
        ):
            page.go(f"/console/{place}")
            page.axe()


@pytest.mark.parametrize("javascript", [True, False], ids=["with JavaScript", "without"])
@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_when_taken_then_shows_its_command_and_is_done_or_refused(
    browser: Browser, broker: InProcessBroker, scene: Scene, name: str, javascript: bool
) -> None:
    fields = {**ACTION_ROWS[name].fields}
    if name in ("expand-topic", "create-missed-partitions"):
        fields["topic"] = str(scene.partitioned)
    elif name == "unload-topic":
        fields["topic"] = str(scene.plain)
    with watched(browser, broker, java_script_enabled=javascript) as page:
        page.go(address(f"actions/{name}", fields))
        assert "interpulse-admin" in page.page.inner_text("pre")
        if javascript:
            page.axe()
        page.refusals_expected = True
        page.page.click("main form[method=post] button")
        told = page.page.locator("[role=status]", has_text=ACTIONS[name].done).or_(page.page.locator("[role=alert]"))
        assert told.first.inner_text()


def test_actions_when_their_fields_are_missing_then_are_asked_for(browser: Browser, broker: InProcessBroker) -> None:
    with watched(browser, broker) as page:
        page.go("/console/actions/unload-topic")
        page.axe()
        page.page.fill("#topic", HOSTILE[0])
        page.refusals_expected = True
        page.page.click("main button")
        assert HOSTILE[0] in page.page.inner_text("main")


_HIDE: Final = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
_STATE_OF_CHARTS: Final = "(state) => document.querySelector('[data-state-of=charts]').textContent === state"


def test_topic_when_watched_then_its_charts_are_drawn_while_it_is_seen(
    browser: Browser, broker: InProcessBroker, scene: Scene
) -> None:
    with watched(browser, broker) as page, Client(broker.service_url) as client:
        producer = client.create_producer(str(scene.plain), name=HOSTILE[0])
        page.go(address("topic", {"name": str(scene.plain)}))
        assert page.page.locator(".charts canvas").count() == 3
        producer.send(b"x")
        for hidden, state in ((None, "live"), (True, "paused"), (False, "live")):
            if hidden is not None:
                page.page.evaluate(_HIDE, hidden)
            page.page.wait_for_function(_STATE_OF_CHARTS, arg=state)


def test_page_when_left_open_then_loads_its_part_again_in_place(
    browser: Browser, broker: InProcessBroker, scene: Scene
) -> None:
    with watched(browser, broker) as page:
        page.go("/console/replication")
        with page.page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
            page.page.evaluate("document.querySelector('#live').dataset.before = 'yes'")
        page.page.wait_for_selector("#live:not([data-before]) table")


def test_pages_when_there_is_only_a_keyboard_then_everything_is_reached_and_an_action_done(
    browser: Browser, broker: InProcessBroker, scene: Scene
) -> None:
    with watched(browser, broker) as page:
        for place in (address("topic", {"name": str(scene.partitioned)}), "/console/replication?live=off"):
            page.go(place)
            reached = reached_by_keyboard(page.page)
            wanted = page.page.eval_on_selector_all(
                "a[href], button, input:not([type=hidden]), select, summary",
                "all => all.filter(one => one.checkVisibility()).length",
            )
            assert reached >= wanted, f"{place}: {reached} of {wanted}"
        page.go(address("topic", {"name": str(scene.plain)}))
        press_until(page.page, "Unload")
        page.page.keyboard.press("Enter")
        page.page.wait_for_url("**/actions/unload-topic**")
        press_until(page.page, "Unload topic")
        page.page.keyboard.press("Enter")
        page.page.wait_for_url("**done=unload-topic**")
        assert ACTIONS["unload-topic"].done in page.page.inner_text("main")


_FOCUSED: Final = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  if (!one.dataset.reached) one.dataset.reached = "1";
  return [one.innerText || "", getComputedStyle(one).outlineStyle];
}"""


def reached_by_keyboard(page: Page) -> int:
    """How many elements Tab leads to; each shows that it has the focus."""
    for _ in range(PRESSES_MAX):
        page.keyboard.press("Tab")
        found = page.evaluate(_FOCUSED)
        if found is None:
            break
        assert found[1] != "none", found
    return page.locator("[data-reached]:not([role=region])").count()


def press_until(page: Page, text: str) -> None:
    for _ in range(PRESSES_MAX):
        page.keyboard.press("Tab")
        found = page.evaluate(_FOCUSED)
        if found is not None and found[0] == text:
            return
    raise AssertionError(f"Tab never comes to {text}")


def test_pages_when_there_is_no_javascript_then_show_the_same(
    browser: Browser, broker: InProcessBroker, scene: Scene
) -> None:
    with watched(browser, broker, java_script_enabled=False) as page:
        for place in [*places(scene)[::3], address("topic", {"name": str(scene.plain)})]:
            page.go(place)
        page.go("/console/replication")
        page.page.fill("#text", "events")
        page.page.click("form.inline button")
        assert page.page.locator("tbody tr").count() >= 1
        assert "Expand to 8 partitions" in page.page.inner_text("main")


def test_sign_in_when_a_person_types_a_token_then_they_are_let_in_and_out(
    browser: Browser, token_broker: InProcessBroker
) -> None:
    with watched(browser, token_broker) as page:
        page.go("/console/replication")
        page.axe()
        page.page.fill("#password", access.token("acme-admin"))
        page.page.keyboard.press("Enter")
        page.page.wait_for_url(lambda url: urlsplit(url).path == "/console/replication")
        assert "acme-admin" in page.page.inner_text("header")
        assert page.page.evaluate("document.cookie") == ""
        page.page.click("text=Sign out")
        page.page.wait_for_url(lambda url: urlsplit(url).path == "/console/sign-in")


def test_pictures_of_the_guide(browser: Browser, tmp_path: Path) -> None:
    """Kept where the guide is only if somebody asks for it, and then of a topic that was watched for a while."""
    kept = "CONSOLE_SCREENSHOTS" in os.environ
    directory = PICTURES if kept else tmp_path
    directory.mkdir(exist_ok=True)
    settings = NO_JOB | {"clusterName": "berlin", "brokerDeleteInactiveTopicsEnabled": "false"}
    with InProcessBroker(tmp_path / "data", settings) as calm, Client(calm.service_url) as client:
        scene = calm.call(lambda app: set_scene(app, hostile=False))
        with Traffic(client, str(scene.plain)) as traffic, watched(browser, calm) as page:
            shown = {
                "topic": address("topic", {"name": str(scene.plain)}),
                "overview": "/console/overview",
                "replication": "/console/replication",
                "confirm": address("actions/expand-topic", {"topic": str(scene.partitioned), "partitions": "8"}),
            }
            for name, place in shown.items():
                page.go(place)
                if kept and name == "topic":
                    traffic.wait_for(WATCHED_SECONDS)
                height = HEIGHTS[name]
                page.page.set_viewport_size({"width": 1180, "height": height})
                page.page.screenshot(path=directory / f"{name}.png")
                assert (directory / f"{name}.png").stat().st_size < PICTURE_BYTES_MAX


class Traffic:
    """Some messages each second, most of which are consumed."""

    def __init__(self, client: Client, topic: str) -> None:
        self._producer = client.create_producer(topic)
        self._consumer = client.subscribe(topic, "billing")
        self._ended = threading.Event()
        self._sent = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def wait_for(self, seconds: float) -> None:
        self._ended.wait(seconds)

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            for _ in range(3 + self._sent % 5):
                self._sent += 1
                self._producer.send(b"x" * 120)
                if self._sent % 7:
                    self._consumer.acknowledge(self._consumer.receive())
