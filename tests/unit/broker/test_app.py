"""Addresses a broker announces, and policies that two ways lead to; the rest of the wiring shows elsewhere."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.broker.assembly import CannotServe
from interpulse.broker.closing import close_in_time
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.broker.live.topic.topic import Topic
from interpulse.broker.stores import OpenStores, Stores, in_data_directory
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import PUBLIC_DEFAULT, TopicName


@pytest.mark.parametrize(
    ("bind", "advertised", "host"),
    [
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "pulsar.example", "pulsar.example"),
        ("0.0.0.0", "", "localhost"),
        ("0.0.0.0", "fd00::1", "[fd00::1]"),
    ],
)
async def test_start_when_addresses_are_given_then_clients_are_told_one_they_can_reach(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bind: str, advertised: str, host: str
) -> None:
    app = BrokerApp(
        BrokerConfig(
            data_dir=str(tmp_path),
            bind_address=bind,
            advertised_address=advertised,
            broker_service_port=0,
            web_service_port=0,
        )
    )
    assert not app.ready
    await app.start()
    try:
        assert app.ready
        assert app.service_url.rpartition(":")[0] == f"pulsar://{host}"
        assert app.web_url.rpartition(":")[0] == f"http://{host}"
        warning = "clients on other machines cannot reach the advertised address advertised=localhost listening=0.0.0.0"
        assert (warning in caplog.text) is (host == "localhost")
    finally:
        await app.stop()
    assert not app.ready


async def test_start_when_the_advertised_address_has_a_port_then_says_what_it_may_be(tmp_path: Path) -> None:
    config = BrokerConfig(
        data_dir=str(tmp_path), advertised_address="pulsar:6650", broker_service_port=0, web_service_port=0
    )
    with pytest.raises(CannotServe, match="advertisedAddress=pulsar:6650: must be a host name or address, without"):
        await BrokerApp(config).start()


async def test_policies_that_are_stored_over_rest_are_applied_once_to_loaded_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call waits until they are in force, and the metadata tells that they have changed."""
    app = BrokerApp(BrokerConfig(data_dir=str(tmp_path), broker_service_port=0, web_service_port=0))
    await app.start()
    try:
        x = TopicName.parse("x")
        loaded, apply, applied = await app.registry.open(x), Topic.apply, []

        async def counted(topic: Topic, settings: Any) -> None:
            applied.append(topic.name)
            await apply(topic, settings)

        monkeypatch.setattr(Topic, "apply", counted)
        async with AdminClient(app.web_url) as admin:
            await admin.namespaces.set_deduplication(PUBLIC_DEFAULT, True)
            assert loaded.settings.deduplication_enabled
            await admin.namespaces.set_deduplication(PUBLIC_DEFAULT, False)
        assert (applied, loaded.settings.deduplication_enabled) == ([x, x], False)
    finally:
        await app.stop()


def stores_that_hang(count: int, hung: list[int]) -> OpenStores:
    """Stores with callbacks that never end, and note their numbers in ``hung``."""

    async def hang(number: int) -> None:
        hung.append(number)
        await asyncio.Event().wait()

    async def open_stores(config: BrokerConfig, opened: AsyncExitStack) -> Stores:
        stores = await in_data_directory()(config, opened)
        for number in range(count):
            opened.push_async_callback(hang, number)
        return stores

    return open_stores


async def test_stop_when_stores_hang_then_each_is_given_up_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a disk that stalls: every store waits for it."""
    hung: list[int] = []
    monkeypatch.setattr("interpulse.broker.app._STOP_SECONDS_MAX", 1.0)
    config = BrokerConfig(data_dir=str(tmp_path), broker_service_port=0, web_service_port=0)
    app = BrokerApp(config, open_stores=stores_that_hang(3, hung))
    await app.start()
    async with asyncio.timeout(30):
        await app.stop()
    assert hung == [2, 1, 0]
    assert "stop timed out seconds=1.0" in caplog.text


async def test_stop_among_other_brokers_when_much_hangs_then_all_of_it_is_given_up_and_the_rest_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As without ZooKeeper; the stores here are those of a broker alone."""
    hung: list[int] = []
    config = BrokerConfig(data_dir=str(tmp_path), broker_service_port=0, web_service_port=0)
    app = BrokerApp(config, open_stores=stores_that_hang(5, hung))
    await app.start()
    monkeypatch.setattr(app.parts.member, "close", partial(close_in_time, seconds=1.0, late_seconds=0.5))
    async with asyncio.timeout(30):
        await app.stop()
    assert hung == [4, 3, 2, 1, 0]
    assert "stop timed out seconds=1.0" in caplog.text
