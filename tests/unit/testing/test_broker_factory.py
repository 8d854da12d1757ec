"""Several brokers for one test."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interpulse.testing import BrokerFactory, ConfigError


def test_factory_when_called_twice_then_two_brokers_with_their_own_settings_and_data(tmp_path: Path) -> None:
    factory = BrokerFactory(tmp_path)
    east, west = factory(clusterName="east"), factory(clusterName="west", allowAutoTopicCreation=False)
    assert (east.app.config.cluster_name, west.app.config.cluster_name) == ("east", "west")
    assert not west.app.config.allow_auto_topic_creation
    assert east.app.data_dir != west.app.data_dir
    factory.close()
    for broker in (east, west):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", urlsplit(broker.service_url).port or 0), timeout=60)


def test_factory_when_a_broker_cannot_be_then_the_others_are_stopped_all_the_same(tmp_path: Path) -> None:
    factory = BrokerFactory(tmp_path)
    broker = factory()
    with pytest.raises(ConfigError, match="noSuchKey"):
        factory(noSuchKey=1)
    factory.close()
    assert not broker.app.ready
