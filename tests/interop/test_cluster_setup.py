"""A cluster that `interpulse cluster init` makes, beside one of Pulsar's own tool: the same nodes, node by node."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from interpulse.cli.main import main
from interpulse.storage.zookeeper.client import ZooKeeperClient
from interpulse.storage.zookeeper.errors import NoNode
from tests.interop.real_pulsar.zookeeper import RealZooKeeper, real_zookeeper
from tools.engines.java import LOGGING, java_command, quick_java

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ADDRESSES = ("--web-service-url", "http://127.0.0.1:1", "--broker-service-url", "pulsar://127.0.0.1:2")
SECONDS_MAX = 120
# Random, or the address of the machine that the tool ran on, which Curator writes where it is told no value.
MEANINGLESS = {"/ledgers/INSTANCEID", "/stream", "/stream/servers", "/stream/servers/available"}


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealZooKeeper]:
    """One server; every cluster has a path of its own."""
    with real_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def real_setup(url: str, *more: str) -> None:
    tool = "org.apache.pulsar.PulsarClusterMetadataSetup"
    command = java_command("-Xmx128m", *quick_java(), f"-Dlog4j2.configurationFile={LOGGING}", tool)
    stores = ("--metadata-store", url, "--configuration-metadata-store", url)
    done = subprocess.run(
        [*command, "--cluster", "lab", *stores, *ADDRESSES, *more], capture_output=True, timeout=SECONDS_MAX
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")


async def init(url: str, *more: str, cluster: str = "lab") -> str:
    command = ["cluster", "init", "--cluster", cluster, "--metadata-store", url, *more]
    done = await asyncio.to_thread(CliRunner().invoke, main, command)
    assert done.exit_code == 0, done.output
    return done.output


async def nodes_below(url: str, path: str = "/") -> dict[str, tuple[object, int]]:
    """Every node with its value, JSON as an object, and its owner; without what a path in the URL puts in front."""
    client = await ZooKeeperClient.connect(url)
    found: dict[str, tuple[object, int]] = {}

    async def walk(path: str) -> None:
        node = await client.get(path)
        found[path] = as_object(node.value), node.stat.ephemeral_owner
        for name in (await client.children(path)).names:
            await walk(f"{path.rstrip('/')}/{name}")

    try:
        await walk(path)
    except NoNode:
        return {}
    finally:
        await client.close()
    return found


def as_object(value: bytes) -> object:
    return json.loads(value) if value.startswith(b"{") else value


def told(nodes: dict[str, tuple[object, int]]) -> dict[str, tuple[object, int]]:
    return {path: ((None, 0) if path in MEANINGLESS else each) for path, each in nodes.items()}


async def test_cluster_when_either_tool_made_it_then_has_the_same_nodes(
    zookeeper: RealZooKeeper, tmp_path: Path
) -> None:
    real, ours = (f"zk:{zookeeper.address}/{name}" for name in ("reals", "oursX"))  # paths of one length
    real_setup(real)
    output = await init(ours, *ADDRESSES)
    expected = told(await nodes_below(real))
    found = told(await nodes_below(ours))
    for path in ("/pulsar/functions", "/stream/storage"):
        place, _ = expected.pop(path)
        assert isinstance(place, bytes)
        assert found.pop(path) == (place.replace(b"/reals/", b"/oursX/"), 0)
    assert found == expected
    assert "/admin/clusters/lab" in output.splitlines()
    assert output.endswith("cluster lab is ready\n")

    before = await nodes_below(ours)
    assert await init(ours, *ADDRESSES) == "cluster lab was ready already\n"
    real_setup(ours)
    assert await nodes_below(ours) == before
    await init(real, *ADDRESSES)
    assert told(await nodes_below(real, "/admin")) == {
        path: each for path, each in told(before).items() if path.startswith("/admin")
    }


async def test_second_cluster_when_it_is_made_on_the_same_zookeeper_then_namespaces_are_open_to_both(
    zookeeper: RealZooKeeper,
) -> None:
    url = f"zk:{zookeeper.address}/two"
    await init(url, *ADDRESSES)
    await init(url, "-uw", "http://127.0.0.1:3", "-bn", "4", cluster="west")
    nodes = await nodes_below(url)
    assert nodes["/admin/policies/public"][0] == {"allowedClusters": ["lab", "west"], "adminRoles": []}
    policies = nodes["/admin/policies/public/default"][0]
    assert isinstance(policies, dict)
    assert policies["replication_clusters"] == ["lab", "west"]
    assert policies["bundles"]["numBundles"] == 16
