"""The preflight of a switch from a real Pulsar to a broker of ours, which its own replicator copies to."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pulsar
import pytest

from interpulse.failover.pair_config import PairConfig, parse_pair_config
from interpulse.failover.preflight.findings import CheckKind
from interpulse.failover.preflight.gathering import preflight
from interpulse.failover.site import SiteAccess
from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address
from tests.interop.replicated_pairs import Cluster, Pair, replicating, until
from tests.support.official_client import connected

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SETTINGS = {"allowAutoTopicCreation": "false", "brokerDeleteInactiveTopicsEnabled": "false"}


@pytest.fixture
def pair(real_pulsar: Address, tmp_path: Path) -> Iterator[Pair]:
    name = f"ours-{uuid.uuid4().hex[:6]}"
    with InProcessBroker(tmp_path, {"clusterName": name, "replicationJob": "external", **SETTINGS}) as ours:
        source = Cluster(real_pulsar.web_url, real_pulsar.service_url, "standalone", is_ours=False)
        yield Pair(source, Cluster(ours.web_url, ours.service_url, name)).begin()


@pytest.fixture
def config(pair: Pair, tmp_path: Path) -> PairConfig:
    sites = {
        site: {"cluster": cluster.name, "service_url": cluster.service_url, "admin_url": cluster.web_url}
        for site, cluster in (("east", pair.source), ("west", pair.target))
    }
    table = {"name": "orders", "sites": ["east", "west"], "namespaces": [pair.namespace], "state": str(tmp_path)}
    return parse_pair_config({"pair": table, **sites})


@pytest.fixture
async def sites(config: PairConfig) -> AsyncIterator[tuple[SiteAccess, SiteAccess]]:
    async with AsyncExitStack() as opened:
        found = SiteAccess.of(config, "east"), SiteAccess.of(config, "west")
        for site in found:
            opened.push_async_callback(site.close)
        yield found


async def test_check_when_a_real_replicator_copies_one_way_then_only_the_way_back_is_missing(
    pair: Pair, config: PairConfig, sites: tuple[SiteAccess, SiteAccess]
) -> None:
    topic = pair.topic("paid")
    await asyncio.to_thread(begin, pair, topic)
    with connected(pair.source.service_url) as client:
        reader = client.create_reader(f"{topic}-partition-0", pulsar.MessageId.earliest)
        client.create_producer(topic).send(b"copied")
        await asyncio.to_thread(until, lambda: copied(pair, topic), True)
        result = await preflight(config, *sites)
        reader.close()
    found = {str(each.kind): each for each in result.findings}
    assert found.keys() >= {"READERS", "WAY_BACK_MISSING"}
    assert found.keys().isdisjoint({"NOT_COPIED", "NO_SOURCE_POSITIONS", "PERMISSION_OF_OURS", "CLOCKS", "ROLE"})
    assert "Pulsar-CPP-v" in found["READERS"].subject
    assert [str(each.kind) for each in result.refusing] == [CheckKind.CLIENTS_NOT_MOVED, CheckKind.WAY_BACK_MISSING]
    assert set(found["WAY_BACK_MISSING"].subjects) == {f"{topic}-partition-{index}" for index in range(2)}


def begin(pair: Pair, topic: str) -> None:
    pair.enable()
    pair.source.run(f"topics create-partitioned-topic {topic} -p 2")
    with connected(pair.source.service_url) as client:
        client.create_producer(topic).close()
    for index in range(2):
        until(replicating(pair, f"{topic}-partition-{index}"), True)


def copied(pair: Pair, topic: str) -> bool:
    return (
        sum(int(pair.target.json(f"topics stats {topic}-partition-{index}")["msgInCounter"]) for index in range(2)) > 0
    )
