"""A pair of clusters that loses its sites, and copies without the packages of Spark."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from interpulse import sync
from interpulse.testing import ClusterPair

NAMESPACE = "public/default"
WITHOUT_SPARK = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("pyspark", "pyarrow"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Blocked())
import interpulse.testing.copier
"""


def test_copier_when_pyspark_is_absent_then_can_be_imported() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_SPARK], check=True, timeout=120)


def test_site_when_lost_then_connections_break_and_its_data_comes_back(tmp_path: Path) -> None:
    with ClusterPair(tmp_path) as pair:
        address = pair.east.service_url
        with sync.Client(address) as client:
            producer = client.create_producer("orders")
            producer.send(b"one")
            pair.lose("east")
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", urlsplit(address).port))
            pair.return_("east")
            assert pair.east.service_url == address
            producer.send(b"two")
        with sync.Client(address) as client, client.create_reader("orders") as reader:
            assert [reader.read_next().content for _ in range(2)] == [b"one", b"two"]


def test_site_when_suspended_then_answers_after_it_is_resumed(tmp_path: Path) -> None:
    with ClusterPair(tmp_path) as pair, sync.Client(pair.west.service_url) as client:
        producer = client.create_producer("orders")
        pair.suspend("west")
        pair.suspend("west")
        sent = threading.Thread(target=lambda: producer.send(b"one"))
        sent.start()
        sent.join(0.3)
        assert sent.is_alive()
        pair.resume("west")
        sent.join()


def test_pair_when_stopped_while_a_site_is_suspended_or_lost_then_ends(tmp_path: Path) -> None:
    with ClusterPair(tmp_path, replicates=True) as pair:
        pair.suspend("east")
        pair.lose("west")
    assert not pair.east.app.ready


def test_pair_when_it_replicates_then_copies_what_policies_ask_for(tmp_path: Path) -> None:
    with ClusterPair(tmp_path, replicates=True) as pair:
        pair.east.admin.topics.create("orders")
        pair.east.admin.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"])
        with sync.Client(pair.east.service_url) as client, client.create_producer("orders") as producer:
            producer.send(b"one")
        with sync.Client(pair.west.service_url) as client, client.create_reader("orders") as reader:
            assert reader.read_next().content == b"one"
        pair.stop_copying("east")
        pair.stop_copying("east")
        pair.start_copying("east")
        with sync.Client(pair.east.service_url) as client, client.create_producer("orders") as producer:
            producer.send(b"two")
        with sync.Client(pair.west.service_url) as client, client.create_reader("orders") as reader:
            assert [reader.read_next().content for _ in range(2)] == [b"one", b"two"]


def test_topic_when_waited_for_then_both_sites_have_it_and_deduplicate(tmp_path: Path) -> None:
    with ClusterPair(tmp_path, replicates=True) as pair:
        pair.east.admin.topics.create_partitioned("orders", 2)
        with pytest.raises(TimeoutError, match=r"after 0 s persistent://\S+/orders of east is not copied: no policy"):
            pair.wait_until_copied("orders", timeout_s=0)
        for broker in pair.brokers.values():
            broker.admin.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"])
        pair.wait_until_copied("orders")
        for broker in pair.brokers.values():
            assert broker.admin.topics.partitioned_metadata("orders").partitions == 2
            assert broker.admin.namespaces.deduplication(NAMESPACE)


def test_site_when_of_another_pair_then_refused(tmp_path: Path) -> None:
    pair = ClusterPair(tmp_path)
    for work in (pair.lose, pair.return_, pair.suspend, pair.resume, pair.stop_copying, pair.start_copying):
        with pytest.raises(ValueError, match="'north' is no cluster of the pair: use east or west"):
            work("north")
    with pytest.raises(ValueError, match="create it with replicates=True"):
        pair.stop_copying("east")
    with pytest.raises(ValueError, match="create it with replicates=True"):
        pair.wait_until_copied("orders")
