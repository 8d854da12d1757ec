"""``interpulse console`` beside a cluster, and a walk through its pages that holds for every kind of broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.sync import AdminClient, Client
from tests.support.console_browser import PlainBrowser, address
from tests.support.standalone_process import SECONDS_MAX, environment

SCHEMA = SchemaInfo(
    SchemaType.JSON,
    json.dumps({"type": "record", "name": "Order", "fields": [{"name": "number", "type": "int"}]}).encode(),
    {},
    "Order",
)


@contextmanager
def console_of(web_url: str, *flags: str) -> Iterator[PlainBrowser]:
    """A browser for the console of a cluster, which runs as a program of its own."""
    line = [sys.executable, "-m", "interpulse.cli", "console", "--admin-url", web_url, "--port", "0", *flags]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    try:
        url = process.stdout.readline().rpartition(": ")[2].strip()
        assert process.stdout.readline() == "ready\n"
        yield PlainBrowser(url)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=SECONDS_MAX) == 0
    finally:
        process.kill()
        process.wait(timeout=SECONDS_MAX)
        process.stdout.close()


def walk(browser: PlainBrowser, service_url: str, web_url: str, namespace: str) -> None:
    """Look at a topic that is made here in every way, and skip its backlog."""
    topic = f"persistent://{namespace}/walked"
    with closing(Client(service_url)) as client, closing(AdminClient(web_url)) as admin:
        admin.topics.create_subscription(topic, "billing")
        with client.create_producer(topic, schema=SCHEMA, batching_enabled=False) as producer:
            for number in range(30):
                producer.send(json.dumps({"number": number}).encode(), key=f"k{number % 2}")

    def model(place: str, **query: str) -> dict[str, Any]:
        assert browser.get(address(place, query)).status == 200
        page = browser.get(address(f"{place}.json", query))
        found: dict[str, Any] = json.loads(page.text)
        return found

    assert topic in model("overview", namespace=namespace)["topics"]["rows"]
    assert [each["name"] for each in model("topic", name=topic)["subscriptions"]] == ["billing"]
    found = model("messages", name=topic, **{"from": "earliest"}, key="k1", content="/[0-9]9}/")["messages"]
    assert [json.loads(each["content"]["text"]) for each in found] == [{"number": 19}, {"number": 29}]
    assert {each["content"]["form"] for each in found} == {"JSON"}
    assert model("message", name=topic, id=found[0]["id"])["message"]["key"] == "k1"
    assert model("schemas", name=topic)["versions"][0]["type"] == "JSON"
    assert model("doctor", namespace=namespace)["findings"] == []
    assert model("subscription", name=topic, subscription="billing")["backlog"] == 30
    for missing in ("replication", "broker", "differences", "actions/adjust-replication"):
        assert browser.get(address(missing, {"namespace": namespace})).status == 404
    place = address("actions/skip-all-messages", {"topic": topic, "subscription": "billing"})
    assert browser.post(place, {"token": browser.get(place).token}).status == 303
    assert model("subscription", name=topic, subscription="billing")["backlog"] == 0
    assert browser.get(address("topic", {"name": f"{topic}-absent"})).status == 404
