"""Messages read from REST answers, with the headers that a real broker sent."""

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.admin.messages import is_committed, is_marker, messages_in_answer
from interpulse.model.errors import SubscriptionNotFound, TopicNotFound, UnknownError
from interpulse.model.ids import MessageId
from interpulse.model.names import TopicName
from tests.support.stub_web import StubWeb

TOPIC = TopicName.parse("persistent://t/ns/a-partition-1")
PLAIN = {
    "X-Pulsar-Message-ID": "3:0",
    "X-Pulsar-PROPERTY": '{"a":"b","ü\\u003d":"é\\n"}',
    "X-Pulsar-Is-Encrypted": "false",
    "X-Pulsar-event-time": "1970-01-01T00:20:34.567Z",
    "X-Pulsar-publish-time": "2026-11-22T06:49:30.92Z",
    "X-Pulsar-deliver-at-time": "2030-03-17T17:46:40Z",
    "X-Pulsar-partition-key": "k:1",
    "X-Pulsar-producer-name": "standalone-0-0",
    "X-Pulsar-sequence-id": "7",
    "X-Pulsar-Base64-ordering-key": "b2s=",
    "X-Pulsar-Base64-schema-version": "AAAAAAAAAAA=",
    "X-Pulsar-replicated-from": "east",
    "X-Pulsar-txn-uncommitted": "false",
    "X-Pulsar-Broker-Entry-METADATA-timestamp": "1970-01-01T00:00:01Z",
    "X-Pulsar-Broker-Entry-METADATA-index": "5",
}
BATCH = {
    "X-Pulsar-Message-ID": "3:1",
    "X-Pulsar-PROPERTY": "{}",
    "X-Pulsar-batch-size": "87",
    "X-Pulsar-compression": "LZ4",
    "X-Pulsar-num-batch-message": "2",
    "X-Pulsar-producer-name": "standalone-0-1",
    "X-Pulsar-publish-time": "2026-11-22T06:49:30.998Z",
    "X-Pulsar-sequence-id": "0",
    "X-Pulsar-uncompressed-size": "240",
}
BATCH_BODY = (
    b"\x00\x00\x00\x10\n\x06\n\x01i\x12\x010\x12\x02k0\x18\x03@\x00one"
    b"\x00\x00\x00\x10\n\x06\n\x01i\x12\x011\x12\x02k1\x18\x03@\x01two"
)
REQUIRED = {
    name: PLAIN[name] for name in PLAIN if name.endswith(("-ID", "publish-time", "producer-name", "sequence-id"))
}


def test_message_when_alone_then_everything_is_read() -> None:
    (message,) = messages_in_answer(PLAIN, b"plain", TOPIC)
    assert (message.id, message.topic, message.content) == (MessageId(3, 0, 1), str(TOPIC), b"plain")
    assert (message.key, message.ordering_key, message.schema_version) == ("k:1", b"ok", b"\0" * 8)
    assert message.properties == {"a": "b", "ü=": "é\n"}
    assert (message.publish_time_ms, message.event_time_ms) == (1_795_330_170_920, 1_234_567)
    assert (message.deliver_at_ms, message.broker_publish_time_ms, message.index) == (1_900_000_000_000, 1000, 5)
    assert (message.producer_name, message.sequence_id, message.replicated_from) == ("standalone-0-0", 7, "east")
    assert not message.is_encrypted


def test_messages_when_batched_then_each_is_read_although_the_header_names_a_codec() -> None:
    one, two = messages_in_answer(BATCH, BATCH_BODY, TOPIC)
    assert (one.id, two.id) == (MessageId(3, 1, 1, 0), MessageId(3, 1, 1, 1))
    assert [(each.content, each.key, each.properties) for each in (one, two)] == [
        (b"one", "k0", {"i": "0"}),
        (b"two", "k1", {"i": "1"}),
    ]


def test_messages_when_encrypted_then_stay_one() -> None:
    (message,) = messages_in_answer(BATCH | {"X-Pulsar-Is-Encrypted": "true"}, b"?", TOPIC)
    assert (message.is_encrypted, message.content) == (True, b"?")


def test_message_when_it_is_a_tombstone_then_has_no_content() -> None:
    (message,) = messages_in_answer(REQUIRED | {"X-Pulsar-null-value": "true"}, b"", TOPIC)
    assert message.content is None


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b""),
        (REQUIRED | {"X-Pulsar-Message-ID": "3"}, b""),
        (REQUIRED | {"X-Pulsar-publish-time": "now"}, b""),
        (REQUIRED | {"X-Pulsar-PROPERTY": "{"}, b""),
        (REQUIRED | {"X-Pulsar-num-batch-message": "2"}, b"no batch"),
    ],
)
def test_answer_when_it_is_no_message_then_is_an_error_that_names_the_topic(
    headers: dict[str, str], body: bytes
) -> None:
    with pytest.raises(UnknownError, match=f"no message of {TOPIC}"):
        messages_in_answer(headers, body, TOPIC)


def test_entries_when_written_by_brokers_or_not_committed_then_are_known() -> None:
    assert not is_marker(PLAIN)
    assert is_marker({"X-Pulsar-marker-type": "10"})
    assert is_committed(PLAIN)
    assert not is_committed({"X-Pulsar-txn-uncommitted": "true"})
    assert not is_committed({"X-Pulsar-txn-aborted": "true"})


def serve(web: StubWeb, number: int, body: bytes, **more: str) -> None:
    path = f"/admin/v2/persistent/t/ns/a/subscription/s%2B1/position/{number}"
    web.answer_raw("GET", path, body, headers=REQUIRED | {f"X-Pulsar-{name}": value for name, value in more.items()})


def end(web: StubWeb, number: int, reason: str) -> None:
    path = f"/admin/v2/persistent/t/ns/a/subscription/s%2B1/position/{number}"
    web.answer("GET", path, {"reason": reason}, status=404)


@pytest.mark.parametrize(("count", "contents"), [(1, "a"), (2, "ab"), (9, "ab")])
async def test_peek_when_there_are_fewer_then_ends(web: StubWeb, admin: AdminClient, count: int, contents: str) -> None:
    serve(web, 1, b"a")
    serve(web, 2, b"b")
    end(web, 3, "Message not found")
    messages = await admin.topics.peek("t/ns/a", "s 1", count)
    assert [each.content for each in messages] == [each.encode() for each in contents]


async def test_peek_when_markers_are_between_then_are_left_out_unless_wanted(web: StubWeb, admin: AdminClient) -> None:
    serve(web, 1, b"marker", **{"marker-type": "10"})
    serve(web, 2, b"open", **{"txn-uncommitted": "true"})
    serve(web, 3, b"a")
    end(web, 4, "Message not found")
    shown = await admin.topics.peek("t/ns/a", "s 1", 9)
    everything = await admin.topics.peek("t/ns/a", "s 1", 9, markers_shown=True, uncommitted_shown=True)
    assert [each.content for each in shown] == [b"a"]
    assert [each.content for each in everything] == [b"marker", b"open", b"a"]


@pytest.mark.parametrize(
    ("reason", "error"),
    [("Subscription s 1 not found", SubscriptionNotFound), ("Topic persistent://t/ns/a not found", TopicNotFound)],
)
async def test_peek_when_something_else_is_missing_then_raises(
    web: StubWeb, admin: AdminClient, reason: str, error: type[Exception]
) -> None:
    end(web, 1, reason)
    with pytest.raises(error, match=reason):
        await admin.topics.peek("t/ns/a", "s 1")


async def test_single_messages_when_asked_for_then_paths_are_pulsars(web: StubWeb, admin: AdminClient) -> None:
    root = "/admin/v2/persistent/t/ns/a"
    web.answer_raw("GET", f"{root}/examinemessage", b"x", headers=REQUIRED)
    web.answer_raw("GET", f"{root}/ledger/3/entry/4", b"y", headers=REQUIRED)
    web.answer("GET", f"{root}/messageid/1000", {"ledgerId": 3, "entryId": 0})
    assert [each.content for each in await admin.topics.examine("t/ns/a", "earliest", 2)] == [b"x"]
    assert web.last.target == f"{root}/examinemessage?initialPosition=earliest&messagePosition=2"
    assert [each.content for each in await admin.topics.message_by_id("t/ns/a", 3, 4)] == [b"y"]
    assert await admin.topics.message_id_at("t/ns/a", 1000) == {"ledgerId": 3, "entryId": 0}
