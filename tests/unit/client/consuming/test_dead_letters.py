"""Dead letters and retry letters: names, properties, counting."""

from dataclasses import replace

import pytest

from interpulse.client.consuming.consumer_config import DeadLetterPolicy
from interpulse.client.consuming.dead_letters import DeadLetterCandidates, DeadLetterProducer
from interpulse.client.session import Session
from interpulse.model.errors import AlreadyClosed, NotSupported
from interpulse.model.ids import MessageId, Position
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import parse_entry
from interpulse.wire.frames import Frame
from tests.support import commands
from tests.support.received_messages import received
from tests.support.scripted_broker import Peer, ScriptedBroker

PARTITION = TopicName.parse("persistent://a/b/t-partition-1")
MESSAGE = received(
    MessageId(7, 8, 1, 2),
    topic=str(PARTITION),
    content=b"bad",
    key="AAE=",
    key_is_binary=True,
    ordering_key=b"o",
    properties={"mine": "1"},
    event_time_ms=77,
    redelivery_count=3,
    batch_size=3,
)


class Post:
    """Keeps the letters that reach the broker."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.metadata: list[pb.MessageMetadata] = []
        self.contents: list[bytes] = []
        self.broker = broker
        broker.scripts[pb.BaseCommand.SEND] = self.on_send

    def on_send(self, peer: Peer, frame: Frame) -> None:
        assert frame.entry is not None
        entry = parse_entry(bytes(frame.entry))
        self.metadata.append(entry.metadata)
        self.contents.append(bytes(entry.payload))
        self.broker.store(peer, frame.command.send)

    @property
    def properties(self) -> dict[str, str]:
        return {pair.key: pair.value for pair in self.metadata[-1].properties}

    @property
    def topics(self) -> list[str]:
        return [command.producer.topic for command in self.broker.all_of(pb.BaseCommand.PRODUCER)]


@pytest.mark.parametrize(
    ("policy", "shared_origin", "dead", "retry"),
    [
        pytest.param(DeadLetterPolicy(1), None, "a/b/t-s-DLQ", "a/b/t-s-RETRY", id="of-the-topic-not-its-partition"),
        pytest.param(DeadLetterPolicy(1), "a/b/first", "a/b/first-s-DLQ", "a/b/first-s-RETRY", id="of-the-first-topic"),
        pytest.param(DeadLetterPolicy(1, "d", "a/b/r"), "a/b/first", "public/default/d", "a/b/r", id="named"),
    ],
)
async def test_letter_topics_have_their_names(
    session: Session, policy: DeadLetterPolicy, shared_origin: str | None, dead: str, retry: str
) -> None:
    origin = TopicName.parse(shared_origin) if shared_origin else None
    producer = DeadLetterProducer(session, "s", policy, shared_origin=origin)
    assert producer.dead_letter_topic(PARTITION) == TopicName.parse(dead)
    assert producer.retry_letter_topic(PARTITION) == TopicName.parse(retry)


async def test_dead_letter_is_the_message_with_where_it_came_from(broker: ScriptedBroker, session: Session) -> None:
    post = Post(broker)
    producer = DeadLetterProducer(session, "s", DeadLetterPolicy(1, initial_subscription_name="kept"))
    await producer.send_dead_letter(MESSAGE)
    await producer.send_dead_letter(MESSAGE)
    metadata = post.metadata[0]
    assert (post.contents[0], metadata.partition_key, metadata.partition_key_b64_encoded) == (b"bad", "AAE=", True)
    assert (metadata.ordering_key, metadata.event_time, metadata.HasField("deliver_at_time")) == (b"o", 77, False)
    assert post.properties == {
        "mine": "1",
        "REAL_TOPIC": str(PARTITION),
        "REAL_SUBSCRIPTION": "s",
        "ORIGIN_MESSAGE_ID": "7:8:1:2",
        "ORIGIN_MESSAGE_IDY_TIME": "7:8:1:2",
    }
    (opened,) = broker.all_of(pb.BaseCommand.PRODUCER)
    assert opened.producer.initial_subscription_name == "kept"
    await producer.close()


async def test_retry_letters_count_their_tries_until_the_message_is_dead(
    broker: ScriptedBroker, session: Session
) -> None:
    post = Post(broker)
    producer = DeadLetterProducer(session, "s", DeadLetterPolicy(2))
    message = MESSAGE
    for tries in ("1", "2", "3"):
        await producer.send_retry_letter(message, 500, {"mine": tries})
        assert (post.properties["RECONSUMETIMES"], post.properties["DELAY_TIME"]) == (tries, "500")
        assert (post.properties["ORIGIN_MESSAGE_ID"], post.properties["mine"]) == ("7:8:1:2", tries)
        message = replace(MESSAGE, id=MessageId(9, 9), topic="persistent://a/b/t-s-RETRY", properties=post.properties)
    assert post.topics == [f"persistent://a/b/{name}" for name in ("t-s-RETRY", "t-s-RETRY-s-RETRY", "t-s-RETRY-s-DLQ")]
    assert [metadata.HasField("deliver_at_time") for metadata in post.metadata] == [True, True, False]
    await producer.close()


async def test_retry_letter_without_delay_is_delivered_at_once(broker: ScriptedBroker, session: Session) -> None:
    post = Post(broker)
    producer = DeadLetterProducer(session, "s", DeadLetterPolicy(2))
    await producer.send_retry_letter(MESSAGE, -5, {})
    assert (post.properties["DELAY_TIME"], post.metadata[0].HasField("deliver_at_time")) == ("0", False)
    await producer.close()


async def test_letters_that_cannot_be_copied_are_refused(session: Session) -> None:
    producer = DeadLetterProducer(session, "s", DeadLetterPolicy(1))
    with pytest.raises(NotSupported, match="encrypted"):
        await producer.send_dead_letter(replace(MESSAGE, is_encrypted=True))
    await producer.close()
    with pytest.raises(AlreadyClosed):
        await producer.send_dead_letter(MESSAGE)


async def test_letters_when_the_broker_refuses_the_topic_then_another_try_may_succeed(
    broker: ScriptedBroker, session: Session
) -> None:
    post = Post(broker)
    producer = DeadLetterProducer(session, "s", DeadLetterPolicy(1))
    broker.scripts[pb.BaseCommand.PRODUCER] = lambda peer, frame: peer.say(
        commands.error(frame.command.producer.request_id, 22, "no")
    )
    with pytest.raises(Exception, match="no"):
        await producer.send_dead_letter(MESSAGE)
    del broker.scripts[pb.BaseCommand.PRODUCER]
    await producer.send_dead_letter(MESSAGE)
    assert post.contents == [b"bad"]
    await producer.close()


def test_last_candidates_keep_what_would_be_dead_the_next_time() -> None:
    candidates = DeadLetterCandidates(2)
    early, last, over = (replace(MESSAGE, redelivery_count=count) for count in (1, 2, 3))
    neighbour = replace(last, id=MessageId(7, 8, 1, 0))
    assert [candidates.is_dead(message) for message in (early, last, over)] == [False, False, True]
    for message in (early, last, neighbour):
        candidates.add(message)
    candidates.discard(neighbour)
    candidates.discard(replace(last, id=MessageId(1, 1)))
    assert candidates.take(Position(7, 8)) == [last]
    assert candidates.take(Position(7, 8)) == []
    candidates.add(last)
    candidates.clear()
    assert candidates.take(Position(7, 8)) == []
