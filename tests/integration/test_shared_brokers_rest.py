"""REST calls to several brokers over one metadata store: what is asked of which of them, and how answers are joined."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.client import AdminClient, Client
from interpulse.model.brokers import ListenerAddresses
from interpulse.model.clusters import ClusterData
from interpulse.model.errors import PreconditionFailed, PulsarError, ServiceNotReady, TopicNotFound, UnknownError
from interpulse.model.names import NamespaceName, TopicName
from tests.support.rest_client import call
from tests.support.shared_brokers import SharedBroker, SharedBrokers, shared_brokers
from tests.support.stub_web import StubWeb

NAMESPACE = NamespaceName("public", "default")
TOPIC = "persistent://public/default/x"
BASE = "persistent://public/default/p"
PARTITION = TopicName.parse(f"{BASE}-partition-0")
PATH = "persistent/public/default/p"


@pytest.fixture
async def brokers() -> AsyncIterator[SharedBrokers]:
    """Three of them, which authenticate by a token where they ask each other."""
    config = BrokerConfig(
        broker_client_authentication_plugin="token", broker_client_authentication_parameters="token:of-the-brokers"
    )
    async with shared_brokers(3, config) as started:
        yield started


# --- peers


async def test_partitions_when_a_peer_cluster_serves_them_then_it_is_named_and_not_asked(
    brokers: SharedBrokers,
) -> None:
    app = brokers[0].app
    async with AdminClient(brokers[0].web_url) as admin:
        await admin.topics.create_partitioned(BASE, 2)
    with StubWeb() as peer:
        await app.context.clusters.create(
            "peer", ClusterData(service_url=peer.url, broker_service_url="pulsar://127.0.0.1:1")
        )
        await app.context.clusters.set_peers("standalone", ["peer"])
        await app.context.namespaces.update_policies(
            NAMESPACE, lambda old: old.changed(replication_clusters=("peer",), allowed_clusters=())
        )
        reply = await call(brokers[0].web_url, "DELETE", f"{PATH}/partitions?force=true")
        assert peer.asked == []
    assert (reply.status, reply.reason) == (
        412,
        f"Namespace public/default is served by a peer cluster, ask that one: {peer.url}",
    )


async def test_another_broker_when_it_redirects_then_is_followed_to_registered_brokers_only(
    brokers: SharedBrokers,
) -> None:
    others = brokers[0].app.context.others
    assert others is not None
    with StubWeb() as broker, StubWeb() as stranger:
        broker.answer_raw("GET", "/x", b"", status=307, headers={"Location": f"{stranger.url}/x"})
        with pytest.raises(UnknownError, match="which is not trusted with the credentials"):
            await others.ask(ListenerAddresses(web_url=broker.url), "GET", "/x", kind="topic")
        broker.answer_raw("GET", "/y", b"", status=307, headers={"Location": f"{brokers[1].web_url}/livez"})
        assert await others.ask(ListenerAddresses(web_url=broker.url), "GET", "/y", kind="topic") == "ok"
        assert stranger.asked == []


# --- subscriptions of partitioned topics


async def test_subscription_when_no_partition_was_opened_yet_then_all_get_it(brokers: SharedBrokers) -> None:
    await brokers[0].app.context.dynamic.set("allowAutoTopicCreationType", "partitioned")
    await brokers[0].app.context.dynamic.set("defaultNumPartitions", "8")
    await brokers[0].app.lifecycle.partitions(TopicName.parse(BASE), create=True)
    path = f"{PATH}/subscription/s"
    for broker in brokers.brokers:
        assert (await call(broker.web_url, "GET", f"{PATH}/subscriptions")).json == []
        assert (await call(broker.web_url, "GET", f"{path}/properties")).json == {}
    async with AdminClient(brokers[0].web_url) as admin:
        await admin.topics.create_subscription(BASE, "s", properties={"a": "1"})
        assert await admin.topics.list("public/default") == [f"{BASE}-partition-{index}" for index in range(8)]
        assert await admin.topics.subscriptions(BASE) == ["s"]
        for index in range(8):
            assert await admin.topics.subscriptions(f"{BASE}-partition-{index}") == ["s"]
    assert (await call(brokers[0].web_url, "GET", f"{path}/properties")).json == {"a": "1"}
    assert (await call(brokers[1].web_url, "PUT", path, {})).status == 409


async def test_subscription_when_the_topic_is_absent_then_all_partitions_are_created_with_it(
    brokers: SharedBrokers,
) -> None:
    for broker in brokers.brokers:
        await broker.app.context.dynamic.set("allowAutoTopicCreationType", "partitioned")
        await broker.app.context.dynamic.set("defaultNumPartitions", "8")
    async with AdminClient(brokers[0].web_url) as admin:
        await admin.topics.create_subscription(BASE, "s")
        for index in range(8):
            assert await admin.topics.subscriptions(f"{BASE}-partition-{index}") == ["s"]


# --- refusals of some


async def test_unsubscribe_when_an_owner_refuses_then_the_others_are_asked_all_the_same(brokers: SharedBrokers) -> None:
    topics = [f"persistent://public/default/t{number}" for number in range(12)]
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        for topic in topics:
            await client.create_producer(topic)
            await admin.topics.create_subscription(topic, "s")
        busy = topics[0]
        await brokers.move(busy, brokers[1])
        await client.subscribe(busy, "s")
        reply = await call(brokers[0].web_url, "POST", "namespaces/public/default/unsubscribe/s")
        assert reply.status == 412
        assert [topic for topic in topics if await admin.topics.subscriptions(topic)] == [busy]


async def test_partitions_when_one_refuses_then_the_answer_comes_when_all_have_answered(
    brokers: SharedBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered = [], []

    async def ask(web_url: str, method: str, path: str, **options: Any) -> None:
        asked.append(path)
        if len(asked) == 1:
            raise PreconditionFailed("refused")
        for _ in range(50):
            await asyncio.sleep(0)
        answered.append(path)

    async with AdminClient(brokers[0].web_url) as admin:
        await admin.topics.create_partitioned(BASE, 8)
        await admin.topics.create_subscription(BASE, "s")
        monkeypatch.setattr(brokers[0].app.context.others, "ask", ask)
        with pytest.raises(PreconditionFailed, match="refused"):
            await admin.topics.delete_subscription(BASE, "s")
        assert asked[1:] == answered != []


# --- bundles


async def test_topics_of_a_bundle_when_it_was_split_then_the_parts_are_known(brokers: SharedBrokers) -> None:
    async with AdminClient(brokers[0].web_url) as admin:
        await admin.topics.create(TOPIC)
        whole = await brokers[0].app.lookups.bundle(TopicName.parse(TOPIC))
        await admin.namespaces.split_bundle("public/default", whole)
        part = await brokers[0].app.lookups.bundle(TopicName.parse(TOPIC))
        assert part != whole
        for broker in brokers.brokers:
            listed = await call(broker.web_url, "GET", f"persistent/public/default?bundle={part}")
            assert (listed.status, listed.json) == (200, [TOPIC])
            assert (await call(broker.web_url, "GET", f"persistent/public/default?bundle={whole}")).status == 412


# --- deleting partitioned topics


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, asking: SharedBroker, act: Callable[[], Awaitable[object]]
) -> list[BaseException]:
    """Have ``act`` done after each answer of another broker to this one; what it raised."""
    others = asking.app.context.others
    assert others is not None
    ask, raised = others.ask, list[BaseException]()

    async def ask_and_act(*arguments: Any, **options: Any) -> Any:
        answer = await ask(*arguments, **options)
        try:
            await act()
        except PulsarError as error:
            raised.append(error)
        return answer

    monkeypatch.setattr(others, "ask", ask_and_act)
    return raised


async def one_partition(brokers: SharedBrokers) -> tuple[SharedBroker, SharedBroker]:
    """The owner of the only partition of a topic, and another broker."""
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        await admin.topics.create_partitioned(BASE, 1)
        await client.lookup_batch([str(PARTITION)])
    owner = await brokers.owner(str(PARTITION))
    return owner, brokers.other(owner)


async def test_delete_when_a_client_comes_back_and_it_is_forced_then_nothing_comes_back(
    brokers: SharedBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, other = await one_partition(brokers)
    refusals = meanwhile(monkeypatch, other, lambda: owner.app.registry.open(PARTITION))
    reply = await call(other.web_url, "DELETE", f"{PATH}/partitions?force=true")
    assert reply.status == 204
    assert [type(refusal) for refusal in refusals] == [TopicNotFound]
    assert PARTITION not in owner.app.registry.names
    assert await other.app.lifecycle.metadata(TopicName.parse(BASE)) is None
    assert not [key for key in brokers.tree.values if "/p-partition-" in key]


async def test_delete_when_a_client_comes_back_and_it_is_not_forced_then_is_refused(
    brokers: SharedBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, other = await one_partition(brokers)
    meanwhile(monkeypatch, other, lambda: owner.app.registry.open(PARTITION))
    reply = await call(other.web_url, "DELETE", f"{PATH}/partitions")
    assert reply.status == 412
    assert reply.reason.startswith(f"A partition of {BASE} was opened while it was deleted, delete it again")
    assert PARTITION in owner.app.registry.names
    assert (await call(other.web_url, "GET", f"{PATH}/partitions")).json["partitions"] == 1


async def test_delete_when_an_owner_fails_then_the_topic_can_be_used_on(
    brokers: SharedBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, other = await one_partition(brokers)

    async def fail(*arguments: Any, **options: Any) -> None:
        raise ServiceNotReady("not now")

    with monkeypatch.context() as patched:
        patched.setattr(other.app.context.others, "ask", fail)
        reply = await call(other.web_url, "DELETE", f"{PATH}/partitions?force=true")
    assert (reply.status, reply.reason) == (503, "not now")
    metadata = await other.app.lifecycle.metadata(TopicName.parse(BASE))
    assert metadata is not None
    assert not metadata.deleted
    await owner.app.registry.open(PARTITION)


async def test_delete_when_its_broker_died_before_the_end_then_another_finishes_it(brokers: SharedBrokers) -> None:
    owner, other = await one_partition(brokers)
    await owner.app.registry.open(PARTITION)
    assert await other.app.lifecycle.mark_deleted(TopicName.parse(BASE))
    await other.app.context.deletion.resume()
    assert PARTITION not in owner.app.registry.names
    assert await other.app.lifecycle.metadata(TopicName.parse(BASE)) is None
    assert not [key for key in brokers.tree.values if "/p-partition-" in key]


async def test_resume_when_another_call_deletes_the_namespace_meanwhile_then_it_is_no_error(
    brokers: SharedBrokers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    deletion = brokers[0].app.context.deletion

    async def unfinished() -> list[NamespaceName]:
        return [NamespaceName("public", "gone")]

    monkeypatch.setattr(deletion._namespaces, "unfinished_deletions", unfinished)
    await deletion.resume()
    assert "unfinished deletion failed" not in caplog.text


# --- topics that keep nothing


async def test_non_persistent_partitions_when_at_several_brokers_then_all_are_seen_and_deleted(
    brokers: SharedBrokers,
) -> None:
    base = "non-persistent://public/default/n"
    names = [f"{base}-partition-{index}" for index in range(8)]
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        await admin.topics.create_partitioned(base, 8)
        await brokers.spread(names)
        await client.create_producer(base)
        assert max(len(each.app.registry.names) for each in brokers.brokers) < 8
        for broker in brokers.brokers:
            async with AdminClient(broker.web_url) as asked:
                assert len((await asked.topics.partitioned_stats(base))["partitions"]) == 8
            listed = [f"namespaces/public/default/topics?mode={mode}" for mode in ("ALL", "NON_PERSISTENT")]
            for path in (*listed, "non-persistent/public/default"):
                assert (await call(broker.web_url, "GET", path)).json == names
            bundle = await broker.app.lookups.bundle(TopicName.parse(names[0]))
            reply = await call(broker.web_url, "GET", f"non-persistent/public/default?bundle={bundle}")
            assert names[0] in reply.json
        await admin.topics.delete_partitioned(base, force=True)
        assert not any(each.app.registry.names for each in brokers.brokers)


async def test_namespace_when_a_client_is_at_another_broker_then_is_not_deleted(brokers: SharedBrokers) -> None:
    topic = "non-persistent://public/n/t"
    async with AdminClient(brokers[0].web_url) as admin, Client(brokers[0].service_url) as client:
        await admin.namespaces.create("public/n")
        consumer = await client.subscribe(topic, "s")
        owner = await brokers.owner(topic)
        reply = await call(brokers.other(owner).web_url, "DELETE", "namespaces/public/n")
        assert (reply.status, reply.reason) == (409, "Cannot delete non empty namespace public/n")
        await consumer.close()
        await admin.topics.delete(topic)
        assert (await call(brokers.other(owner).web_url, "DELETE", "namespaces/public/n")).status == 204
