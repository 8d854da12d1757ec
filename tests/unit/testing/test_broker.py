"""The broker for tests, used as a test would."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from interpulse import sync
from interpulse.broker.app import BrokerApp
from interpulse.broker.assembly import CannotServe
from interpulse.model.errors import AlreadyClosed
from interpulse.serving.settings import ConfigError
from interpulse.testing import InProcessBroker


def test_broker_when_started_twice_on_one_directory_then_second_one_is_refused(tmp_path: Path) -> None:
    from interpulse.storage.api import DataDirectoryInUse

    with InProcessBroker(tmp_path) as broker:
        assert broker.service_url.startswith("pulsar://127.0.0.1:")
        with pytest.raises(DataDirectoryInUse):
            InProcessBroker(tmp_path).start()
    with InProcessBroker(tmp_path):
        pass


def test_broker_when_its_port_is_taken_then_nothing_of_it_is_left_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = str(holder.getsockname()[1])
        with pytest.raises(CannotServe, match=f"port {port} on 127.0.0.1 is already in use"):
            InProcessBroker(tmp_path, {"webServicePort": port}).start()
    with InProcessBroker(tmp_path, {"webServicePort": port}):
        pass


def test_broker_when_called_then_works_in_its_own_loop(tmp_path: Path) -> None:
    async def clusters(app: BrokerApp) -> str:
        assert app.ready
        return app.context.namespaces.local_cluster

    with InProcessBroker(tmp_path, {"clusterName": "east"}) as broker:
        assert broker.call(clusters) == "east"


def test_broker_when_a_setting_is_unknown_then_refused_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        InProcessBroker(tmp_path, {"noSuchKey": "1"})


def test_broker_when_it_could_not_start_then_stopping_it_is_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        broker = InProcessBroker(tmp_path, {"webServicePort": holder.getsockname()[1]})
        with pytest.raises(CannotServe):
            broker.start()
        broker.stop()
    broker.start()
    broker.stop()


def test_broker_when_restarted_then_has_its_addresses_and_its_data(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path, {"clusterName": "east"}) as broker:
        addresses = broker.service_url, broker.web_url
        before = broker.app
        with sync.Client(broker.service_url) as client, client.create_producer("orders") as producer:
            sent = producer.send(b"one")
            broker.restart()
            assert producer.send(b"two").ledger > sent.ledger
            assert [client.create_reader("orders").read_next(60_000).content] == [b"one"]
        assert (broker.service_url, broker.web_url) == addresses
        assert broker.app is not before
        assert broker.app.config.cluster_name == "east"


def test_admin_when_the_broker_is_restarted_then_goes_on_and_ends_with_it(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path) as broker:
        admin = broker.admin
        admin.topics.create_partitioned("orders", 2)
        broker.restart()
        assert broker.admin is admin
        assert admin.topics.list_partitioned("public/default") == ["persistent://public/default/orders"]
    with pytest.raises(AlreadyClosed):
        admin.brokers.health()
    with broker:
        assert broker.admin.brokers.health() == "ok"
