"""A broker with 100,000 topics in one namespace: no page of the console and no long answer holds its event loop."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from interpulse.broker import metadata_paths as keys
from interpulse.broker.app import BrokerApp
from interpulse.broker.replication.remote_topics import RemoteState, _Pair
from interpulse.console.pages.catalogue import PAGES
from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.names import PUBLIC_DEFAULT, TopicName
from interpulse.storage.api import Put
from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import NO_JOB
from tests.integration.console_visits import PAGE_ROWS
from tests.support.console_browser import PlainBrowser, address
from tests.support.stub_web import StubWeb, passed_on
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TOPICS: Final = 100_000
LOADED: Final = 300
HELD: Final = 77_777
HELD_SECONDS_MAX: Final = 0.1
"""Processor time of one turn: five times the aim. Work over 100,000 topics in one turn takes longer."""
REMOTES: Final = ("standalone", "west")
COMPARED: Final = "north"
"""A cluster that is this one: its namespace has as many topics."""
ELSEWHERE: Final = "south"
"""The same, but for its topics: it has as many others."""
CONTRARY: Final = "contrary"
"""The same, but each of its topics is partitioned."""


ALLOWED: Final = (*REMOTES, COMPARED, ELSEWHERE, CONTRARY)


class Turns:
    """The processor time of the longest turn of an event loop; other processes on the machine do not count."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = 0.0
        self._collecting = 0.0
        self._ended = False

    def begin(self) -> None:
        self._thread = threading.get_ident()
        gc.callbacks.append(self._collection)
        self._last = time.thread_time()
        asyncio.get_running_loop().call_soon(self._turn)

    def end(self) -> None:
        self._ended = True
        gc.callbacks.remove(self._collection)

    def _collection(self, phase: str, info: dict[str, int]) -> None:
        """Collecting garbage takes the longer, the more the whole process has: it is not what a page does."""
        now = time.thread_time()
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting = now
        else:
            self._last += now - self._collecting

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
        broker.call(_replicate)
        listed = "/admin/v2/persistent/public/default"
        others = [f"persistent://public/default/other-{number:06}" for number in range(TOPICS)]
        counts = {f"persistent://public/default/topic-{number:06}": 2 for number in range(TOPICS)}
        with (
            _other(broker, ELSEWHERE, listed, others),
            _other(broker, CONTRARY, f"{listed}/partitioned", counts),
        ):
            broker.admin.tenants.update("public", TenantInfo(allowed_clusters=ALLOWED))
            yield broker


@contextmanager
def _other(broker: InProcessBroker, cluster: str, path: str, answer: object) -> Iterator[None]:
    """A cluster that answers as this one, but for one path."""
    with StubWeb(otherwise=lambda asked: passed_on(asked, broker.web_url)) as other:
        other.answer("GET", path, answer)
        broker.admin.clusters.create(cluster, ClusterData(service_url=other.url))
        yield


async def _create(app: BrokerApp) -> None:
    """Their records, in few commits; some of them are loaded."""
    value = app.parts.base.stores.layout.topic_records.amended(None)
    for begin in range(0, TOPICS, 5_000):
        names = (f"persistent://public/default/topic-{number:06}" for number in range(begin, begin + 5_000))
        await app.parts.base.stores.metadata.commit(
            [Put(keys.topic_record(TopicName.parse(name)), value) for name in names]
        )
    for number in range(LOADED):
        await app.registry.open(TopicName.parse(f"persistent://public/default/topic-{number:06}"))


async def _replicate(app: BrokerApp) -> None:
    """All are replicated, and were looked for over there; one is held."""
    await app.parts.replication.remote_topics.stop()
    for cluster in ("west", COMPARED):
        await app.context.clusters.create(
            cluster, ClusterData(service_url=app.web_url, broker_service_url=app.service_url)
        )
    change = {"replication_clusters": REMOTES, "allowed_clusters": ALLOWED}
    await app.context.namespaces.update_policies(PUBLIC_DEFAULT, lambda old: old.changed(**change))
    for number in range(TOPICS):
        name = TopicName.parse(f"persistent://public/default/topic-{number:06}")
        state = RemoteState(1, reason="because" if number == HELD else None, state="HELD", ready=number != HELD)
        app.parts.replication.remote_topics._pairs[name] = {"west": _Pair(name, "west", state, asyncio.Event())}


@contextmanager
def _watched(broker: InProcessBroker, what: str) -> Iterator[None]:
    """The event loop is not held meanwhile."""
    turns = Turns()
    broker.call(_in_loop(turns.begin))  # type: ignore[arg-type]
    yield
    broker.call(_in_loop(turns.end))  # type: ignore[arg-type]
    assert turns.longest < HELD_SECONDS_MAX, f"{what}: {turns.longest * 1000:.0f} ms"


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
        with _watched(broker, place):
            page = browser.get(place)
        assert page.status in (200, 404), page.text


@pytest.mark.parametrize(
    ("place", "query", "expected"),
    [
        ("replication", {}, {"matching": TOPICS}),
        ("doctor", {"namespace": "public/default"}, {"examined": TOPICS, "findings": []}),
        ("differences", {"namespace": "public/default", "clusters": COMPARED}, {"outcome": "READY"}),
        ("differences", {"namespace": "public/default", "clusters": ELSEWHERE}, {"outcome": "READY"}),
        ("differences", {"namespace": "public/default", "clusters": CONTRARY}, {"outcome": "CONFLICT"}),
    ],
)
def test_look_at_100000_topics_when_it_goes_on_behind_a_page_then_the_event_loop_is_never_held(
    broker: InProcessBroker, place: str, query: dict[str, str], expected: dict[str, Any]
) -> None:
    browser = PlainBrowser(broker.web_url)
    browser.get("/console/door")  # loads the console

    def known() -> dict[str, Any] | None:
        page = browser.get(address(f"{place}.json", query))
        assert page.status == 200, page.text
        model: dict[str, Any] = json.loads(page.text)
        return model if model["known"] else None

    with _watched(broker, place):
        model = until(known)
    assert model is not None
    if query.get("clusters") == ELSEWHERE:
        assert [each["only_there_total"] for each in model["clusters"]] == [TOPICS]
    if query.get("clusters") == CONTRARY:
        assert model["page"]["total"] == TOPICS
    assert {name: model[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("path", "marker", "times"),
    [
        ("/admin/v2/namespaces/public/default/replication/status", b'"cluster": "west"', TOPICS),
        ("/admin/v2/persistent/public/default", b"/topic-", TOPICS),
        ("/admin/v2/namespaces/public/default/topics", b"/topic-", TOPICS),
        ("/metrics", b'interpulse_replication_topics{cluster="standalone",remote="west",state="HELD"} 1\n', 1),
    ],
)
def test_answer_about_100000_topics_when_it_is_made_then_the_event_loop_is_never_held(
    broker: InProcessBroker, path: str, marker: bytes, times: int
) -> None:
    with _watched(broker, path):
        content, _ = PlainBrowser(broker.web_url).get_bytes(path)
    assert content.count(marker) == times


def test_search_when_there_are_100000_topics_then_counts_them_in_steps(broker: InProcessBroker) -> None:
    browser = PlainBrowser(broker.web_url)

    def counted() -> int:
        model = json.loads(browser.get("/console/overview.json?text=topic-").text)
        return int(model["found"]["topics_total"]) if model["searched"] and model["known"] else 0

    with _watched(broker, "search"):
        assert until(counted) == TOPICS
    page = json.loads(browser.get("/console/overview.json?text=topic-&page=39").text)["page"]
    assert page["rows"][-1] == "persistent://public/default/topic-001999"


def _in_loop(work: Callable[[], object]) -> object:
    async def run(app: BrokerApp) -> None:
        work()

    return run
