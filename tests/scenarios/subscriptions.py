"""What a subscription does, seen on the wire: who gets which entry, when, and what is refused in which words.

Each scenario gets the addresses of a broker and makes topics of its own. They are played against ours and against a
real Pulsar, so that no expectation is wrong unnoticed.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient, entry

SECONDS_MAX = 60
SETTLED_SECONDS = 0.3
"""A real Pulsar has told statistics and sent what it will send by then."""

SHARED, KEY_SHARED = pb.CommandSubscribe.Shared, pb.CommandSubscribe.Key_Shared
EXCLUSIVE, FAILOVER = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover

Id = tuple[int, int]


class Addresses(NamedTuple):
    """Where a broker is."""

    service_url: str
    web_url: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call of the admin API; the JSON of the answer, None if it is empty."""
        request = urllib.request.Request(
            f"{self.web_url}/admin/v2/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            raw = answer.read()
        return json.loads(raw) if raw else None


Scenario = Callable[[Addresses], None]
SCENARIOS: list[Scenario] = []


def scenario(function: Scenario) -> Scenario:
    SCENARIOS.append(function)
    return function


class Sent(NamedTuple):
    """A MESSAGE."""

    id: Id
    redelivery_count: int
    ack_set: tuple[int, ...]


class Member:
    """A connection with consumers, which writes down what it is sent."""

    def __init__(self, broker: Addresses, topic: str) -> None:
        self._raw, self._topic = RawClient(broker.service_url), topic
        self._requests = 0
        self.sent: list[Sent] = []
        self.active: bool | None = None
        self.refused: dict[int, str] = {}
        self.ask(pb.CommandLookupTopic(topic=topic))

    def subscribe(self, name: str = "c", kind: int = SHARED, *, permits: int = 1000, **fields: Any) -> str:
        """ "" or the refusal."""
        request = pb.CommandSubscribe(
            topic=self._topic,
            subscription="s",
            subType=kind,  # type: ignore[arg-type]
            consumer_id=1,
            consumer_name=name,
            **fields,
        )
        answer = self.ask(request)
        if answer.HasField("error"):
            return f"{pb.ServerError.Name(answer.error.error)}: {answer.error.message}"
        self._raw.send(commands.flow(1, permits))
        return ""

    def acknowledge(self, *ids: Id, ack_set: tuple[int, ...] = ()) -> None:
        """Wait for the receipt."""
        data = [pb.MessageIdData(ledgerId=ledger, entryId=number, ack_set=ack_set) for ledger, number in ids]
        self.ask(pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual, message_id=data))

    def give_back(self, *ids: Id) -> None:
        data = [pb.MessageIdData(ledgerId=ledger, entryId=number) for ledger, number in ids]
        self._raw.send(commands.encode(pb.CommandRedeliverUnacknowledgedMessages(consumer_id=1, message_ids=data)))

    def leave(self) -> None:
        self.ask(pb.CommandCloseConsumer(consumer_id=1))

    def ask(self, request: Any) -> pb.BaseCommand:
        self._requests += 1
        request.request_id = self._requests
        self._raw.send(commands.encode(request))
        while (answer := self._read()) is None:
            pass
        return answer

    def take(self, count: int = 0, *, within: float = SECONDS_MAX) -> list[Sent]:
        """What came, at least ``count``; and whatever follows soon."""
        deadline = time.monotonic() + within
        while len(self.sent) < count and time.monotonic() < deadline:
            self._read_for(deadline - time.monotonic())
        assert len(self.sent) >= count, f"only {self.sent} came"
        settled = time.monotonic() + SETTLED_SECONDS
        while time.monotonic() < settled:
            self._read_for(settled - time.monotonic())
        taken, self.sent = self.sent, []
        return taken

    def await_activity(self, *, active: bool) -> None:
        """Until it was told so; a real Pulsar takes a second."""
        deadline = time.monotonic() + SECONDS_MAX
        while self.active is not active:
            assert time.monotonic() < deadline, f"still told {self.active}"
            self._read_for(deadline - time.monotonic())

    def close(self) -> None:
        self._raw.close()

    def _read_for(self, seconds: float) -> None:
        if self._raw.wait(max(seconds, 0)):
            self._read()

    def _read(self) -> pb.BaseCommand | None:
        command: pb.BaseCommand = self._raw.receive().command
        match command.type:
            case pb.BaseCommand.MESSAGE:
                message = command.message
                found = (message.message_id.ledgerId, message.message_id.entryId)
                self.sent.append(Sent(found, message.redelivery_count, tuple(message.ack_set)))
            case pb.BaseCommand.ACTIVE_CONSUMER_CHANGE:
                self.active = command.active_consumer_change.is_active
            case pb.BaseCommand.PING:
                self._raw.send(commands.encode(pb.CommandPong()))
            case pb.BaseCommand.CLOSE_CONSUMER:
                pass
            case _:
                return command
        return None


class SubscriptionBench:
    """One topic and those who use it."""

    def __init__(self, broker: Addresses, topic: str) -> None:
        self.broker, self.topic = broker, topic
        self.members: list[Member] = []
        self._published = 0
        self._producer = Member(broker, topic)
        self.members.append(self._producer)
        self._opened = False

    def member(self) -> Member:
        member = Member(self.broker, self.topic)
        self.members.append(member)
        return member

    def publish(self, count: int = 1, *, batch: int = 0, **metadata: Any) -> list[Id]:
        """The ids of the entries; a function in ``metadata`` is asked for each."""
        if not self._opened:
            self._producer.ask(pb.CommandProducer(topic=self.topic, producer_id=9))
            self._opened = True
        return [self._publish_one(max(batch, 1), metadata | _batch(batch)) for _ in range(count)]

    def _publish_one(self, messages: int, metadata: Mapping[str, Any]) -> Id:
        self._published += 1
        number = self._published
        values = {key: value(number) if callable(value) else value for key, value in metadata.items()}
        stored = entry(b"%d" % number, publish_time=now_ms(), sequence_id=number, **values)
        self._producer._raw.send(commands.send(9, number, stored, num_messages=messages))
        while (answer := self._producer._read()) is None:
            pass
        assert answer.type == pb.BaseCommand.SEND_RECEIPT, answer.send_error
        return answer.send_receipt.message_id.ledgerId, answer.send_receipt.message_id.entryId

    def refusal_of(self, **metadata: Any) -> str:
        """Why an entry is not stored."""
        try:
            self.publish(**metadata)
        except AssertionError as refused:
            error: Any = refused.args[0]
            return f"{pb.ServerError.Name(error.error)}: {error.message}"
        return ""

    def stats(self) -> dict[str, Any]:
        """Of the subscription."""
        found: dict[str, Any] = self.broker.call("GET", f"{_path(self.topic)}/stats")["subscriptions"]["s"]
        return found

    def await_stats(self, **expected: Any) -> None:
        """Until they are so."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            shown = {key: self.stats()[key] for key in expected}
            if shown == expected:
                return
            assert time.monotonic() < deadline, f"{shown} is not {expected}"
            time.sleep(0.05)

    def unload(self) -> None:
        self.broker.call("PUT", f"{_path(self.topic)}/unload")

    def trimmed(self) -> list[int]:
        """The ledgers that stay when it is trimmed."""
        self.broker.call("POST", f"{_path(self.topic)}/trim")
        shown = self.broker.call("GET", f"{_path(self.topic)}/internalStats")["ledgers"]
        return [each["ledgerId"] for each in shown]

    def await_policy(self, name: str, value: Any) -> None:
        """Until the broker knows it."""
        deadline = time.monotonic() + SECONDS_MAX
        while self.broker.call("GET", f"{_path(self.topic)}/{name}") != value:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@contextmanager
def bench(broker: Addresses, namespace: str = "public/default", topic: str = "") -> Iterator[SubscriptionBench]:
    """A topic of its own unless one is named, and all clients gone at the end."""
    made = SubscriptionBench(broker, topic or f"persistent://{namespace}/{uuid4().hex}")
    try:
        yield made
    finally:
        for member in made.members:
            member.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def ids(sent: list[Sent]) -> list[Id]:
    return [each.id for each in sent]


def sticky(*ranges: tuple[int, int], any_order: bool = False) -> pb.KeySharedMeta:
    wire = [pb.IntRange(start=start, end=end) for start, end in ranges]
    return pb.KeySharedMeta(keySharedMode=pb.STICKY, hashRanges=wire, allowOutOfOrderDelivery=any_order)


def split(*, any_order: bool = False) -> pb.KeySharedMeta:
    return pb.KeySharedMeta(keySharedMode=pb.AUTO_SPLIT, allowOutOfOrderDelivery=any_order)


def _batch(messages: int) -> dict[str, int]:
    return {"num_messages_in_batch": messages} if messages else {}


def _path(topic: str) -> str:
    return topic.replace("://", "/")


# --- delays


@scenario
def delayed_messages_wait_on_shared_types_only(broker: Addresses) -> None:
    for kind, delayed in ((SHARED, 2), (KEY_SHARED, 2), (EXCLUSIVE, 0)):
        with bench(broker) as topic:
            member = topic.member()
            member.subscribe(kind=kind)
            due_ms = now_ms() + 5000
            [late] = topic.publish(deliver_at_time=due_ms, partition_key="k")
            [prompt] = topic.publish(partition_key="k")
            [later] = topic.publish(deliver_at_time=due_ms + 1, partition_key="k")
            if not delayed:
                assert ids(member.take(3)) == [late, prompt, later]
                continue
            assert ids(member.take(1)) == [prompt]
            topic.await_stats(msgDelayed=2, msgBacklog=3, msgBacklogNoDelayed=1, unackedMessages=1)
            assert ids(member.take(2)) == [late, later]
            assert now_ms() >= due_ms - 1000  # a tick, which a real Pulsar may be early
            topic.await_stats(msgDelayed=0, unackedMessages=3)


@scenario
def delayed_messages_survive_unloading(broker: Addresses) -> None:
    with bench(broker) as topic:
        topic.member().subscribe()
        due_ms = now_ms() + 8000
        late = topic.publish(3, deliver_at_time=due_ms)
        topic.await_stats(msgDelayed=3)
        topic.unload()
        member = topic.member()
        member.subscribe()
        topic.await_stats(msgDelayed=3, msgBacklog=3)
        assert ids(member.take(3)) == late
        assert now_ms() >= due_ms - 1000


@scenario
def too_long_a_delay_is_refused(broker: Addresses) -> None:
    namespace = f"public/{uuid4().hex[:12]}"
    broker.call("PUT", f"namespaces/{namespace}", {})
    policy = {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 5000}
    broker.call("POST", f"namespaces/{namespace}/delayedDelivery", policy)
    with bench(broker, namespace) as topic:
        topic.publish(deliver_at_time=now_ms() + 4000)
        assert topic.refusal_of(deliver_at_time=now_ms() + 10_000) == (
            "NotAllowedError: Exceeds max allowed delivery delay of 5000 milliseconds"
        )


# --- keys


@scenario
def a_key_drains_before_another_consumer_gets_it(broker: Addresses) -> None:
    with bench(broker) as topic:
        first, second = topic.member(), topic.member()
        first.subscribe("first", KEY_SHARED)
        keys = [f"k{number}" for number in range(30)]
        held = [topic.publish(partition_key=key)[0] for key in keys]
        assert ids(first.take(30)) == held
        second.subscribe("second", KEY_SHARED)
        again = [topic.publish(partition_key=key)[0] for key in keys]
        kept = ids(first.take())
        deadline = time.monotonic() + SECONDS_MAX
        while (draining := topic.stats()["msgInReplay"]) + len(kept) != 30:
            assert time.monotonic() < deadline, (draining, len(kept))
            kept += ids(first.take())
        assert not second.take()
        assert 0 < len(kept) < 30
        topic.await_stats(drainingHashesCount=draining, drainingHashesUnackedMessages=draining, msgInReplay=draining)
        shown = {each["consumerName"]: each for each in topic.stats()["consumers"]}
        assert [each["unackMsgs"] for each in shown["first"]["drainingHashes"]] == [1] * draining
        assert shown["second"]["drainingHashes"] == []
        first.acknowledge(*held)
        assert ids(second.take(draining)) == [each for each in again if each not in kept]
        topic.await_stats(drainingHashesCount=0, drainingHashesClearedTotal=draining, msgInReplay=0)


@scenario
def ranges_of_keys_cover_every_hash(broker: Addresses) -> None:
    with bench(broker) as topic:
        for name in ("a", "b", "c"):
            topic.member().subscribe(name, KEY_SHARED)
        stats = topic.stats()
        ranges = sorted(each for consumer in stats["consumers"] for each in consumer["keyHashRangeArrays"])
        assert (ranges[0][0], ranges[-1][1], stats["keySharedMode"]) == (1, 65535, "AUTO_SPLIT")
        assert all(ranges[number][1] + 1 == ranges[number + 1][0] for number in range(len(ranges) - 1))


@scenario
def sticky_ranges_get_their_keys_and_conflicts_are_refused(broker: Addresses) -> None:
    with bench(broker) as topic:
        low, high = topic.member(), topic.member()
        assert not low.subscribe("low", KEY_SHARED, keySharedMeta=sticky((0, 99), (200, 299)))
        refusals = {
            high.subscribe("high", KEY_SHARED, keySharedMeta=sticky((170, 160))): "start > end",
            high.subscribe("high", KEY_SHARED, keySharedMeta=sticky()): "must not be empty",
            high.subscribe("high", KEY_SHARED, keySharedMeta=sticky((400, 500), (450, 460))): "[400,500] overlaps with",
        }
        assert all(
            refusal.startswith("ConsumerAssignError: ") and words in refusal for refusal, words in refusals.items()
        ), refusals
        assert not high.subscribe("high", KEY_SHARED, keySharedMeta=sticky((100, 199), (300, 65535)))
        sent = [topic.publish(partition_key=key)[0] for key in ("key1", "key2")]  # hashes 293 and 14772
        assert (ids(low.take(1)), ids(high.take(1))) == (sent[:1], sent[1:])
        shown = {each["consumerName"]: each["keyHashRangeArrays"] for each in topic.stats()["consumers"]}
        assert shown == {"low": [[0, 99], [200, 299]], "high": [[100, 199], [300, 65535]]}
        conflict = low.ask(  # from the same connection, so that its client is known to be alive
            pb.CommandSubscribe(
                topic=topic.topic,
                subscription="s",
                subType=KEY_SHARED,
                consumer_id=2,
                keySharedMeta=sticky((99, 99)),
            )
        ).error
        assert conflict.error == pb.ConsumerAssignError
        assert conflict.message.startswith("Range conflict with consumer ")


@scenario
def consumers_that_do_not_fit_together_are_told_why(broker: Addresses) -> None:
    busy = "ConsumerBusy: Subscription is of different type. Active subscription "
    for first, second, why in (
        (
            (KEY_SHARED, sticky((0, 9))),
            (KEY_SHARED, split()),
            "key_shared mode of 'STICKY' is different than the connecting consumer's key_shared mode 'AUTO_SPLIT'.",
        ),
        (
            (KEY_SHARED, split()),
            (KEY_SHARED, split(any_order=True)),
            "does not allow out of order delivery while the connecting consumer allows it.",
        ),
        (
            (KEY_SHARED, split(any_order=True)),
            (KEY_SHARED, split()),
            "allows out of order delivery while the connecting consumer does not allow it.",
        ),
        (
            (SHARED, None),
            (FAILOVER, None),
            "type of 'Shared' is different than the connecting consumer's type 'Failover'.",
        ),
    ):
        with bench(broker) as topic:
            there, coming = topic.member(), topic.member()
            assert not there.subscribe("there", first[0], keySharedMeta=first[1])
            assert coming.subscribe("coming", second[0], keySharedMeta=second[1]) == busy + why
            there.leave()
            assert not coming.subscribe("coming", second[0], keySharedMeta=second[1])


@scenario
def given_back_entries_of_a_key_come_again_in_order(broker: Addresses) -> None:
    with bench(broker) as topic:
        first, second = topic.member(), topic.member()
        first.subscribe("first", KEY_SHARED)
        sent = topic.publish(6, partition_key="k")
        assert ids(first.take(6)) == sent
        first.give_back(sent[4], sent[2])
        assert [(each.id, each.redelivery_count) for each in first.take(2)] == [(sent[2], 1), (sent[4], 1)]
        first.give_back()
        assert [each.redelivery_count for each in first.take(6)] == [1, 1, 2, 1, 2, 1]
        second.subscribe("second", KEY_SHARED)
        first.leave()
        assert [(each.id, each.redelivery_count) for each in second.take(6)] == list(
            zip(sent, [1, 1, 2, 1, 2, 1], strict=True)
        )


# --- who gets entries


@scenario
def failover_prefers_the_lowest_level_and_tells_all(broker: Addresses) -> None:
    with bench(broker) as topic:
        first, second = topic.member(), topic.member()
        first.subscribe("first", FAILOVER, priority_level=1)
        first.await_activity(active=True)
        second.subscribe("second", FAILOVER, priority_level=0)
        first.await_activity(active=False)
        second.await_activity(active=True)
        topic.await_stats(activeConsumerName="second")
        sent = topic.publish(2)
        assert ids(second.take(2)) == sent
        second.leave()
        assert ids(first.take(2)) == sent
        first.await_activity(active=True)


@scenario
def statistics_tell_who_acted_and_what_waits(broker: Addresses) -> None:
    with bench(broker) as topic:
        path = _path(topic.topic)
        member, other = topic.member(), topic.member()
        member.subscribe("shared")
        request = pb.CommandSubscribe(topic=topic.topic, subscription="done", subType=EXCLUSIVE, consumer_id=1)
        assert other.ask(request).type == pb.BaseCommand.SUCCESS
        begun = now_ms()
        first, *_ = topic.publish(3)
        topic.publish(2, deliver_at_time=now_ms() + 3_600_000)
        member.take(3)
        member.acknowledge(first)
        topic.broker.call("POST", f"{path}/subscription/done/skip_all")
        topic.await_stats(msgBacklog=4, msgDelayed=2, unackedMessages=2)
        stats = broker.call("GET", f"{path}/stats?getPreciseBacklog=true&getEarliestTimeInBacklog=true")
        shared, done = stats["subscriptions"]["s"], stats["subscriptions"]["done"]
        assert begun <= shared["earliestMsgPublishTimeInBacklog"] == stats["earliestMsgPublishTimeInBacklogs"]
        assert shared["earliestMsgPublishTimeInBacklog"] <= now_ms()
        assert done["earliestMsgPublishTimeInBacklog"] == -1
        assert begun <= shared["consumers"][0]["lastAckedTimestamp"] <= now_ms()
        assert stats["delayedMessageIndexSizeInBytes"] == shared["delayedMessageIndexSizeInBytes"] > 0
        assert "activeConsumerName" not in shared
        assert done["activeConsumerName"] == done["consumers"][0]["consumerName"]
        shown = {"filterProcessedMsgCount", "dispatchThrottledMsgEventsByBrokerLimit"}
        assert {key: shared[key] for key in shown} == dict.fromkeys(shown, 0)
        shown = {"bytesOutInternalCounter", "ongoingTxnCount", "lastOffloadLedgerId", "systemTopicBytesInCounter"}
        assert {key: stats[key] for key in shown} == dict.fromkeys(shown, 0)
        cursors = broker.call("GET", f"{path}/internalStats")["cursors"]
        assert [cursors[name]["messagesConsumedCounter"] for name in ("s", "done")] == [1, 5]


@scenario
def failover_consumers_take_partitions_in_turn_by_their_names(broker: Addresses) -> None:
    base = f"persistent://public/default/{uuid4().hex}"
    broker.call("PUT", f"{_path(base)}/partitions", 3)
    with ExitStack() as benches:
        partitions = [benches.enter_context(bench(broker, topic=f"{base}-partition-{index}")) for index in range(3)]
        for topic in partitions:
            for name in ("b", "a"):
                topic.member().subscribe(name, FAILOVER)
        for topic, active in zip(partitions, ("a", "b", "a"), strict=True):
            topic.await_stats(activeConsumerName=active)


@scenario
def what_a_subscription_is_marked_with_stays_when_unloaded(broker: Addresses) -> None:
    with bench(broker) as topic:
        properties = [pb.KeyValue(key="of", value="clients")]
        topic.member().subscribe(replicate_subscription_state=True, subscription_properties=properties)
        topic.unload()
        topic.member().subscribe()
        topic.await_stats(isReplicated=True, isDurable=True, subscriptionProperties={"of": "clients"})


@scenario
def a_mark_of_replication_is_set_by_consumers_and_removed_by_operators(broker: Addresses) -> None:
    with bench(broker) as topic:
        path = f"{_path(topic.topic)}/subscription/s/replicatedSubscriptionStatus"
        topic.member().subscribe()
        topic.await_stats(isReplicated=False, replicated=False)
        topic.member().subscribe(replicate_subscription_state=True)
        topic.await_stats(isReplicated=True, replicated=True)
        topic.member().subscribe(replicate_subscription_state=False)
        topic.await_stats(isReplicated=True)
        assert broker.call("GET", path) == {topic.topic: True}
        broker.call("POST", path, False)
        topic.await_stats(isReplicated=False, replicated=False)
        topic.unload()
        topic.member().subscribe()
        topic.await_stats(isReplicated=False)
        broker.call("POST", path, True)
        topic.unload()
        topic.member().subscribe()
        topic.await_stats(isReplicated=True)


@scenario
def shared_goes_by_level_and_permits(broker: Addresses) -> None:
    with bench(broker) as topic:
        low, high = topic.member(), topic.member()
        high.subscribe("high", SHARED, permits=10, priority_level=1)
        low.subscribe("low", SHARED, permits=3, priority_level=0)
        topic.await_stats(unackedMessages=0)
        sent = topic.publish(5)
        assert (ids(low.take(3)), ids(high.take(2))) == (sent[:3], sent[3:])


# --- acknowledgements


@scenario
def entries_acknowledged_one_by_one_stay_so_when_unloaded(broker: Addresses) -> None:
    with bench(broker) as topic:
        member = topic.member()
        member.subscribe(permits=5000)
        sent = topic.publish(600)
        assert ids(member.take(600)) == sent
        member.acknowledge(*sent[1::2])
        topic.await_stats(msgBacklog=300)
        topic.unload()
        again = topic.member()
        again.subscribe(permits=5000)
        assert ids(again.take(300)) == sent[::2]
        topic.await_stats(msgBacklog=300)


@scenario
def what_is_acknowledged_goes_when_the_topic_is_trimmed_unless_it_is_retained(broker: Addresses) -> None:
    with bench(broker) as topic:
        member = topic.member()
        member.subscribe()
        first, second = topic.publish(2)
        member.take(2)
        member.acknowledge(first)
        topic.unload()
        assert first[0] in topic.trimmed()
        retention = {"retentionTimeInMinutes": 10, "retentionSizeInMB": 10}
        topic.broker.call("POST", f"{_path(topic.topic)}/retention", retention)
        topic.await_policy("retention", retention)
        again = topic.member()
        again.subscribe()
        assert ids(again.take(1)) == [second]
        again.acknowledge(second)
        assert first[0] in topic.trimmed()
        topic.broker.call("DELETE", f"{_path(topic.topic)}/retention")
        topic.await_policy("retention", None)
        deadline = time.monotonic() + SECONDS_MAX
        while first[0] in topic.trimmed():
            assert time.monotonic() < deadline


@scenario
def cumulative_acknowledgements_count_where_one_consumer_is_active(broker: Addresses) -> None:
    for kind, left in ((EXCLUSIVE, 1), (FAILOVER, 1), (SHARED, 3), (KEY_SHARED, 3)):
        with bench(broker) as topic:
            member = topic.member()
            member.subscribe(kind=kind)
            sent = topic.publish(3, partition_key="k")
            assert ids(member.take(3)) == sent
            upto = pb.MessageIdData(ledgerId=sent[1][0], entryId=sent[1][1])
            member.ask(pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Cumulative, message_id=[upto]))
            topic.await_stats(msgBacklog=left)


@scenario
def messages_of_a_batch_are_acknowledged_one_by_one(broker: Addresses) -> None:
    with bench(broker) as topic:
        member = topic.member()
        member.subscribe()
        [batch] = topic.publish(batch=3)
        assert member.take(1) == [Sent(batch, 0, ())]
        member.acknowledge(batch, ack_set=(0b101,))
        member.give_back()
        assert member.take(1) == [Sent(batch, 1, (0b101,))]
        topic.await_stats(unackedMessages=2, msgBacklog=1)
        member.give_back()
        assert member.take(1) == [Sent(batch, 2, (0b101,))]
        member.acknowledge(batch, ack_set=(0b100,))
        member.give_back()
        assert member.take(1) == [Sent(batch, 1, (0b100,))]  # who works on a batch does not fail it
        member.acknowledge(batch, ack_set=(0b010,))
        topic.await_stats(unackedMessages=0, msgBacklog=0)


@scenario
def a_subscription_is_unsubscribed_by_its_last_consumer_or_by_force(broker: Addresses) -> None:
    with bench(broker) as topic:
        first, second = topic.member(), topic.member()
        first.subscribe("first")
        second.subscribe("second")
        refusal = first.ask(pb.CommandUnsubscribe(consumer_id=1)).error
        assert refusal.message == "Unconnected or shared consumer attempting to unsubscribe"
        assert first.ask(pb.CommandUnsubscribe(consumer_id=1, force=True)).type == pb.BaseCommand.SUCCESS
        assert "s" not in topic.broker.call("GET", f"{_path(topic.topic)}/stats")["subscriptions"]
