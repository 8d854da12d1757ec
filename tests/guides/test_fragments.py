"""The Python fragments of pages that show the client: run in order, in one program with what they take for granted."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from interpulse.client import (
    AutoFailover,
    Client,
    ControlledFailover,
    Credentials,
    DeadLetterPolicy,
    Site,
    SiteChange,
)
from interpulse.model.ids import EARLIEST
from interpulse.testing import InProcessBroker
from tests.guides.pages import HOWTO, blocks_of


async def run(page: str, names: dict[str, Any]) -> dict[str, Any]:
    """A fragment that makes a new consumer stands for itself: the one before is closed."""
    for block in blocks_of(HOWTO / page):
        if block.language != "python":
            continue
        if "consumer = " in block.text and "consumer" in names:
            await names["consumer"].close()
        code = compile(block.text, block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        outcome = eval(code, names)
        if inspect.iscoroutine(outcome):
            await outcome
    return names


async def publish_one(client: Client, topic: str, content: bytes, key: str | None = None) -> None:
    async with await client.create_producer(topic) as producer:
        await producer.send(content, key=key)


async def test_consuming_page_when_run_then_its_calls_exist(pulsar_broker: InProcessBroker) -> None:
    async with Client(pulsar_broker.service_url) as client, asyncio.timeout(60):
        for topic in ("orders", "returns", "claims", "flights-east"):
            await client.subscribe(topic, "keep")
            await publish_one(client, topic, b"one")
        first = await client.subscribe("orders", "first", initial_position="earliest")
        names: dict[str, Any] = {
            "client": client,
            "re": re,
            "DeadLetterPolicy": DeadLetterPolicy,
            "message": await first.receive(),
            "positions": defaultdict(lambda: EARLIEST),
        }
        names = await run("consume-messages.md", names)
        assert names["message"].content == b"one"
        assert isinstance(names["stored"], bytes)


async def test_compaction_page_when_run_then_the_table_has_the_prices(pulsar_broker: InProcessBroker) -> None:
    async with Client(pulsar_broker.service_url) as client, asyncio.timeout(60):
        await client.subscribe("prices", "keep")
        await publish_one(client, "prices", b"2", key="espresso")
        names = await run("compact-topics.md", {"client": client, "json": json})
        assert (names["article"], names["price"]) == ("espresso", 2)
        assert names["message"].content == b"2"


async def test_page_on_lost_sites_when_run_then_the_client_follows_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "survive-a-lost-site.md"
    monkeypatch.chdir(tmp_path)
    with InProcessBroker(tmp_path / "east") as east, InProcessBroker(tmp_path / "west") as west:
        addresses = {"pulsar://east.example:6650": east.service_url, "pulsar://west.example:6650": west.service_url}
        (text,) = [block.text for block in blocks_of(HOWTO / page) if block.language == "json"]
        document = json.loads(text)
        assert Credentials.from_plugin(document["authPluginClassName"], document["authParamsString"])
        named = {"serviceUrl": addresses[document["serviceUrl"]]}  # these brokers know no tokens
        (tmp_path / "service-url.json").write_text(json.dumps({**document, **named, "authPluginClassName": ""}))
        names = await run(
            page,
            {
                "AutoFailover": AutoFailover,
                "Client": Client,
                "ControlledFailover": ControlledFailover,
                "Credentials": Credentials,
                "Site": lambda address, credentials: Site(addresses[address]),
                "SiteChange": SiteChange,
            },
        )
        async with names["client"] as client, asyncio.timeout(60):
            while client.site != Site(west.service_url):
                await publish_one(client, "orders", b"one")
    assert "service-url.json names it" in capsys.readouterr().out
