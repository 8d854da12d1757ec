"""Addresses a broker announces; everything else of the wiring shows in the integration tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.broker.config import BrokerConfig


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
    tmp_path: Path, bind: str, advertised: str, host: str
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
    finally:
        await app.stop()
    assert not app.ready
