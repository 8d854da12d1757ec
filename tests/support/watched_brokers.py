"""Brokers that have something to show in every metric."""

from __future__ import annotations

import asyncio

import pytest

from interpulse.broker.app import BrokerApp
from interpulse.broker.replication.replication_supervisor import ReplicationSupervisor
from interpulse.client import Client
from interpulse.client.credentials import Credentials
from interpulse.model.errors import AuthenticationError
from interpulse.testing import InProcessBroker
from interpulse.testing.cluster_pair import ClusterPair
from tests.front_ends import access
from tests.support.rest_client import call
from tests.support.waiting import eventually

NAMESPACE = "public/default"
TOPIC = f"persistent://{NAMESPACE}/watched"
_QUOTA = {"limitSize": 10_000_000, "limitTime": 1000, "policy": "producer_request_hold"}
_PROGRESS = {"event": "progress", "cluster": "west", "batchId": 1, "phasesMs": {"addBatch": 120, "latestOffset": 3}}


async def show_replication(pair: ClusterPair) -> None:
    """Replicate a topic from east to west, that has limits, schemas, messages and consumers, and is held."""
    east, namespace = pair.east, f"namespaces/{NAMESPACE}"
    assert (await call(east.web_url, "POST", f"{namespace}/backlogQuota", _QUOTA)).status == 204
    await keep_busy(east)
    reply = await call(east.web_url, "PUT", f"persistent/{NAMESPACE}/x-partition-0/subscription/s")
    assert reply.status == 409, "it disagrees with its metadata"
    assert (await call(east.web_url, "POST", f"{namespace}/replication", ["east", "west"])).status == 204
    await eventually(lambda: east.app.parts.replication.remote_topics.results)
    record = {"topic": TOPIC, "cluster": "west", "state": "HELD", "reason": "no", "remedy": "yes"}
    lag = {"since": 9_999_999_999_999, "lagEntries": 3, "lagMessages": 5, "lagSeconds": 600.5}
    assert (await call(east.web_url, "POST", f"{namespace}/replication/status", [{**record, **lag}])).status == 204
    await asyncio.to_thread(east.call, _report_progress)


async def _report_progress(app: BrokerApp) -> None:
    supervisor: ReplicationSupervisor = app.parts.replication.supervisor
    supervisor._take_line(_PROGRESS)


async def keep_busy(broker: InProcessBroker, credentials: Credentials | None = None) -> None:
    """Publish two messages; one is acknowledged, one waits."""
    async with Client(broker.service_url, credentials=credentials) as client:
        consumer = await client.subscribe(TOPIC, "s")
        async with await client.create_producer(TOPIC, batching_enabled=False) as producer:
            await producer.send(b"1")
            await producer.send(b"2")
        consumer.acknowledge(await consumer.receive(60_000))


async def show_tokens(broker: InProcessBroker) -> None:
    """Come with a token that ends soon, with one that has ended, and with none."""
    soon, ended = (access.token("admin", expires_in_seconds=each) for each in (60, -60))
    await keep_busy(broker, Credentials.token(f"token:{soon}"))
    for credentials in (Credentials.token(f"token:{ended}"), None):
        with pytest.raises(AuthenticationError):
            await keep_busy(broker, credentials)
