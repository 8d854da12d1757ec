"""The command lines of ``broker`` and ``cluster init``, as far as they need no ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from interpulse.cli.broker import broker
from interpulse.cli.cluster import cluster

INIT = ("init", "--cluster", "lab", "--web-service-url", "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--metadata-store", "rocksdb:///x"), "--metadata-store rocksdb:///x: a cluster needs ZooKeeper"),
        (("--metadata-store", "zk:a:b"), "'zk:a:b' does not name ZooKeeper servers"),
        (
            ("--metadata-store", "zk:a:1", "--configuration-metadata-store", "zk:b:1"),
            "--configuration-metadata-store zk:b:1: another ZooKeeper than that of --metadata-store is not supported",
        ),
        (("--metadata-store", "zk:a:1", "--web-service-url", "a:1"), "Illegal service url"),
        (("--metadata-store", "zk:a:1", "--cluster", "a b"), "Cluster name is not valid"),
        (("--metadata-store", "zk:a:1", "-bn", "0"), "--default-namespace-bundle-number 0 has to be at least 1"),
    ],
)
def test_cluster_that_cannot_be_set_up_is_refused_in_one_sentence(arguments: tuple[str, ...], complaint: str) -> None:
    ended = CliRunner().invoke(cluster, [*INIT, *arguments])
    assert ended.exit_code == 1
    assert len(ended.stderr.strip().splitlines()) == 1
    assert complaint in ended.stderr


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("", "metadataStoreUrl=: a broker of a cluster keeps its metadata in ZooKeeper: metadataStoreUrl=zk:"),
        ("metadataStoreUrl=rocksdb:///x", "metadataStoreUrl=rocksdb:///x: a broker of a cluster"),
        ("metadataStoreUrl=zk:a\nconfigurationMetadataStoreUrl=zk:b", "configurationMetadataStoreUrl=zk:b: another"),
        ("metadataStoreUrl=zk:a\nmanagedLedgerDefaultAckQuorum=3", "managedLedgerDefaultAckQuorum=3 are impossible"),
        (
            "metadataStoreUrl=zk:a\nmanagedLedgerDigestType=MAC",
            "managedLedgerDigestType=MAC: must be one of CRC32C, CRC32",
        ),
    ],
)
def test_broker_that_cannot_start_says_why_in_one_sentence(
    tmp_path: Path, settings: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.cli.serving.configure_logging", lambda *_: None)
    file = tmp_path / "broker.conf"
    file.write_text(f"{settings}\nbrokerServicePort=0\nwebServicePort=0\ndataDir={tmp_path / 'data'}\n")
    ended = CliRunner().invoke(broker, ["--config", str(file), "--log-level", "error"])
    assert ended.exit_code == 2
    assert complaint in ended.stderr.splitlines()[-1]
