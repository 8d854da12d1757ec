"""Settings that a broker of a cluster is refused with, each by its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interpulse.broker.cluster_stores import check_settings
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.serving.settings import ConfigError

URL = "zk:h1:2181,h2:2181/lab"


def config(tmp_path: Path, **settings: Any) -> BrokerConfig:
    return BrokerConfig(**{"data_dir": str(tmp_path), "metadata_store_url": URL, **settings})


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"configuration_metadata_store_url": "zk:h2:2181,h1:2181/lab"},
        {"bookkeeper_metadata_service_uri": "metadata-store:zk:h1:2181,h2:2181/lab"},
        {"bookkeeper_metadata_service_uri": "metadata-store:zk:h1:2181,h2:2181/lab/ledgers"},
        {"bookkeeper_metadata_service_uri": "zk+hierarchical://h1:2181;h2:2181/lab/ledgers"},
        {"metadata_store_url": "zk:h1", "bookkeeper_metadata_service_uri": "zk+null://h1:2181/ledgers"},
    ],
    ids=str,
)
def test_settings_of_one_zookeeper_pass(tmp_path: Path, settings: dict[str, str]) -> None:
    check_settings(config(tmp_path, **settings))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"metadata_store_url": ""}, "metadataStoreUrl=: a broker of a cluster keeps its metadata in ZooKeeper"),
        ({"metadata_store_url": "rocksdb:///x"}, "metadataStoreUrl=rocksdb:///x: .*interpulse standalone"),
        ({"metadata_store_url": "zk:h:x"}, "metadataStoreUrl: .*does not name ZooKeeper servers"),
        ({"configuration_metadata_store_url": "zk:h3:2181"}, "configurationMetadataStoreUrl=zk:h3:2181: another"),
        ({"configuration_metadata_store_url": "etcd:h1"}, "configurationMetadataStoreUrl=etcd:h1: another"),
        ({"bookkeeper_metadata_service_uri": "metadata-store:zk:h1:2181"}, "bookkeeperMetadataServiceUri=.*: another"),
        ({"managed_ledger_default_write_quorum": 3}, "EnsembleSize=2, managedLedgerDefaultWriteQuorum=3 and"),
        ({"managed_ledger_default_ack_quorum": 3}, "managedLedgerDefaultAckQuorum=3 are impossible"),
        ({"max_message_size": 5_242_881}, "maxMessageSize=5242881: bookies take frames of 5242880 bytes"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_settings_that_are_not_supported_are_refused_by_their_key(
    tmp_path: Path, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        check_settings(config(tmp_path, **settings))


def test_data_directory_of_a_standalone_broker_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metadata.sqlite").touch()
    with pytest.raises(ConfigError, match=r"dataDir=.* holds the metadata and messages of a standalone broker"):
        check_settings(config(tmp_path))
