"""The preflight of a switch between two clusters of ours, one of them with faults."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest

from interpulse.failover.pair_config import PairConfig, parse_pair_config
from interpulse.failover.preflight.gathering import SiteGathering, preflight, serving_site
from interpulse.failover.preflight.judgement import READY, REFUSED
from interpulse.failover.site import SiteAccess
from interpulse.model.adjustments import Severity
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import RetentionPolicies
from interpulse.testing import BrokerFactory, ClusterPair, InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient

NAMESPACE = "public/default"
TOPICS = ("paid", "sent", "kept")
PARTITIONS = 4


def name(topic: str) -> str:
    return f"persistent://{NAMESPACE}/{topic}"


def report(source: InProcessBroker, target: str, topics: list[str]) -> None:
    """Report as a job does that copies these topics."""
    records = [{"topic": topic, "cluster": target, "state": "REPLICATING", "lagMessages": 0} for topic in topics]
    source.admin.namespaces.report_replication_status(NAMESPACE, records)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[ClusterPair]:
    """Two clusters that are alike: nothing stands in the way of a switch."""
    settings = {"allowAutoTopicCreation": False, "brokerDeleteInactiveTopicsEnabled": False}
    with ClusterPair(tmp_path, settings) as started:
        for number in range(3):
            started.west.admin.topics.create(name(f"first-{number}"))  # so that its ledgers have higher numbers
        for number in range(3):
            started.west.admin.topics.delete(name(f"first-{number}"))
        for site in (started.east, started.west):
            site.admin.topics.create_partitioned(name("paid"), PARTITIONS)
            for topic in TOPICS[1:]:
                site.admin.topics.create(name(topic))
            site.admin.namespaces.set_deduplication(NAMESPACE, True)
        for site in (started.east, started.west):
            site.admin.namespaces.set_replication_clusters(NAMESPACE, ["east", "west"], partitions_compared=False)
        topics = [*(f"{name('paid')}-partition-{index}" for index in range(PARTITIONS)), *map(name, TOPICS[1:])]
        report(started.east, "west", topics)
        report(started.west, "east", topics)
        yield started


@pytest.fixture
def config(pair: ClusterPair, tmp_path: Path) -> PairConfig:
    return parse_pair_config(body_of(pair.east, pair.west, tmp_path))


def body_of(east: InProcessBroker, west: InProcessBroker, directory: Path) -> dict[str, Any]:
    sites = {
        site: {"cluster": site, "service_url": broker.service_url, "admin_url": broker.web_url}
        for site, broker in (("east", east), ("west", west))
    }
    pair = {"name": "orders", "sites": ["east", "west"], "namespaces": [NAMESPACE], "state": str(directory / "state")}
    return {"pair": pair, **sites}


@pytest.fixture
async def sites(config: PairConfig) -> AsyncIterator[tuple[SiteAccess, SiteAccess]]:
    async with AsyncExitStack() as opened:
        found = SiteAccess.of(config, "east"), SiteAccess.of(config, "west")
        for site in found:
            opened.push_async_callback(site.close)
        yield found


async def test_check_when_both_sites_are_alike_then_finds_nothing(
    config: PairConfig, sites: tuple[SiteAccess, SiteAccess]
) -> None:
    result = await preflight(config, *sites)
    assert result.findings == ()
    assert result.exit_code == READY
    assert await serving_site(config, sites) == "east"
