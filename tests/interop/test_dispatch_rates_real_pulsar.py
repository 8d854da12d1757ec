"""Where a replication job finds ``replicatorDispatchRate`` on a real Pulsar."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_records import DispatchRate
from interpulse.spark.job.routes.route_policies import DispatchRates
from interpulse.spark.reading.throttle import Rate
from tests.interop.real_pulsar import Address

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def test_rate_is_that_of_the_topic_else_of_the_namespace_else_of_the_broker(real_pulsar: Address) -> None:
    namespace = NamespaceName.parse(f"public/rates-{uuid4().hex[:8]}")
    topic = TopicName.parse(f"persistent://{namespace}/flights")
    async with AdminClient(real_pulsar.web_url) as admin:
        await admin.namespaces.create(namespace)
        await admin.topics.create_partitioned(topic, 2)

        async def until(rate: Rate | None) -> None:
            """Policies of topics take a moment to count."""
            async with asyncio.timeout(60):
                while True:
                    rates = DispatchRates(admin)
                    await rates.refresh([topic])
                    if rates.of(topic) == rate:
                        return
                    await asyncio.sleep(0.1)

        await until(None)
        await admin.namespaces.set_policy(
            namespace, "replicator_dispatch_rate", DispatchRate(-1, 500, period_seconds=2)
        )
        await until(Rate(-1, 500, 2))
        await admin.topic_policies.set(topic, "replicator_dispatch_rate", DispatchRate(5))
        await until(Rate(5, -1))
        await admin.topic_policies.remove(topic, "replicator_dispatch_rate")
        await until(Rate(-1, 500, 2))
        await admin.namespaces.remove_policy(namespace, "replicator_dispatch_rate")
        await until(None)
        await admin.brokers.set_dynamic_configuration("dispatchThrottlingRatePerReplicatorInMsg", "7")
        try:
            await until(Rate(7, 0))
        finally:
            await admin.brokers.delete_dynamic_configuration("dispatchThrottlingRatePerReplicatorInMsg")
