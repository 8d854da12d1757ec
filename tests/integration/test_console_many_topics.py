"""The console of a broker with 100,000 topics: no page holds the event loop, none keeps its visitor waiting."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Final

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.app import BrokerApp
from interpulse.broker.console.pages.catalogue import PAGES
from interpulse.model.names import TopicName
from interpulse.storage.api import Put
from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import NO_JOB
from tests.integration.console_visits import PAGE_ROWS
from tests.support.console_browser import PlainBrowser, address
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TOPICS: Final = 100_000
LOADED: Final = 300
HELD_SECONDS_MAX: Final = 0.02
"""Processor time of one turn. REST's list of all these topics takes 0.7 s."""


class Turns:
    """The processor time of the longest turn of an event loop; other processes on the machine do not count."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = 0.0
        self._ended = False

    def begin(self) -> None:
        self._last = time.thread_time()
        asyncio.get_running_loop().call_soon(self._turn)

    def end(self) -> None:
        self._ended = True

    def _turn(self) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self._last)
        self._last = now
        if not self._ended:
            asyncio.get_running_loop().call_soon(self._turn)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with InProcessBroker(
        tmp_path_factory.mktemp("many"), NO_JOB | {"brokerDeleteInactiveTopicsEnabled": "false"}
    ) as broker:
        broker.call(_create)
        yield broker


async def _create(app: BrokerApp) -> None:
    """Their records, in few commits; some of them are loaded."""
    value = app.stores.layout.topic_records.amended(None)
    for begin in range(0, TOPICS, 5_000):
        names = (f"persistent://public/default/topic-{number:06}" for number in range(begin, begin + 5_000))
        await app.stores.metadata.commit([Put(keys.topic_record(TopicName.parse(name)), value) for name in names])
    for number in range(LOADED):
        await app.registry.open(TopicName.parse(f"persistent://public/default/topic-{number:06}"))


def _visits() -> list[str]:
    queries = {
        "topic": {"name": "persistent://public/default/topic-000001"},
        "door": {"name": "persistent://public/default/topic-099999"},
    }
    places = [address(name, queries.get(name, PAGE_ROWS[name].query)) for name in PAGES]
    return [*places, address("overview", {"text": "topic-0999"}), address("overview", {"page": "30"})]


def test_page_when_there_are_100000_topics_then_the_event_loop_is_never_held(broker: InProcessBroker) -> None:
    browser = PlainBrowser(broker.web_url)
    browser.get("/console/door")  # loads the console
    for place in _visits():
        turns = Turns()
        broker.call(_in_loop(turns.begin))
        page = browser.get(place)
        broker.call(_in_loop(turns.end))
        assert page.status in (200, 404), page.text
        assert turns.longest < HELD_SECONDS_MAX, f"{place}: {turns.longest * 1000:.0f} ms"


def test_search_when_there_are_100000_topics_then_counts_them_in_steps(broker: InProcessBroker) -> None:
    browser, turns = PlainBrowser(broker.web_url), Turns()
    broker.call(_in_loop(turns.begin))

    def counted() -> int:
        model = json.loads(browser.get("/console/overview.json?text=topic-").text)
        return int(model["found"]["topics_total"]) if model["searched"] and model["known"] else 0

    assert until(counted) == TOPICS
    broker.call(_in_loop(turns.end))
    assert turns.longest < HELD_SECONDS_MAX, f"{turns.longest * 1000:.0f} ms"
    page = json.loads(browser.get("/console/overview.json?text=topic-&page=39").text)["page"]
    assert page["rows"][-1] == "persistent://public/default/topic-001999"


def _in_loop(work: object) -> object:
    async def run(app: BrokerApp) -> None:
        work()

    return run
