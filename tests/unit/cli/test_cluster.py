"""The command lines of ``broker`` and ``cluster``, as far as they need no ZooKeeper."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from interpulse.broker import metadata_paths as keys
from interpulse.cli.cluster import cluster
from interpulse.cli.programs.broker import broker
from interpulse.storage.api import Put
from interpulse.storage.directory_lock import DirectoryLock
from interpulse.storage.metadata.sqlite import SqliteMetadataStore

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
    monkeypatch.setattr("interpulse.cli.programs.broker.configure_logging", lambda *_: None)
    file = tmp_path / "broker.conf"
    file.write_text(f"{settings}\nbrokerServicePort=0\nwebServicePort=0\ndataDir={tmp_path / 'data'}\n")
    ended = CliRunner().invoke(broker, ["--config", str(file), "--log-level", "error"])
    assert ended.exit_code == 2
    assert complaint in ended.stderr.splitlines()[-1]


async def make_data_directory(directory: Path) -> None:
    """What a standalone broker has once it was ready."""
    with DirectoryLock.acquire(directory):
        store = await SqliteMetadataStore.open(directory / "metadata.sqlite")
        await store.commit([Put(keys.LOCAL_CLUSTER, b"standalone")])
        await store.close()


@pytest.mark.parametrize(
    ("settings", "data_dir", "complaint"),
    [
        ("nonsense", "there", "broker.conf"),
        ("metadataStoreUrl=zk:a:1", "there", "no broker has stored data there: the file lock is missing"),
        ("metadataStoreUrl=zk:a:1", "absent", "no broker has stored data there: the file lock is missing"),
        ("metadataStoreUrl=", "standalone", "metadataStoreUrl=: a broker of a cluster keeps its metadata in ZooKeeper"),
    ],
)
def test_import_that_cannot_begin_says_why_in_one_sentence(
    tmp_path: Path, settings: str, data_dir: str, complaint: str
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(f"clusterName=lab\n{settings}\n")
    (tmp_path / "there").mkdir()
    asyncio.run(make_data_directory(tmp_path / "standalone"))
    ended = CliRunner().invoke(cluster, ["import", "--config", str(file), "--data-dir", str(tmp_path / data_dir)])
    assert ended.exit_code == 2, ended.output
    assert complaint in ended.stderr.splitlines()[-1]
