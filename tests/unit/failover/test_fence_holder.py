"""The fence around a namespace: a broker whose answers the test chooses, and its administration as plain records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.failover.fence_holder import FenceHolder, auto_creation, restore_auto_creation
from interpulse.failover.pair_config import SiteAddress
from interpulse.failover.site import SiteAccess
from interpulse.model.errors import AuthorizationError, ServiceNotReady, TopicNotFound
from interpulse.model.ids import Position
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_records import AutoTopicCreation
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker
from tests.support.waiting import eventually

ORDERS, BILLING = NamespaceName.parse("shop/orders"), NamespaceName.parse("shop/billing")
CONTROL = TopicName.parse("persistent://shop/orders/interpulse-failover-orders")
PRODUCER, CLOSE = pb.BaseCommand.PRODUCER, pb.BaseCommand.CLOSE_PRODUCER
OVERRIDE = AutoTopicCreation(True, "partitioned", 4)


class Records:
    """Topics and overrides of two namespaces. Plays the admin client."""

    def __init__(self) -> None:
        names = ("paid-partition-0", "paid-partition-1", "sent", "__change_events", CONTROL.local_name)
        self.names = [f"persistent://{ORDERS}/{name}" for name in names]
        self.overrides: dict[NamespaceName, AutoTopicCreation | None] = {ORDERS: OVERRIDE, BILLING: None}
        self.is_listed = True
        self.topics = self.namespaces = self

    async def list(self, namespace: NamespaceName) -> list[str]:
        if not self.is_listed:
            raise ServiceNotReady("no list")
        return [name for name in self.names if name.startswith(f"persistent://{namespace}/")]

    async def auto_topic_creation(self, namespace: NamespaceName) -> AutoTopicCreation | None:
        return self.overrides[namespace]

    async def set_auto_topic_creation(self, namespace: NamespaceName, policy: AutoTopicCreation) -> None:
        self.overrides[namespace] = policy

    async def remove_auto_topic_creation(self, namespace: NamespaceName) -> None:
        self.overrides[namespace] = None


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    async with ScriptedBroker() as scripted:
        yield scripted


@pytest.fixture
async def access(broker: ScriptedBroker, records: Records) -> AsyncIterator[SiteAccess]:
    address = SiteAddress(cluster="east", service_url=broker.url, admin_url="http://127.0.0.1:1")
    made = SiteAccess("east", address, "west", (ORDERS, BILLING))
    await made.admin.close()
    made.admin = cast(AdminClient, records)
    yield made
    await made.client.close()


@pytest.fixture
async def holder(access: SiteAccess) -> AsyncIterator[FenceHolder]:
    async with FenceHolder(access, "orders", 5, look_s=0.01) as made:
        yield made


def locals_of(topics: list[TopicName]) -> list[str]:
    return [topic.local_name for topic in topics]


def refuse(broker: ScriptedBroker, topic: str, refusal: Exception) -> None:
    """Refuse the producers of one topic from now on."""

    def answer(peer: Peer, frame: Frame) -> None:
        wanted = frame.command.producer
        if wanted.topic.endswith(topic):
            peer.say(commands.error_of(wanted.request_id, cast(Any, refusal)))
        else:
            peer.answer(frame)

    broker.scripts[PRODUCER] = answer


async def test_hold_when_namespaces_have_topics_then_fences_all_but_system_and_exempt_ones(
    broker: ScriptedBroker, records: Records, holder: FenceHolder
) -> None:
    await holder.hold()
    assert locals_of(holder.topics) == ["paid-partition-0", "paid-partition-1", "sent"]
    assert {command.producer.producer_name for command in broker.all_of(PRODUCER)} == {"interpulse.fence.orders.e5"}
    assert (holder.open_topics, holder.gaps()) == ([], [])
    assert records.overrides == {ORDERS: AutoTopicCreation(False), BILLING: AutoTopicCreation(False)}
    broker.last = (7, 3)
    assert await holder.positions() == dict.fromkeys(holder.topics, Position(7, 3))


async def test_close_when_overrides_were_read_before_then_they_can_be_put_back(
    broker: ScriptedBroker, records: Records, access: SiteAccess, holder: FenceHolder
) -> None:
    before = await auto_creation(access.admin, [ORDERS, BILLING])
    await holder.hold()
    await holder.close()
    await restore_auto_creation(access.admin, before)
    assert records.overrides == {ORDERS: OVERRIDE, BILLING: None}
    assert broker.count(CLOSE) == 3


async def test_hold_when_one_topic_is_refused_then_raises_and_holds_none(
    broker: ScriptedBroker, holder: FenceHolder
) -> None:
    refuse(broker, "sent", AuthorizationError("no right to produce"))
    with pytest.raises(AuthorizationError, match="no right to produce"):
        await holder.hold()
    assert locals_of(holder.open_topics) == locals_of(holder.topics)


async def test_hold_when_a_topic_is_deleted_meanwhile_then_goes_on_without_it(
    broker: ScriptedBroker, holder: FenceHolder
) -> None:
    refuse(broker, "sent", TopicNotFound("gone"))
    await holder.hold()
    assert holder.open_topics == []


async def test_topic_when_it_appears_then_is_fenced_with_a_gap_since_the_last_look(
    records: Records, holder: FenceHolder
) -> None:
    held_ms = await holder.hold()
    records.names.append(f"persistent://{BILLING}/new")
    await eventually(lambda: len(holder.topics) == 4 and not holder.open_topics)
    (gap,) = holder.gaps()
    assert (gap.topic.local_name, gap.reason) == ("new", "the topic appeared while the namespace was fenced")
    assert gap.ended_ms is not None
    assert held_ms - 60_000 < gap.began_ms <= gap.ended_ms


async def test_topic_when_it_disappears_then_its_fence_ends_and_its_gaps_stay(
    broker: ScriptedBroker, records: Records, holder: FenceHolder
) -> None:
    await holder.hold()
    broker.peers[-1].drop()
    await eventually(lambda: len(holder.gaps()) == 3 and not holder.open_topics)
    del records.names[2]
    await eventually(lambda: locals_of(holder.topics) == ["paid-partition-0", "paid-partition-1"])
    assert len(holder.gaps()) == 3


async def test_fence_when_reopening_is_refused_then_is_tried_at_each_look(
    broker: ScriptedBroker, records: Records, holder: FenceHolder, caplog: pytest.LogCaptureFixture
) -> None:
    await holder.hold()
    refuse(broker, "sent", AuthorizationError("no right to produce"))
    broker.peers[-1].drop()
    await eventually(lambda: "topic is not fenced" in caplog.text)
    await eventually(lambda: locals_of(holder.open_topics) == ["sent"])
    records.is_listed = False
    await eventually(lambda: "cannot be listed" in caplog.text)
    records.is_listed = True
    broker.scripts.clear()
    await eventually(lambda: not holder.open_topics)
    assert [gap.ended_ms is None for gap in holder.gaps()] == [False] * 3
