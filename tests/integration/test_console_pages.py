"""What the pages tell: the model as JSON, and that the page shows it."""

from __future__ import annotations

import html
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from interpulse.console.web import formats
from interpulse.sync import Client
from interpulse.testing import InProcessBroker
from tests.front_ends import access
from tests.front_ends.brokers import NO_JOB
from tests.support.console_browser import PlainBrowser, address
from tests.support.console_scene import HOSTILE, HOSTILE_SUBSCRIPTIONS, Scene, set_scene
from tests.support.waiting import until


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with InProcessBroker(tmp_path_factory.mktemp("pages"), NO_JOB) as broker:
        yield broker


@pytest.fixture(scope="module")
def scene(broker: InProcessBroker) -> Scene:
    return broker.call(set_scene)


@pytest.fixture(scope="module")
def browser(broker: InProcessBroker, scene: Scene) -> PlainBrowser:
    return PlainBrowser(broker.web_url)


def model(browser: PlainBrowser, page: str, **query: str) -> dict[str, Any]:
    """Of a page that knows everything already."""

    def known() -> dict[str, Any] | None:
        found = browser.get(address(f"{page}.json", query))
        assert found.status == 200, found.text
        body: dict[str, Any] = json.loads(found.text)
        return body if body.get("known", True) and body.get("searched", True) else None

    found = until(known)
    assert found is not None
    return found


def test_replication_when_topics_are_held_then_they_stand_first_with_their_remedy(browser: PlainBrowser) -> None:
    found = model(browser, "replication")
    rows = found["page"]["rows"]
    assert [row["state"] for row in rows[:6]] == ["HELD", "HELD", *["DISCONNECTED"] * 4]
    assert rows[0]["topic"] == "persistent://shop/orders/events"
    assert rows[0]["action"]["action"] == "expand-topic"
    assert rows[0]["action"]["fields"] == {"topic": "persistent://shop/orders/events", "partitions": "8"}
    assert rows[1]["action"] is None
    (oslo, tokyo) = found["remotes"]
    assert (oslo["cluster"], oslo["troubled"]) == ("oslo", 4)
    assert (tokyo["states"]["HELD"], tokyo["lag_messages"]) == (2, 93_421)
    assert tokyo["batch"]["phases"][0] == ["copy", 601]
    page = browser.get("/console/replication").text
    assert "6 topics do not get through" in page
    assert "Expand to 8 partitions" in page
    assert (
        address("actions/expand-topic", rows[0]["action"]["fields"])
        .replace("%3A", ":")
        .replace("%2F", "/")
        .replace("&", "&amp;")
        in page
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"state": "HELD"}, {("events", "tokyo"), ("returned", "tokyo")}),
        ({"cluster": "oslo", "text": "PAID"}, {("paid", "oslo")}),
        ({"text": "nothing like it"}, set()),
    ],
)
def test_replication_when_filtered_then_shows_what_matches(
    browser: PlainBrowser, query: dict[str, str], expected: set[tuple[str, str]]
) -> None:
    found = model(browser, "replication", **query)
    assert {(row["topic"].rpartition("/")[2], row["cluster"]) for row in found["page"]["rows"]} == expected
    assert found["matching"] == len(expected)


@pytest.mark.parametrize("query", [{"state": "WELL"}, {"page": "-1"}, {"page": "x"}, {"page": "9" * 30}])
def test_replication_when_asked_for_what_there_is_not_then_says_so(
    browser: PlainBrowser, query: dict[str, str]
) -> None:
    assert browser.get(address("replication", query)).status == 400


def test_replication_when_another_cluster_writes_here_then_says_who(
    broker: InProcessBroker, browser: PlainBrowser
) -> None:
    topic = "persistent://public/default/written-by-rome"
    with Client(broker.service_url) as client:
        producer = client.create_producer(topic, name="pulsar.repl.rome-->standalone")
        producer.send(b"x")
        writers = until(lambda: model(browser, "replication", text="written-by-rome")["writers"])
    assert [(each["topic"], each["cluster"]) for each in writers] == [(topic, "rome")]


def test_topic_when_it_has_subscriptions_then_shows_their_backlog_and_each_policys_level(
    broker: InProcessBroker, browser: PlainBrowser, scene: Scene
) -> None:
    with Client(broker.service_url) as client:
        producer = client.create_producer(str(scene.plain), name=HOSTILE[0])
        for _ in range(3):
            producer.send(b"x")
        found = model(browser, "topic", name=str(scene.plain))
        page = browser.get(address("topic", {"name": str(scene.plain)})).text
    assert {row["name"] for row in found["subscriptions"]} == {"billing", *HOSTILE_SUBSCRIPTIONS}
    assert {row["backlog"] for row in found["subscriptions"]} == {3}
    assert [row["name"] for row in found["producers"]] == [HOSTILE[0]]
    levels = {row["name"]: row["level"] for row in found["policies"]}
    assert levels["messageTTLInSeconds"] == "topic"
    assert levels["replicationClusters"] == "namespace"
    assert levels["retentionPolicies"] == "broker"
    assert {row["state"] for row in found["replication"]} == {"REPLICATING", "DISCONNECTED"}
    assert "Not replicated to oslo" in page
    for name in HOSTILE_SUBSCRIPTIONS:
        assert html.escape(formats.plain(name), quote=False).replace('"', "&#34;").replace("'", "&#39;") in page
    assert "<script>document" not in page
    assert not set(page) & {"\x00", "\x1b", "\u202e", "\u200b", "\ufeff"}


def test_topic_when_it_is_partitioned_then_shows_each_partition_and_what_is_missing(
    broker: InProcessBroker, browser: PlainBrowser, scene: Scene
) -> None:
    found = model(browser, "topic", name=str(scene.partitioned))
    assert (found["kind"], found["partitions"], found["missing"]) == ("partitioned", 4, 0)
    assert [row["name"] for row in found["partition_page"]["rows"]] == [
        str(scene.partitioned.partition(index)) for index in range(4)
    ]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_topic_when_its_name_is_hostile_then_is_found_and_shown(
    browser: PlainBrowser, scene: Scene, number: int
) -> None:
    if number >= len(scene.topics):
        number = 0
    name = str(scene.topics[number])
    assert model(browser, "topic", name=name)["name"] == name
    assert name in model(browser, "overview", text=name)["page"]["rows"]
    assert model(browser, "door", name=name)["ways"][2]["answer"] == "opens the topic"


def test_hostile_names_are_names_of_topics(scene: Scene) -> None:
    assert len(scene.topics) >= len(HOSTILE) - 3


def test_topic_when_there_is_none_then_says_what_asking_for_it_would_do(browser: PlainBrowser) -> None:
    found = model(browser, "topic", name="public/default/none")
    assert (found["kind"], found["total"]) == ("absent", None)
    assert [way["mood"] for way in found["door"]] == ["good", "good", "warn", "warn", "warn"]
    assert model(browser, "overview", text="public/default/none")["page"]["rows"] == [], "and does not create it"
    nowhere = model(browser, "topic", name="public/nowhere/none")
    assert {way["mood"] for way in nowhere["door"]} == {"bad"}
    assert nowhere["policies_refusal"] == "Namespace does not exist"
    assert browser.get(address("topic", {})).status == 400
    assert browser.get(address("topic", {"name": "a b://c"})).status in (400, 412)


def test_rates_when_watched_then_come_as_events(browser: PlainBrowser, scene: Scene) -> None:
    connection = http.client.HTTPConnection(browser.place, timeout=30)
    connection.request("GET", address("topic-rates", {"name": str(scene.plain)}))
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/event-stream"
    lines: list[bytes] = []
    while len(lines) < 3:
        line = answer.readline()
        if line.startswith(b"data: "):
            lines.append(line)
    connection.close()
    samples = [sample for line in lines for sample in json.loads(line[6:])]
    assert [sample["time"] for sample in samples] == sorted(sample["time"] for sample in samples)
    assert samples[-1]["messages_in"] == 0.0


def test_overview_when_something_waits_then_says_so_first(browser: PlainBrowser, scene: Scene) -> None:
    found = model(browser, "overview")
    assert found["healthy"]
    assert found["troubled_total"] == 6
    assert found["troubled"][0]["state"] == "HELD"
    page = browser.get("/console/overview").text
    assert page.index("do not get through") < page.index("messages in")


@pytest.mark.parametrize(
    ("text", "namespaces", "topic"),
    [
        ("shop", ["shop/orders"], "persistent://shop/orders/events"),
        ("EVENTS", [], "persistent://shop/orders/events"),
        ("//shop/orders/paid", [], "persistent://shop/orders/paid"),
    ],
)
def test_overview_when_searched_then_finds_tenants_namespaces_and_topics(
    browser: PlainBrowser, text: str, namespaces: list[str], topic: str
) -> None:
    found = model(browser, "overview", text=text)
    assert found["found"]["namespaces"] == namespaces
    assert topic in found["page"]["rows"]


def test_door_when_a_role_is_named_then_says_what_it_may(token_broker: InProcessBroker) -> None:
    browser = PlainBrowser(token_broker.web_url, Authorization=f"Bearer {access.token('acme-admin')}")
    told = {way["who"]: way for way in model(browser, "door", name=access.TOPIC, role="tprod")["ways"]}
    assert told["Producer"]["mood"] == "good"
    assert told["Consumer"]["mood"] == "bad"
    assert told["Consumer"]["policy"] == "namespace acme/app: permissions"
    other = PlainBrowser(token_broker.web_url, Authorization=f"Bearer {access.token('tprod')}")
    assert other.get(address("door", {"name": access.TOPIC, "role": "admin"})).status == 401
    assert "allowAutoTopicCreation" not in other.get(address("door", {"name": access.TOPIC})).text


def test_overview_when_a_role_has_one_namespace_then_sees_that_alone(token_broker: InProcessBroker) -> None:
    browser = PlainBrowser(token_broker.web_url, Authorization=f"Bearer {access.token('nprod')}")
    found = model(browser, "overview")
    assert found["found"]["namespaces"] == ["acme/app"]
    assert found["broker"] is None
    stranger = PlainBrowser(token_broker.web_url, Authorization=f"Bearer {access.token('other-admin')}")
    assert "acme" not in stranger.get("/console/overview").text
