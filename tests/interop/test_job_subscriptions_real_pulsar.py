"""The replication job carries subscriptions along, where one of the clusters is a real Pulsar."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.interop.conftest import RealPulsarFactory
from tests.support.pipeline_turns import TOPIC, Broker, Job, subscriptions_go_along
from tests.support.two_sites import NAME, Sites
from tests.support.two_sites import TOPIC as ORDERS

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def carry_along(directory: Path, east: Broker, west: Broker, cursor: str, *, into_use: bool) -> None:
    job = Job(directory, east, west)
    try:
        await job.east.topics.create_partitioned(TOPIC, 2)
        await subscriptions_go_along(job, cursor, into_use=into_use)
    finally:
        await job.pipeline.stop()
        await asyncio.gather(job.east.close(), job.west.close())


async def test_subscriptions_go_along_to_a_real_pulsar(tmp_path: Path, start_real_pulsar: RealPulsarFactory) -> None:
    west = start_real_pulsar("west").address
    with InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east:
        await carry_along(tmp_path / "job", east, west, "pulsar.repl.west", into_use=False)


async def test_subscriptions_go_along_from_a_real_pulsar(tmp_path: Path, start_real_pulsar: RealPulsarFactory) -> None:
    east = start_real_pulsar("east").address
    with InProcessBroker(tmp_path / "west", {"clusterName": "west"}) as west:
        await carry_along(tmp_path / "job", east, west, "interpulse.t", into_use=True)


async def test_ranges_and_parts_of_batches_arrive_at_a_real_pulsar_which_users_may_join_at_any_time(
    tmp_path: Path, start_real_pulsar: RealPulsarFactory
) -> None:
    """F09 of the specification."""
    west = start_real_pulsar("west", {"acknowledgmentAtBatchIndexLevelEnabled": "true"}).address
    with InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east:
        sites = Sites(tmp_path / "jobs", east, west)
        topics = sites.admins["east"].topics
        await topics.create(ORDERS)
        await topics.create_subscription(ORDERS, NAME, MessageId(*EARLIEST), replicated=True)
        sites.start("east")
        await sites.ready()
        await sites.publish("east", range(100))
        await sites.publish("east", range(100, 110), batch=10)
        await sites.copy("east")
        done = {*range(10), *range(20, 30), 55, 100, 103}
        await sites.take("east", 110, done.__contains__)

        async def is_carried() -> bool:
            return sum(event.get("acknowledged", 0) for event in sites.events) >= 22

        await sites.until(is_carried)
        shown = (await sites.admins["west"].topics.internal_stats(ORDERS))["cursors"][NAME]
        assert [span.count(":") for span in shown["individuallyDeletedMessages"].split(",")] == [2, 2]
        stats = (await sites.admins["west"].topics.stats(ORDERS))["subscriptions"][NAME]
        assert (stats["consumers"], stats["isReplicated"]) == ([], True)
        async with asyncio.timeout(60):
            consumer = await sites.clients["west"].subscribe(str(ORDERS), NAME, subscription_type="exclusive")
        received = [int((await consumer.receive()).content or b"") for _ in range(110 - len(done))]
        assert received == [number for number in range(110) if number not in done]
        await sites.close()


async def test_a_subscription_in_use_at_a_real_pulsar_is_moved_by_an_update(
    tmp_path: Path, start_real_pulsar: RealPulsarFactory
) -> None:
    """F10 of the specification."""
    west = start_real_pulsar("west").address
    with InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east:
        sites = Sites(tmp_path / "jobs", east, west)
        here, there = sites.admins["east"], sites.admins["west"]
        await there.clusters.create("east", ClusterData(service_url=east.web_url, broker_service_url=east.service_url))
        await there.tenants.update("public", TenantInfo(allowed_clusters=("east", "west")))
        await here.topics.create(ORDERS)
        await here.topics.create_subscription(ORDERS, NAME, MessageId(*EARLIEST), replicated=True)
        sites.start("east")
        await sites.ready()
        await there.namespaces.set_replication_clusters("public/default", ["east", "west"])
        await sites.publish("east", range(30))
        await sites.copy("east")

        async def has_subscription() -> bool:
            return await sites.backlog("west") >= 0

        await sites.until(has_subscription)
        consumer = await sites.clients["west"].subscribe(str(ORDERS), NAME, subscription_type="failover")
        assert (await consumer.receive()).content == b"0"
        await sites.take("east", 30, range(10).__contains__)

        async def is_moved() -> bool:
            shown = (await there.topics.internal_stats(ORDERS))["cursors"][NAME]
            return str(shown["markDeletePosition"]).endswith(":9")

        await sites.until(is_moved)
        stored = (await there.topics.internal_stats(ORDERS))["numberOfEntries"]
        found = [await header_of_entry(west, number) for number in range(1, stored + 1)]
        assert found.count((str(pb.REPLICATED_SUBSCRIPTION_UPDATE), "east")) == 1
        await sites.close()


async def header_of_entry(cluster: Broker, number: int) -> tuple[str | None, str | None]:
    """Return the type of a stored marker and the cluster that it came from, of the entry of that number."""
    path = f"{cluster.web_url}/admin/v2/persistent/public/default/orders/examinemessage"
    query = {"initialPosition": "earliest", "messagePosition": str(number)}
    async with aiohttp.ClientSession() as http, http.get(path, params=query) as answer:
        return answer.headers.get("X-Pulsar-marker-type"), answer.headers.get("X-Pulsar-replicated-from")
