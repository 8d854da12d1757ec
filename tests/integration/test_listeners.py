"""A broker with two listeners: every kind of lookup answers with the addresses that its client reaches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.config_sources import load_config
from tests.front_ends.access import Player
from tests.front_ends.brokers import NO_JOB
from tests.support import commands
from tests.support.raw_client import RawClient
from tests.support.standalone_process import free_port

TOPIC = "persistent://public/default/t"
INSIDE = ("pulsar://inside:6650", "")
OUTSIDE = ("", "pulsar+ssl://outside:6651")


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[BrokerApp]:
    options = {
        "dataDir": str(tmp_path / "data"),
        "brokerServicePort": free_port(),
        "webServicePort": "0",
        "advertisedListeners": f"inside:{INSIDE[0]},outside:{OUTSIDE[1]}",
        **NO_JOB,
    }
    broker = BrokerApp(load_config(options=options).config)
    await broker.start()
    yield broker
    await broker.stop()


@pytest.mark.parametrize(("listener", "addresses"), [(None, INSIDE), ("inside", INSIDE), ("outside", OUTSIDE)])
async def test_lookup_when_it_names_a_listener_then_has_its_addresses(
    app: BrokerApp, listener: str | None, addresses: tuple[str, str]
) -> None:
    plain, web = f"pulsar://127.0.0.1:{app.config.broker_service_port}", app.web_url.replace("inside", "127.0.0.1")

    def ask() -> list[tuple[str, str]]:
        with RawClient(plain) as client:
            one = client.ask(commands.lookup(1, TOPIC, listener_name=listener))
            many = client.ask(commands.batch_lookup(2, [TOPIC], listener_name=listener)).groups[0]
        over_http = Player(plain, web)
        query = f"?listenerName={listener}" if listener else ""
        found = read(over_http.call(None, "GET", f"/lookup/v2/topic/persistent/public/default/t{query}"))
        headers = {"X-Pulsar-ListenerName": listener} if listener else {}
        by_header = read(over_http.call(None, "GET", "/lookup/v2/topic/persistent/public/default/t", headers=headers))
        body = {"topics": [TOPIC], "listenerName": listener}
        group = read(over_http.call(None, "POST", "/lookup/v2/topics", body))["groups"][0]
        return [
            (one.brokerServiceUrl, one.brokerServiceUrlTls),
            (many.brokerServiceUrl, many.brokerServiceUrlTls),
            *((each["brokerUrl"], each.get("brokerUrlTls", "")) for each in (found, by_header, group)),
        ]

    assert set(await asyncio.to_thread(ask)) == {addresses}


def read(answer: tuple[int, str]) -> Any:
    assert answer[0] == 200, answer
    return json.loads(answer[1])


async def test_lookup_when_its_listener_is_none_then_is_refused(app: BrokerApp) -> None:
    def ask() -> str:
        with RawClient(f"pulsar://127.0.0.1:{app.config.broker_service_port}") as client:
            return client.ask(commands.lookup(1, TOPIC, listener_name="else")).message

    assert "does not have 'else' listener configured" in await asyncio.to_thread(ask)
