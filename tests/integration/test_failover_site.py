"""What is read of one site of a pair, where its topics were trimmed, are empty, or hold entries of several kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interpulse.failover.pair_config import SiteAddress
from interpulse.failover.site import OURS, SiteAccess
from interpulse.model.ids import EARLIEST, Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.testing import InProcessBroker
from tests.support.waiting import SECONDS_MAX

NAMESPACE = NamespaceName.parse("public/default")
TOPIC = TopicName.parse("persistent://public/default/orders")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[SiteAccess]:
    keys = {"clusterName": "east", "replicationJob": "external", "managedLedgerMaxEntriesPerLedger": "5"}
    with InProcessBroker(tmp_path, {**keys, "managedLedgerMinLedgerRolloverTimeMinutes": "0"}) as broker:
        address = SiteAddress(cluster="east", service_url=broker.service_url, admin_url=broker.web_url)
        access = SiteAccess("east", address, "west", (NAMESPACE,))
        yield access
        await access.close()


async def publish(site: SiteAccess, count: int, clusters: list[str] | None = None) -> list[Position]:
    producer = await site.client.create_producer(str(TOPIC), batching_enabled=False)
    async with producer:
        return [
            (await producer.send(str(number), replication_clusters=clusters)).position
            if clusters
            else (await producer.send(str(number))).position
            for number in range(count)
        ]


async def test_topics_when_listed_then_are_without_those_of_the_tool(site: SiteAccess) -> None:
    await site.admin.topics.create_partitioned(TOPIC, 2)
    await site.admin.topics.create("persistent://public/default/interpulse-failover-orders")
    assert await site.topics() == [TOPIC.partition(0), TOPIC.partition(1)]
    assert await site.kind() == OURS


async def test_first_to_copy_when_entries_are_for_other_clusters_then_passes_them(site: SiteAccess) -> None:
    local, own = await publish(site, 2), await publish(site, 3, ["east"])
    assert await site.first_to_copy(TOPIC, EARLIEST, own[-1]) == local[0]
    assert await site.first_to_copy(TOPIC, local[0], own[-1]) == local[1]
    assert await site.first_to_copy(TOPIC, local[1], own[-1]) is None
    assert await site.first_to_copy(TOPIC, own[-1], own[-1]) is None
    assert await site.last_copied(TOPIC) == EARLIEST


async def test_first_to_copy_when_everything_was_trimmed_then_there_is_none(site: SiteAccess) -> None:
    """The fence position is that of an entry that is gone."""
    own = await publish(site, 7, ["east"])
    await site.admin.topics.unload(TOPIC)
    async with asyncio.timeout(SECONDS_MAX):
        while (await site.end(TOPIC)).entry >= 0:
            await site.admin.topics.trim(TOPIC)
    for after in (own[1], EARLIEST):
        assert await site.first_to_copy(TOPIC, after, own[-1]) is None


async def test_first_to_copy_when_the_last_copy_was_trimmed_then_looks_at_what_is_left(site: SiteAccess) -> None:
    """The cursor of the way has passed what was trimmed, and only entries without a copy follow."""
    local, own = await publish(site, 12), await publish(site, 7, ["east"])
    await site.admin.topics.trim(TOPIC)
    kept = [int(row["ledgerId"]) for row in (await site.admin.topics.internal_stats(TOPIC))["ledgers"]]
    assert local[2].ledger not in kept
    assert await site.first_to_copy(TOPIC, local[2], own[-1]) in [None, *local]
    assert await site.first_to_copy(TOPIC, EARLIEST, own[-1]) in [None, *local]
