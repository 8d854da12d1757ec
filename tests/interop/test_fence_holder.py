"""The fence around a namespace of a real Pulsar, and producers of the official client that it shuts out."""

from __future__ import annotations

import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pulsar
import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.config import BrokerAddress
from interpulse.client.lookup.binary_lookup import BinaryLookup
from interpulse.failover.fence_holder import FenceHolder, auto_creation, restore_auto_creation
from interpulse.failover.pair_config import SiteAddress
from interpulse.failover.site import SiteAccess
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_records import AutoTopicCreation
from tests.interop.real_pulsar import Address
from tests.support.official_client import connected
from tests.support.tcp_relay import TcpRelay
from tests.support.waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PARTITIONS = 3
SEND_TIMEOUT_MS = 300_000


class Sending:
    """Messages that were sent, and the positions of those that the broker has stored."""

    def __init__(self, producer: pulsar.Producer) -> None:
        self._producer = producer
        self._lock = threading.Lock()
        self.sent = 0
        self.stored: list[Position] = []

    def send(self, count: int = 1) -> None:
        for _ in range(count):
            self.sent += 1
            self._producer.send_async(b"%d" % self.sent, self._note)

    def _note(self, result: pulsar.Result, message_id: pulsar.MessageId) -> None:
        assert result == pulsar.Result.Ok
        with self._lock:
            self.stored.append(Position(message_id.ledger_id(), message_id.entry_id()))

    @property
    def is_stored(self) -> bool:
        return len(self.stored) == self.sent


@pytest.fixture
async def access(real_pulsar: Address) -> AsyncIterator[SiteAccess]:
    namespace = NamespaceName.parse(f"public/fence-{uuid.uuid4().hex[:8]}")
    made = access_through(real_pulsar.service_url, real_pulsar, namespace)
    await made.admin.namespaces.create(namespace)
    await made.admin.topics.create_partitioned(f"persistent://{namespace}/paid", PARTITIONS)
    await made.admin.topics.create(f"persistent://{namespace}/sent")
    yield made
    await made.close()


def access_through(service_url: str, pulsar: Address, namespace: NamespaceName) -> SiteAccess:
    address = SiteAddress(cluster="standalone", service_url=service_url, admin_url=pulsar.web_url)
    return SiteAccess("east", address, "west", (namespace,))


async def publishers(admin: AdminClient, topic: TopicName | str) -> list[str]:
    return [each["producerName"] for each in (await admin.topics.stats(topic))["publishers"]]


async def test_fence_when_held_then_producers_wait_until_it_is_released(
    real_pulsar: Address, access: SiteAccess
) -> None:
    admin, (namespace,) = access.admin, access.namespaces
    topic = f"persistent://{namespace}/sent"
    with connected(real_pulsar.service_url) as client:
        producer = client.create_producer(topic, send_timeout_millis=SEND_TIMEOUT_MS, batching_enabled=False)
        sending = Sending(producer)
        sending.send(50)
        before = await auto_creation(admin, [namespace])
        async with FenceHolder(access, "orders", 5, look_s=0.2) as holder:
            await holder.hold()
            assert len(holder.topics) == PARTITIONS + 1
            assert [await publishers(admin, name) for name in holder.topics] == [[holder.name]] * (PARTITIONS + 1)
            sending.send(10)
            end = (await holder.positions())[TopicName.parse(topic)]
            await eventually(lambda: sending.stored and max(sending.stored) == end)
            stored = len(sending.stored)
            with pytest.raises(pulsar.TopicNotFound):
                client.create_producer(f"persistent://{namespace}/created-meanwhile")
            assert (await holder.positions())[TopicName.parse(topic)] == end
            assert (stored, holder.gaps()) == (len(sending.stored), [])
            await holder.close()
            await restore_auto_creation(access.admin, before)
        await eventually(lambda: sending.is_stored)
    assert stored < len(sending.stored)
    assert await admin.namespaces.auto_topic_creation(namespace) is None
    assert before == {namespace: None}


async def test_topic_when_it_appears_or_is_unloaded_then_is_fenced_again(
    real_pulsar: Address, access: SiteAccess
) -> None:
    admin, (namespace,) = access.admin, access.namespaces
    async with FenceHolder(access, "orders", 5, look_s=0.2) as holder:
        await holder.hold()
        sent, new = (TopicName.parse(f"persistent://{namespace}/{name}") for name in ("sent", "new"))
        await admin.topics.create(new)
        await eventually(lambda: new in holder.topics and not holder.open_topics)
        await admin.topics.unload(sent)
        await eventually(lambda: len(holder.gaps()) == 2 and not holder.open_topics)
        assert [gap.topic for gap in holder.gaps()] == [new, sent]
        assert all(gap.ended_ms is not None for gap in holder.gaps())
        assert await publishers(admin, sent) == [holder.name]


async def test_fence_when_its_connection_is_cut_then_messages_of_the_gap_are_before_the_new_end(
    real_pulsar: Address, access: SiteAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, (namespace,) = access.admin, access.namespaces
    topic = TopicName.parse(f"persistent://{namespace}/sent")
    async with AsyncExitStack() as open_relay:
        relay = TcpRelay(real_pulsar.service_url.removeprefix("pulsar://"))
        await relay.listen()
        open_relay.push_async_callback(relay.close)

        look_up = BinaryLookup.broker

        async def through_relay(lookup: BinaryLookup, name: TopicName) -> BrokerAddress:
            await look_up(lookup, name)  # its broker takes the topic
            return BrokerAddress.parse(f"pulsar://{relay.address}")

        monkeypatch.setattr(BinaryLookup, "broker", through_relay)
        with connected(real_pulsar.service_url) as client:
            producer = client.create_producer(str(topic), send_timeout_millis=SEND_TIMEOUT_MS, batching_enabled=False)
            sending = Sending(producer)
            cut = access_through(f"pulsar://{relay.address}", real_pulsar, namespace)
            open_relay.push_async_callback(cut.close)
            async with FenceHolder(cut, "orders", 5) as holder:
                await holder.hold()
                first_end = (await holder.positions())[topic]
                relay.hold()
                relay.cut()
                sending.send(10)
                await eventually(lambda: sending.is_stored)
                relay.let_go()
                await eventually(lambda: holder.gaps() and not holder.open_topics)
                end = (await holder.positions())[topic]
                assert first_end < max(sending.stored) <= end
                assert len(holder.gaps()) == PARTITIONS + 1
                assert all(gap.ended_ms for gap in holder.gaps())
                assert await publishers(admin, topic) == [holder.name]
    assert await admin.namespaces.auto_topic_creation(namespace) == AutoTopicCreation(False)
