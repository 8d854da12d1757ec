"""Messages in the console: browsed, looked for, saved, followed; no subscription notices."""

from __future__ import annotations

import csv
import http.client
import io
import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.sync import AdminClient, Client
from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import NO_JOB
from tests.support.console_browser import Page, PlainBrowser, address

TOPIC = "persistent://public/default/readings"
RECORD = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}


class Console:
    """A broker with a topic of 60 single messages, a batch of 5, and one that is not of its schema."""

    def __init__(self, broker: InProcessBroker) -> None:
        self.broker = broker
        self.browser = PlainBrowser(broker.web_url)
        self.client = Client(broker.service_url)
        self.admin = AdminClient(broker.web_url)
        schema = SchemaInfo(SchemaType.JSON, json.dumps(RECORD).encode(), {}, "R")
        self.admin.topics.create(TOPIC)
        self.admin.topics.create_subscription(TOPIC, "untouched")
        with self.client.create_producer(TOPIC, batching_enabled=False, schema=schema) as producer:
            for number in range(60):
                producer.send(
                    json.dumps({"n": number}).encode(), key=f"k{number % 3}", properties={"odd": str(number % 2)}
                )
        with self.client.create_producer(TOPIC, batch_delay_ms=10_000, schema=schema) as producer:
            for number in range(60, 65):
                producer.send_async(json.dumps({"n": number}).encode())
            producer.flush()
        with self.client.create_producer(TOPIC, batching_enabled=False, schema=schema) as producer:
            producer.send(b"\x00\xffno JSON", key="<script>alert(1)</script>\u202e")

    def close(self) -> None:
        self.client.close()
        self.admin.close()

    def page(self, place: str = "messages", **query: str) -> Page:
        return self.browser.get(address(place, {"name": TOPIC, **query}))

    def model(self, place: str = "messages", **query: str) -> dict[str, Any]:
        page = self.page(f"{place}.json", **query)
        assert page.status == 200, page.text
        model: dict[str, Any] = json.loads(page.text)
        return model

    def numbers(self, **query: str) -> list[int]:
        return [number_in(each) for each in self.model(**query)["messages"] if not each["content"]["problem"]]


def number_in(message: dict[str, Any]) -> int:
    (number,) = re.findall(r'"n": (\d+)', message["content"]["text"])
    return int(number)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with InProcessBroker(tmp_path_factory.mktemp("messages"), NO_JOB) as broker, closing(Console(broker)) as console:
        yield console


def test_newest_when_nothing_is_asked_then_end_with_the_topic(console: Console) -> None:
    model = console.model()
    assert model["entries"] == 62
    assert [number_in(each) for each in model["messages"][:-1]] == list(range(41, 65))
    last = model["messages"][-1]
    assert last["content"]["problem"].startswith("It is not of its schema JSON: ")
    assert (last["content"]["form"], last["key"]) == ("hex", "<script>alert(1)</script>\u202e")
    assert model["later"] == ""
    assert model["live"].startswith("/console/messages/tail?")


def test_pages_when_followed_from_the_first_then_show_everything_once(console: Console) -> None:
    seen, place = [], address("messages.json", {"name": TOPIC, "from": "earliest"})
    while place:
        model = json.loads(console.browser.get(place).text)
        seen += [each["id"] for each in model["messages"]]
        place = model["later"].replace("/console/messages?", "/console/messages.json?")
    assert len(seen) == len(set(seen)) == 66
    assert [each.partition(":")[2].split(":")[0] for each in seen] == [str(n) for n in range(60)] + ["60"] * 5 + ["61"]


def test_page_when_it_begins_inside_a_batch_then_shows_the_rest_of_it(console: Console) -> None:
    in_batch = next(
        each["id"] for each in console.model()["messages"] if each["batch_size"] == 5 and number_in(each) == 62
    )
    assert console.numbers(**{"from": in_batch}) == [62, 63, 64]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({"from": "earliest", "key": "k1"}, list(range(1, 60, 3))),
        ({"from": "earliest", "property": "odd=1", "key": "k0"}, list(range(3, 60, 6))),
        ({"from": "earliest", "content": '"n": 64'}, [64]),
        ({"from": "earliest", "content": '/"n": 5[0-3]/'}, [50, 51, 52, 53]),
        ({"from": "earliest", "producer": "nobody"}, []),
        ({"content": '/"n": 2$/'}, []),
        ({"content": '"n": 2}'}, [2]),
        ({"time": "0", "content": '"n": 1}'}, [1]),
        ({"time": "2999-01-01T00:00:00Z"}, []),
    ],
)
def test_messages_when_looked_for_then_those_that_fit_are_shown(
    console: Console, query: dict[str, str], numbers: list[int]
) -> None:
    assert console.numbers(**query) == numbers


def test_messages_when_browsed_then_no_subscription_moves_and_none_is_made(console: Console) -> None:
    before = console.admin.topics.stats(TOPIC)["subscriptions"]
    console.page()
    console.page(**{"from": "earliest", "content": "x"})
    after = console.admin.topics.stats(TOPIC)["subscriptions"]
    assert list(before) == list(after) == ["untouched"]
    assert after["untouched"]["msgBacklog"] == before["untouched"]["msgBacklog"] == 62


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"from": "1"}, 400),
        ({"from": "x:y"}, 400),
        ({"from": "-1:0"}, 400),
        ({"from": "1:2:3:4:5"}, 400),
        ({"time": "soon"}, 400),
        ({"content": "/(/"}, 400),
        ({"view": "mp3"}, 400),
        ({"name": "persistent://public/default/absent"}, 404),
        ({"name": "non-persistent://public/default/absent"}, 404),
    ],
)
def test_address_when_it_is_wrong_then_says_so(console: Console, query: dict[str, str], status: int) -> None:
    assert console.page(**query).status == status


def test_message_when_opened_then_everything_is_told_and_nothing_is_markup(console: Console) -> None:
    last = console.model()["messages"][-1]["id"]
    page = console.page("message", id=last)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩" in page.text
    assert "<script>alert" not in page.text
    model = console.model("message", id=last)
    assert (model["id"], model["message"]["size"]) == (last, 9)
    saved, headers = console.browser.get_bytes(address("message/content", {"name": TOPIC, "id": last}))
    assert saved == b"\x00\xffno JSON"
    assert headers["Content-Disposition"].startswith("attachment; filename=")
    assert headers["Content-Type"] == "application/octet-stream"


def test_message_of_a_batch_when_opened_then_the_others_of_its_entry_are_there(console: Console) -> None:
    batch = next(each for each in console.model()["messages"] if each["batch_size"] == 5)
    model = console.model("message", id=batch["id"].rpartition(":")[0])
    assert len(model["siblings"]) == 4


def test_export_when_saved_then_has_every_message_that_fits(console: Console) -> None:
    page = console.page("messages/export", key="k1")
    assert page.headers["Content-Disposition"] == 'attachment; filename="readings.ndjson"'
    rows = [json.loads(line) for line in page.text.splitlines()]
    assert [json.loads(row["content"])["n"] for row in rows] == list(range(1, 60, 3))
    assert {row["form"] for row in rows} == {"JSON"}
    whole = console.page("messages/export", format="csv")
    cells = list(csv.DictReader(io.StringIO(whole.text)))
    assert len(cells) == 66
    assert cells[-1]["problem"].startswith("It is not of its schema")


def test_tail_when_followed_then_shows_what_comes(console: Console) -> None:
    topic = "persistent://public/default/live"
    console.admin.topics.create(topic)
    with closing(http.client.HTTPConnection(console.browser.place, timeout=30)) as connection:
        connection.request("GET", address("messages/tail", {"name": topic, "content": "yes"}))
        answer = connection.getresponse()
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.readline() == b": nothing new\n"
        with console.client.create_producer(topic, batching_enabled=False) as producer:
            for number in range(100):
                producer.send_async(b"yes %d" % number)
            producer.send(b"no")
        told, seen = [], 0
        while seen < 101:
            line = answer.readline()
            if line.startswith(b"data: "):
                told.append(json.loads(line.removeprefix(b"data: ")))
                seen = sum(len(each["messages"]) + each["left_out"] + each["entries_left_out"] for each in told) + 1
    texts = [message["content"] for each in told for message in each["messages"]]
    assert texts[-1] == "yes 99"
    assert "no" not in texts
    assert len(texts) <= 20 * len(told)


def test_tail_when_a_batch_is_larger_than_it_shows_then_sends_its_end_and_counts_the_others(console: Console) -> None:
    topic = "persistent://public/default/live-batches"
    console.admin.topics.create(topic)
    with closing(http.client.HTTPConnection(console.browser.place, timeout=30)) as connection:
        connection.request("GET", address("messages/tail", {"name": topic, "content": "yes"}))
        answer = connection.getresponse()
        assert answer.readline() == b": nothing new\n"
        with console.client.create_producer(topic, batch_delay_ms=10_000) as producer:
            for number in range(50):
                producer.send_async(b"yes %d" % number)
                producer.send_async(b"no")
            producer.flush()
        line = b""
        while not line.startswith(b"data: "):
            line = answer.readline()
    told = json.loads(line.removeprefix(b"data: "))
    assert [each["content"] for each in told["messages"]] == [f"yes {number}" for number in range(30, 50)]
    assert (told["left_out"], told["entries_left_out"]) == (30, 0)


def test_partitioned_topic_when_browsed_then_its_partitions_are_offered(console: Console) -> None:
    topic = "persistent://public/default/parts"
    console.admin.topics.create_partitioned(topic, 2)
    page = console.browser.get(address("messages", {"name": topic}))
    assert page.status == 200
    assert "parts-partition-1" in page.text


def test_messages_when_switched_off_then_are_shown_to_nobody(console: Console) -> None:
    before = console.broker.app.context.dynamic.config
    console.broker.app.context.dynamic.config = replace(before, console_messages_enabled=False)
    try:
        places = ("messages", "messages.json", "messages/export", "messages/tail")
        answers = [console.page(place) for place in places] + [console.page("message", id="0:0")]
    finally:
        console.broker.app.context.dynamic.config = before
    assert [each.status for each in answers] == [403] * 5
