"""The how-to pages followed like README: each by one reader, in order, from the built wheel."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from interpulse import __version__
from interpulse.broker.tenancy.cluster_setup import NewCluster, set_up_cluster
from interpulse.model.clusters import ClusterData
from tests.guides.conftest import WalkFactory
from tests.guides.pages import HOWTO, README, Block, blocks_of
from tests.interop.real_pulsar import Address
from tests.interop.real_pulsar.bookkeeper import RealBookie
from tests.interop.real_pulsar.zookeeper import real_zookeeper
from tests.support.standalone_process import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # many programs of the pages start Spark

WITHOUT_TRAFFIC = {
    "pulsar_replication_backlog",
    "pulsar_replication_connected_count",
    "pulsar_authentication_failures_total",
    "interpulse_replication_topics",
    "interpulse_synced_acknowledgements_total",
    "pulsar_subscription_storage_backlog_age_seconds",
}
"""Metrics of what a plain broker does not have: another cluster, authentication, or a setting that asks for them."""

ORDERS = [
    Block("test", 1, "", "sh", "interpulse-admin topics create orders\n"),
    Block(
        "test",
        2,
        "",
        "sh",
        "for each in billing nobody-reads-this; do\n"
        "  interpulse-admin topics create-subscription orders -s $each\ndone\n",
    ),
    Block("test", 3, "", "sh", "interpulse produce orders -m hello -n 10 --disable-batching\n"),
]
RUNNING = Block("test", 0, "", "sh", "interpulse standalone --data-dir ./data\n")
"""What a page takes for granted."""


def steps(page: str, *headings: str) -> list[Block]:
    """What the reader types and saves, under these headings; `text` blocks show what he sees."""
    typed = [each for each in blocks_of(HOWTO / page) if each.language == "sh" or each.file_name is not None]
    return [each for each in typed if not headings or each.heading in headings]


def shown(page: str, outputs: dict[str, str]) -> list[tuple[str, str]]:
    """What a page says its commands print, beside what the command before it printed."""
    pairs, printed = [], ""
    for block in blocks_of(HOWTO / page):
        if block.language == "text":
            pairs.append((block.text.strip(), printed.strip()))
        else:
            printed = outputs.get(block.place, "")  # nobody runs a block of SQL by itself
    return pairs


@pytest.mark.spark
def test_spark_page_when_followed_then_shows_what_it_says(reader: WalkFactory) -> None:
    """But for its section about Connect, which tests/spark/test_connect.py follows."""
    walked = [each for each in steps("use-spark.md") if not each.heading.startswith("Spark Connect")]
    outputs = reader("own").follow(walked)
    pairs = [pair for pair in shown("use-spark.md", outputs) if pair[1]]
    assert len(pairs) == 4
    for said, printed in pairs:
        assert said == printed
    assert sum(printed.count("content:too hot: 3") for printed in outputs.values()) == 2


def test_container_page_when_followed_then_clients_are_told_the_advertised_address(reader: WalkFactory) -> None:
    here = {"broker.example.com": "localhost"}
    outputs = reader("shared", replaced=here).follow(steps("run-in-containers.md"))
    addresses = [printed for said, printed in shown("run-in-containers.md", outputs) if said.startswith("pulsar://")]
    assert len(addresses) == 1
    assert addresses[0].startswith("pulsar://localhost:")


def test_monitoring_page_when_followed_then_every_metric_it_names_is_there(reader: WalkFactory) -> None:
    page, walk = "monitor.md", reader("shared")
    outputs = walk.follow([*steps(page)[:2], *blocks_of(README)[1:2], *steps(page)[2:]])
    metrics = next(said for said in outputs.values() if "# TYPE" in said)
    there = set(re.findall(r"^# TYPE (\S+)", metrics, re.MULTILINE))
    named = set(re.findall(r"`((?:pulsar|interpulse(?!_spark)|process|topic)_[a-z0-9_]+)`", (HOWTO / page).read_text()))
    assert len(named) > 15
    assert named - there == WITHOUT_TRAFFIC
    assert [said.split() for said in outputs.values()].count(["okokok"]) == 1
    (job,) = yaml.safe_load((walk.directory / "prometheus.yml").read_text())["scrape_configs"]
    assert job["metrics_path"] == "/metrics"


def test_backup_page_when_followed_then_what_was_not_read_is_there_again(reader: WalkFactory) -> None:
    outputs = reader("shared").follow(steps("back-up.md"))
    consumed = outputs[steps("back-up.md")[-1].place]
    assert re.findall(r"content:(\w+)", consumed) == ["one", "two", "three"]


def test_upgrade_page_when_followed_then_the_new_version_is_well(reader: WalkFactory) -> None:
    outputs = reader("own").follow(steps("upgrade.md"))
    assert outputs[steps("upgrade.md")[-1].place].split("\n")[:2] == [f"{__version__} (python codec)", "ok"]


def test_full_disk_page_when_followed_then_its_commands_make_room(reader: WalkFactory) -> None:
    before = [RUNNING, *ORDERS]
    outputs = reader("shared").follow([*before, *steps("handle-a-full-disk.md")])
    assert '"storageSize"' in outputs[steps("handle-a-full-disk.md")[0].place]


def test_compaction_page_when_followed_then_the_topic_is_compacted(reader: WalkFactory) -> None:
    prices = Block(
        "test", 1, "", "sh", "interpulse-admin topics create prices\ninterpulse produce prices -k a -m 1,2\n"
    )
    outputs = reader("shared").follow([RUNNING, prices, *steps("compact-topics.md")])
    assert "Compaction was a success" in outputs[steps("compact-topics.md")[0].place]


def test_repair_page_when_nothing_is_wrong_then_its_commands_end_well(reader: WalkFactory) -> None:
    outputs = reader("shared").follow(
        [RUNNING, *ORDERS, *steps("repair-topics.md", "Find inconsistent topics", "Repair")]
    )
    assert len(outputs) == 1 + len(ORDERS) + 2


def test_security_page_when_followed_then_a_role_may_do_what_it_was_granted(
    reader: WalkFactory, tmp_path: Path
) -> None:
    secrets = tmp_path / "etc"
    secrets.mkdir()
    walk = reader("shared", replaced={"/etc/interpulse": str(secrets)})
    walked = steps(
        "secure-a-broker.md",
        "1. Create a key and the first token",
        "2. Configure the broker",
        "3. Configure clients",
        "4. Grant permissions",
    )
    own_pair = [each for each in walked if "create-key-pair" in each.text]
    outputs = walk.follow([each for each in walked if each not in own_pair])
    granted = next(said for said in outputs.values() if "checkout" in said)
    assert "produce" in granted
    assert "1 messages successfully produced" in (walk.logs / "errors.log").read_text()


def test_security_page_when_tls_is_tried_then_clients_that_trust_it_get_in(reader: WalkFactory) -> None:
    binary, web = free_port(), free_port()
    tried = f"standalone --tls --set brokerServicePortTls={binary} --set webServicePortTls={web}"
    walk = reader("shared", replaced={"standalone --tls": tried, ":6651": f":{binary}", ":8443": f":{web}"})
    outputs = walk.follow(steps("secure-a-broker.md", "8. Use TLS"))
    assert "persistent://public/default/sealed" in "".join(outputs.values())


def test_security_page_when_passwords_are_tried_then_the_audit_log_names_the_user(
    reader: WalkFactory, tmp_path: Path
) -> None:
    secrets = tmp_path / "etc"
    secrets.mkdir()
    walk = reader("shared", replaced={"/etc/interpulse": str(secrets)})
    outputs = walk.follow(steps("secure-a-broker.md", "10. Use passwords"))
    noted = json.loads(next(said for said in outputs.values() if "change requested" in said).splitlines()[-1])
    assert (noted["role"], noted["change"], noted["code"]) == ("admin", "PUT", 204)


@pytest.mark.spark
def test_replication_page_when_followed_then_messages_arrive(reader: WalkFactory) -> None:
    """Sections 1 to 5, and the one on a single topic; the others need clusters with tokens and certificates."""
    ports = {port: free_port() for port in ("16650", "16651", "18080", "18081")}
    page = blocks_of(HOWTO / "enable-geo-replication.md")
    walked = [
        each
        for each in page
        if each.language == "sh" and each.heading[:2] in {"En", "1.", "2.", "3.", "4.", "5.", "Re"}
    ]
    outputs = reader("own", replaced=ports).follow(walked)
    previewed, sent = ("".join(outputs[each.place] for each in walked if each.heading[0] == n) for n in "35")
    assert "shop/orders can be replicated to east, west as it is." in previewed
    assert sent.count("content:hello") == 10


NATIVE_REPLICATION = """
real() { interpulse-admin --admin-url http://pulsar:8080 "$@"; }
west() { interpulse-admin --admin-url http://127.0.0.1:18081 "$@"; }
interpulse standalone --cluster-name west --port 16651 --http-port 18081 --data-dir west
real clusters create west --url http://127.0.0.1:18081 --broker-url pulsar://127.0.0.1:16651
west clusters create standalone --url http://pulsar:8080 --broker-url pulsar://pulsar:6650
real tenants create shop -c standalone,west
west tenants create shop -c standalone,west
real namespaces create shop/orders -c standalone
west namespaces create shop/orders
west namespaces set-deduplication shop/orders --enable
real namespaces set-clusters shop/orders -c standalone,west
real topics create shop/orders/placed
interpulse produce --url pulsar://pulsar:6650 shop/orders/placed -m before -n 10 --disable-batching
until [ "$(west topics stats-internal shop/orders/placed | grep -c '"numberOfEntries" : 10')" = 1 ]; do sleep 0.2; done
"""
"""Where the page begins: a real Pulsar that replicates ten messages to a broker of ours by itself."""

PUBLISHED_BETWEEN = (
    "interpulse produce --url pulsar://pulsar:6650 shop/orders/placed -m after -n 10 --disable-batching\n"
)


@pytest.mark.spark
@pytest.mark.interop
def test_take_over_page_when_followed_then_every_message_is_there_once_and_in_order(
    reader: WalkFactory, real_pulsar: Address
) -> None:
    """Messages are published while no replicator runs, between the old one and ours."""
    here = {port: str(free_port()) for port in ("16651", "18081")}
    here |= {"http://pulsar:8080": real_pulsar.web_url, "pulsar://pulsar:6650": real_pulsar.service_url}
    page = steps("take-over-replication.md")
    install = Block("test", 0, "", "sh", "pip install '.[broker,spark]'\n")
    native, between = Block("test", 1, "", "sh", NATIVE_REPLICATION), Block("test", 2, "", "sh", PUBLISHED_BETWEEN)
    ended = next(number for number, each in enumerate(page) if "set-clusters" in each.text) + 1
    outputs = reader("own", replaced=here).follow([install, native, *page[:ended], between, *page[ended:]])
    planned = outputs[page[ended].place]
    assert re.search(r"placed would begin behind \d+:9, which west holds", planned)
    consumed = re.findall(r"content:(\w+)", outputs[page[-1].place])
    assert consumed == ["before"] * 10 + ["after"] * 10
    assert "1 cursors, 1 removed" in outputs[page[-1].place]


@pytest.mark.spark
def test_two_clusters_page_when_followed_then_shows_what_it_says(reader: WalkFactory) -> None:
    ports = {port: free_port() for port in ("16650", "16651", "18080", "18081")}
    outputs = reader("own", replaced=ports).follow(steps("two-clusters.md"))
    for said, printed in shown("two-clusters.md", outputs):
        assert said == printed


@pytest.mark.interop
def test_page_of_three_brokers_when_followed_then_clients_find_the_owners(reader: WalkFactory, tmp_path: Path) -> None:
    """The bookies serve already, so the cluster was initialised before the page does it."""
    page = steps("from-one-broker-to-three.md")
    brokers = {f"broker{number}": (free_port(), free_port()) for number in (1, 2, 3)}
    here = {"bindAddress=0.0.0.0": "bindAddress=127.0.0.1"}
    for name, (binary, web) in brokers.items():
        ports = f"--set brokerServicePort={binary} --set webServicePort={web} --set dataDir={name}"
        here |= {f"--set advertisedAddress={name}": ports}
        here |= {f"{name}:6650": f"127.0.0.1:{binary}", f"{name}:8080": f"127.0.0.1:{web}"}
    with bookies_of_cluster(tmp_path) as zookeeper:
        here |= {"zk1:2181,zk2:2181,zk3:2181": zookeeper}
        outputs = reader("shared", replaced=here).follow([RUNNING, *ORDERS, *page])
    initialised, _, imported, _, asked, used, old = (outputs[each.place] for each in page)
    assert initialised == "cluster lab was ready already\n"
    assert "1 topics with 10 entries" in imported.splitlines()[-1]
    assert sorted(asked.split()[:3]) == sorted(f"127.0.0.1:{web}" for _, web in brokers.values())
    assert len(set(re.findall(r"orders-partition-\d", asked))) == 6
    assert used.count("content:hello") == old.count("content:hello") == 10


@contextmanager
def bookies_of_cluster(directory: Path) -> Iterator[str]:
    """Three of them; gives the address of their ZooKeeper."""
    with real_zookeeper(directory / "zookeeper") as zookeeper, ExitStack() as running:
        new = NewCluster("lab", ClusterData("http://127.0.0.1:1"))
        asyncio.run(set_up_cluster(f"zk:{zookeeper.address}", new))
        bookies = [RealBookie(directory / f"bookie-{each}", zookeeper.address) for each in range(3)]
        for bookie in bookies:
            bookie.start()
            running.callback(bookie.kill)
        for bookie in bookies:
            bookie.wait()
        yield zookeeper.address


def test_console_page_when_followed_then_the_console_answers(reader: WalkFactory) -> None:
    outputs = reader("own").follow(steps("use-the-console.md"))
    assert any('"healthy": true' in printed for printed in outputs.values())
