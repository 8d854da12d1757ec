"""Requests about topics and subscriptions: method, path, query and body are what Pulsar's own admin client sends."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.ids import ChunkMessageId, MessageId, Position
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import InactiveTopicPolicies
from interpulse.model.topics import PartitionedTopicMetadata
from tests.support.stub_web import StubWeb

TOPIC = TopicName.parse("persistent://t/ns/a b")
ROOT = "/admin/v2/persistent/t/ns/a+b"
LATEST = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1, "partitionIndex": -1, "batchIndex": -1}
POSITION = {"ledgerId": 3, "entryId": 4, "partitionIndex": -1, "batchIndex": -1}
CHUNKED = ChunkMessageId(3, 4, -1, -1, Position(2, 9))
STATS = "getPreciseBacklog=false&subscriptionBacklogSize=true&getEarliestTimeInBacklog=false"

Call = Callable[[AdminClient], Awaitable[Any]]


@pytest.mark.parametrize(
    ("call", "method", "target", "body"),
    [
        (lambda a: a.topics.create(TOPIC), "PUT", ROOT, {}),
        (lambda a: a.topics.create("t/ns/a b", {"k": "v"}), "PUT", ROOT, {"k": "v"}),
        (lambda a: a.topics.create_partitioned(TOPIC, 3), "PUT", f"{ROOT}/partitions?createLocalTopicOnly=false", 3),
        (
            lambda a: a.topics.create_partitioned(TOPIC, 3, properties={"k": "v"}, local_only=True),
            "PUT",
            f"{ROOT}/partitions?createLocalTopicOnly=true",
            {"partitions": 3, "properties": {"k": "v"}},
        ),
        (
            lambda a: a.topics.expand(TOPIC, 5, local_only=True),
            "POST",
            f"{ROOT}/partitions?updateLocalTopicOnly=true&force=false",
            5,
        ),
        (lambda a: a.topics.create_missed_partitions(TOPIC), "POST", f"{ROOT}/createMissedPartitions", None),
        (lambda a: a.topics.delete(TOPIC), "DELETE", f"{ROOT}?force=false&deleteSchema=true", None),
        (
            lambda a: a.topics.delete_partitioned(TOPIC, force=True),
            "DELETE",
            f"{ROOT}/partitions?force=true&deleteSchema=true",
            None,
        ),
        (
            lambda a: a.topics.set_inactive_topic_policies(TOPIC, InactiveTopicPolicies("m", 5, False)),
            "POST",
            f"{ROOT}/inactiveTopicPolicies",
            {"inactiveTopicDeleteMode": "m", "maxInactiveDurationSeconds": 5, "deleteWhileInactive": False},
        ),
        (lambda a: a.topics.remove_inactive_topic_policies(TOPIC), "DELETE", f"{ROOT}/inactiveTopicPolicies", None),
        (lambda a: a.topics.unload(TOPIC), "PUT", f"{ROOT}/unload", None),
        (lambda a: a.topics.truncate(TOPIC), "DELETE", f"{ROOT}/truncate", None),
        (lambda a: a.topics.trim(TOPIC), "POST", f"{ROOT}/trim", None),
        (lambda a: a.topics.compact(TOPIC), "PUT", f"{ROOT}/compaction", None),
        (lambda a: a.topics.update_properties(TOPIC, {"k": "v"}), "PUT", f"{ROOT}/properties", {"k": "v"}),
        (lambda a: a.topics.remove_property(TOPIC, "k &"), "DELETE", f"{ROOT}/properties?key=k+%26", None),
        (lambda a: a.topics.expire(TOPIC, "s", 9), "POST", f"{ROOT}/subscription/s/expireMessages/9", None),
        (
            lambda a: a.topics.expire_upto(TOPIC, "s", MessageId(3, 4), excluded=True),
            "POST",
            f"{ROOT}/subscription/s/expireMessages",
            POSITION | {"excluded": True},
        ),
        (lambda a: a.topics.expire_all(TOPIC, 9), "POST", f"{ROOT}/all_subscription/expireMessages/9", None),
        (
            lambda a: a.topics.set_subscription_properties(TOPIC, "s", {"k": "v"}),
            "PUT",
            f"{ROOT}/subscription/s/properties",
            {"k": "v"},
        ),
        (
            lambda a: a.topics.set_subscription_replicated(TOPIC, "s", False),
            "POST",
            f"{ROOT}/subscription/s/replicatedSubscriptionStatus",
            False,
        ),
        (
            lambda a: a.topics.create_subscription(TOPIC, "s /1"),
            "PUT",
            f"{ROOT}/subscription/s%2B%252F1?replicated=false",
            LATEST,
        ),
        (
            lambda a: a.topics.create_subscription(TOPIC, "s", MessageId(3, 4), replicated=True, properties={"k": "v"}),
            "PUT",
            f"{ROOT}/subscription/s?replicated=true",
            POSITION | {"properties": {"k": "v"}},
        ),
        (lambda a: a.topics.delete_subscription(TOPIC, "s"), "DELETE", f"{ROOT}/subscription/s?force=false", None),
        (lambda a: a.topics.reset_cursor_to_time(TOPIC, "s", 7), "POST", f"{ROOT}/subscription/s/resetcursor/7", None),
        (
            lambda a: a.topics.reset_cursor_to_message(TOPIC, "s", CHUNKED),
            "POST",
            f"{ROOT}/subscription/s/resetcursor",
            POSITION | {"ledgerId": 2, "entryId": 9, "excluded": False},
        ),
        (
            lambda a: a.topics.reset_cursor_to_message(TOPIC, "s", CHUNKED, excluded=True),
            "POST",
            f"{ROOT}/subscription/s/resetcursor",
            POSITION | {"excluded": True},
        ),
        (
            lambda a: a.topics.reset_cursor_to_message(TOPIC, "s", MessageId(3, 4), excluded=True),
            "POST",
            f"{ROOT}/subscription/s/resetcursor",
            POSITION | {"excluded": True},
        ),
        (lambda a: a.topics.skip(TOPIC, "s", 9), "POST", f"{ROOT}/subscription/s/skip/9", None),
        (lambda a: a.topics.skip_all(TOPIC, "s"), "POST", f"{ROOT}/subscription/s/skip_all", None),
        (lambda a: a.topics.replication_clusters(TOPIC), "GET", f"{ROOT}/replication?applied=false", None),
        (lambda a: a.topics.set_replication_clusters(TOPIC, ["x", "y"]), "POST", f"{ROOT}/replication", ["x", "y"]),
        (lambda a: a.topics.remove_replication_clusters(TOPIC), "DELETE", f"{ROOT}/replication", None),
    ],
)
async def test_change_when_asked_for_then_request_is_as_pulsars(
    web: StubWeb, admin: AdminClient, call: Call, method: str, target: str, body: Any
) -> None:
    assert await call(admin) is None
    assert (web.last.method, web.last.target, web.last.body) == (method, target, body)


@pytest.mark.parametrize(
    ("call", "target", "answer", "value"),
    [
        (
            lambda a: a.topics.partitioned_metadata(TOPIC),
            f"{ROOT}/partitions?checkAllowAutoCreation=false",
            {"partitions": 2, "deleted": False, "properties": {"k": "v"}, "new": 1},
            PartitionedTopicMetadata(2, properties={"k": "v"}, other={"new": 1}),
        ),
        (lambda a: a.topics.stats(TOPIC), f"{ROOT}/stats?{STATS}", {"x": 1}, {"x": 1}),
        (
            lambda a: a.topics.partitioned_stats(TOPIC, per_partition=False),
            f"{ROOT}/partitioned-stats?{STATS}&perPartition=false",
            {"x": 1},
            {"x": 1},
        ),
        (lambda a: a.topics.internal_stats(TOPIC), f"{ROOT}/internalStats?metadata=false", {"x": 1}, {"x": 1}),
        (lambda a: a.topics.subscriptions(TOPIC), f"{ROOT}/subscriptions", ["s"], ["s"]),
        (
            lambda a: a.topics.last_message_id(TOPIC),
            f"{ROOT}/lastMessageId",
            {"ledgerId": 1, "entryId": 2, "partitionIndex": 3, "batchIndex": 4, "batchSize": 5},
            MessageId(1, 2, 3, 4),
        ),
        (lambda a: a.topics.replication_status(TOPIC), f"{ROOT}/replication/status", [{"x": 1}], [{"x": 1}]),
        (
            lambda a: a.topics.subscription_replicated(TOPIC, "s"),
            f"{ROOT}/subscription/s/replicatedSubscriptionStatus",
            {"persistent://t/ns/a b": True},
            {"persistent://t/ns/a b": True},
        ),
        (
            lambda a: a.lookup.topic(TOPIC),
            "/lookup/v2/topic/persistent/t/ns/a+b",
            {"brokerUrl": "x"},
            {"brokerUrl": "x"},
        ),
    ],
)
async def test_question_when_asked_then_answer_is_read(
    web: StubWeb, admin: AdminClient, call: Call, target: str, answer: Any, value: Any
) -> None:
    web.answer("GET", target.partition("?")[0], answer)
    assert await call(admin) == value
    assert web.last.target == target


async def test_acknowledgements_when_sent_then_the_number_of_new_ones_is_read(web: StubWeb, admin: AdminClient) -> None:
    web.answer("POST", f"{ROOT}/subscription/s/acknowledgements", {"new": 17})
    masks = [(3, 8, [-2])]
    new = await admin.topics.acknowledge(TOPIC, "s", resets=1, mark_delete=Position(3, 4), masks=masks)
    assert (new, web.last.method) == (17, "POST")
    body = {"resets": 1, "resetAs": None, "markDelete": "3:4", "ranges": [], "masks": [[3, 8, [-2]]]}
    assert web.last.body == body


async def test_metadata_when_asked_with_creation_then_says_so(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", f"{ROOT}/partitions", {"partitions": 0, "deleted": False})
    await admin.topics.partitioned_metadata(TOPIC, create=True)
    assert web.last.target.endswith("?checkAllowAutoCreation=true")


async def test_list_when_both_domains_are_wanted_then_both_are_asked(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", "/admin/v2/persistent/t/ns", ["persistent://t/ns/a"])
    web.answer("GET", "/admin/v2/non-persistent/t/ns", ["non-persistent://t/ns/b"])
    assert await admin.topics.list("t/ns") == ["persistent://t/ns/a", "non-persistent://t/ns/b"]
    assert await admin.topics.list("t/ns", domains=["persistent"]) == ["persistent://t/ns/a"]
    assert {asked.target.partition("?")[2] for asked in web.asked} == {"includeSystemTopic=false"}


async def test_list_when_properties_are_given_then_are_encoded_one_by_one(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", "/admin/v2/persistent/t/ns", [])
    await admin.topics.list("t/ns", domains=["persistent"], properties={"a": "b", "k,=": "ü %+"})
    (properties,) = parse_qs(web.last.target.partition("?")[2])["properties"]
    assert properties == "a=b,k%2C%3D=%C3%BC%20%25%2B"


async def test_partitioned_list_when_asked_then_wants_base_names(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", "/admin/v2/persistent/t/ns/partitioned", ["persistent://t/ns/p"])
    topics = await admin.topics.list_partitioned("t/ns", domains=["persistent"], system_included=True)
    assert topics == ["persistent://t/ns/p"]
    assert web.last.target == "/admin/v2/persistent/t/ns/partitioned?includeSystemTopic=true"


async def test_termination_when_answered_then_gives_last_ids(web: StubWeb, admin: AdminClient) -> None:
    last = {"ledgerId": 1, "entryId": 2, "partitionIndex": -1}
    web.answer("POST", f"{ROOT}/terminate", last)
    web.answer("POST", f"{ROOT}/terminate/partitions", {"0": last, "1": last})
    assert await admin.topics.terminate(TOPIC) == MessageId(1, 2)
    assert await admin.topics.terminate_partitioned(TOPIC) == {0: MessageId(1, 2), 1: MessageId(1, 2)}


async def test_replication_clusters_when_set_then_are_read(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", f"{ROOT}/replication", ["x"])
    assert await admin.topics.replication_clusters(TOPIC, applied=True) == ["x"]
