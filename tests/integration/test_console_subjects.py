"""The pages about subscriptions, schemas, differences, disagreements and settings: what they tell, and what they do."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.sync import AdminClient, Client
from interpulse.testing import InProcessBroker
from tests.front_ends.brokers import NO_JOB
from tests.support.console_browser import Page, PlainBrowser, address
from tests.support.waiting import until

_NUMBERS = itertools.count()
TOPIC = "persistent://public/default/orders"


class Console:
    def __init__(self, broker: InProcessBroker) -> None:
        self.broker = broker
        self.browser = PlainBrowser(broker.web_url)
        self.client = Client(broker.service_url)
        self.admin = AdminClient(broker.web_url)

    def close(self) -> None:
        self.client.close()
        self.admin.close()

    def page(self, place: str, **query: str) -> Page:
        return self.browser.get(address(place, query))

    def model(self, place: str, **query: str) -> dict[str, Any]:
        page = self.page(f"{place}.json", **query)
        assert page.status == 200, page.text
        assert self.page(place, **query).status == 200
        model: dict[str, Any] = json.loads(page.text)
        return model

    def act(self, action: str, **fields: str) -> Page:
        """Confirm it, as the form does."""
        place = address(f"actions/{action}", fields)
        return self.browser.post(place, {"token": self.browser.get(place).token})


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with InProcessBroker(tmp_path_factory.mktemp("pages"), NO_JOB) as broker, closing(Console(broker)) as console:
        yield console


@pytest.fixture
def topic(console: Console, request: pytest.FixtureRequest) -> str:
    """One of the test's own, with ten messages and a subscription that had three and acknowledged the second."""
    name = f"{TOPIC}-{request.node.name.partition('[')[0]}-{next(_NUMBERS)}"
    console.admin.topics.create_subscription(name, "billing")
    with console.client.create_producer(name, batching_enabled=False) as producer:
        for number in range(10):
            producer.send(b"%d" % number)
    with console.client.subscribe(name, "billing", receiver_queue_size=3) as consumer:
        received = [consumer.receive(timeout_ms=30_000) for _ in range(3)]
        consumer.acknowledge(received[1])
    return name


def subscription(console: Console, topic: str) -> dict[str, Any]:
    return console.model("subscription", name=topic, subscription="billing")


def test_subscription_when_shown_then_tells_gaps_and_what_waits(console: Console, topic: str) -> None:
    model = subscription(console, topic)
    (part,) = model["parts"]
    assert (model["backlog"], model["kind"], model["consumers"], part["gap_count"]) == (9, "Exclusive", [], 1)
    assert model["browse_from"]
    assert model["dead_letters"]["topic"] == f"{topic}-billing-DLQ"
    assert model["dead_letters"]["messages"] is None


def test_subscription_when_its_dead_letters_exist_then_says_how_to_publish_them_again(
    console: Console, topic: str
) -> None:
    letters = f"{topic}-billing-DLQ"
    with console.client.create_producer(letters) as producer:
        producer.send(b"x")
    assert subscription(console, topic)["dead_letters"]["messages"] == 1
    page = console.page("subscription", name=topic, subscription="billing")
    assert f"interpulse republish {letters} {topic}" in page.text


@pytest.mark.parametrize(
    ("action", "fields", "backlog"),
    [
        ("skip-messages", {"count": "2"}, 7),
        ("skip-all-messages", {}, 0),
        ("reset-to-time", {"time": "1d"}, 10),
        ("reset-to-position", {"position": "FIRST"}, 10),
    ],
)
def test_action_when_confirmed_then_moves_the_subscription(
    console: Console, topic: str, action: str, fields: dict[str, str], backlog: int
) -> None:
    if "position" in fields:
        ledger = console.admin.topics.internal_stats(topic)["ledgers"][0]["ledgerId"]
        fields = {"position": f"{ledger}:0"}
    done = console.act(action, topic=topic, subscription="billing", **fields)
    assert done.status == 303, done.text
    assert console.browser.get(done.headers["Location"]).status == 200
    assert subscription(console, topic)["backlog"] == backlog


def test_subscription_when_deleted_then_is_gone(console: Console, topic: str) -> None:
    assert console.act("delete-subscription", topic=topic, subscription="billing").status == 303
    assert console.page("subscription", name=topic, subscription="billing").status == 404


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("skip-messages", {"count": "0"}),
        ("skip-messages", {"count": "-1"}),
        ("skip-messages", {"count": "many"}),
        ("expire-messages", {"time": "1y"}),
        ("reset-to-position", {"position": "soon"}),
        ("force-partition-count", {"partitions": "99999999999"}),
    ],
)
def test_action_when_a_value_is_wrong_then_is_not_even_shown(
    console: Console, action: str, fields: dict[str, str]
) -> None:
    page = console.page(f"actions/{action}", topic=TOPIC, subscription="billing", **fields)
    assert page.status == 400


def record(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


NUMBER = {"name": "number", "type": "int"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}


def test_schemas_when_shown_then_tell_what_changed_and_try_another(console: Console, topic: str) -> None:
    for definition in (record(NUMBER), record(NUMBER, NOTE)):
        console.admin.schemas.upload(topic, SchemaInfo(SchemaType.AVRO, definition.encode(), {}, "Order"))
    model = console.model("schemas", name=topic)
    assert [each["number"] for each in model["versions"]] == [1, 0]
    assert (model["older"], model["newer"], model["trial"]["compatible"]) == (0, 1, None)
    assert {line["mark"] for line in model["diff"]} == {"+", " "}
    tried = {"type": "AVRO", "definition": record(NUMBER, {"name": "wrong", "type": "string"})}
    place = address("schemas", {"name": topic})
    assert "Incompatible. It fails the topic's strategy FULL." in console.browser.post(place, tried).text
    fits = {"type": "AVRO", "definition": record(NUMBER)}
    assert "Compatible. The strategy in force is FULL." in console.browser.post(place, fits).text
    broken = {"type": "AVRO", "definition": "{"}
    assert 'role="status">Incompatible: ' in console.browser.post(place, broken).text
    assert [each["number"] for each in console.model("schemas", name=topic)["versions"]] == [1, 0]
    assert console.act("delete-schema", topic=topic).status == 303


def test_schemas_of_no_topic_when_asked_for_then_are_not_found(console: Console) -> None:
    assert console.page("schemas", name=f"{TOPIC}-absent").status == 404


def test_doctor_when_partitions_are_missing_then_offers_what_repairs_them(console: Console) -> None:
    console.admin.namespaces.create("public/ill")
    console.admin.topics.create_partitioned("persistent://public/ill/broken", 3)
    healthy = {"examined": 4, "findings": []}
    until(lambda: healthy.items() <= console.model("doctor", namespace="public/ill").items())
    console.admin.topics.delete("persistent://public/ill/broken-partition-1", force=True)
    (finding,) = until(lambda: console.model("doctor", namespace="public/ill")["findings"])
    assert (finding["topic"], finding["kind"]) == ("persistent://public/ill/broken", "missing partitions")
    (repair,) = finding["repairs"]
    assert repair["action"] == "create-missed-partitions"
    assert console.act(repair["action"], **repair["fields"]).status == 303
    model = console.model("doctor", namespace="public/ill")
    assert (model["findings"], model["known"]) == ([], model["examined"] == 4), "what was found before is forgotten"
    until(lambda: healthy.items() <= console.model("doctor", namespace="public/ill").items())


def test_doctor_when_no_namespace_is_chosen_then_asks_for_one(console: Console) -> None:
    assert console.model("doctor") == {
        "namespace": "", "known": True, "age_seconds": 0.0,
        "examined": 0, "findings": [], "left_out": 0, "unreadable": [], "unanswered": None,
    }  # fmt: skip


def test_settings_when_one_is_changed_then_its_origin_is_told(console: Console) -> None:
    key = "defaultNumPartitions"

    def shown() -> dict[str, Any]:
        (setting,) = [each for each in console.model("broker", text=key)["settings"] if each["key"] == key]
        return dict(setting)

    assert (shown()["value"], shown()["origin"], shown()["dynamic"]) == ("1", "default", True)
    assert console.act("update-dynamic-config", key=key, value="7").status == 303
    assert (shown()["value"], shown()["origin"]) == ("7", "dynamic")
    assert key in {each["key"] for each in console.model("broker", origin="dynamic")["settings"]}
    assert console.act("delete-dynamic-config", key=key).status == 303
    assert shown()["origin"] == "default"
    started = {each["key"]: each["origin"] for each in console.model("broker", origin="changed")["settings"]}
    assert started["dataDir"] == "start"


def test_broker_when_shown_then_tells_what_its_disk_holds(console: Console, topic: str) -> None:
    assert console.model("broker")["writes"]["entries"] >= 10
    held = until(lambda: (console.model("broker")["holdings"] or {}).get("topics", 0))
    assert held >= 1, topic
