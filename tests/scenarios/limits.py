"""What clients meet at the limits that policies set: each scenario at the limit and one beyond, on any broker.

Most speak frames, so that codes and words are seen as they are, the last ones use the official client. Those of
`PERIODIC_SCENARIOS` want a broker with `PERIODS`.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import pulsar

from interpulse.wire import pulsar_api_pb2 as pb
from tests.scenarios.client import Cluster
from tests.support import commands
from tests.support.official_client import connected
from tests.support.raw_client import RawClient, entry
from tests.support.waiting import until

PERIODS: Mapping[str, str] = {"backlogQuotaCheckIntervalInSeconds": "1"}
SECONDS_MAX = 60
RATES_SECONDS_MAX = 100
"""Brokers compute the rates of producers every few seconds, or once a minute."""

QUIET_SECONDS = 0.4
"""How long nothing must come before we believe that nothing comes."""

SHARED, KEY_SHARED = pb.CommandSubscribe.Shared, pb.CommandSubscribe.Key_Shared
EXCLUSIVE, FAILOVER = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Failover
BUSY_TOPIC, BUSY_SUBSCRIPTION = "Topic reached max consumers limit", "Subscription reached max consumers limit"

Scenario = Callable[[Cluster], None]
SCENARIOS: list[Scenario] = []
PERIODIC_SCENARIOS: list[Scenario] = []


def scenario(function: Scenario) -> Scenario:
    SCENARIOS.append(function)
    return function


def periodic_scenario(function: Scenario) -> Scenario:
    PERIODIC_SCENARIOS.append(function)
    return function


# --- tools


def call(cluster: Cluster, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """One call of the admin API: its status, and the JSON or the reason it answers with."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{cluster.web_url}/admin/v2/{path}", content, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            raw = answer.read()
            return answer.status, json.loads(raw) if raw else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()).get("reason")


class Topic:
    """A new topic with policies that are in force."""

    def __init__(self, cluster: Cluster, **policies: Any) -> None:
        self.cluster = cluster
        self.path = f"persistent/public/default/{uuid4().hex}"
        self.name = self.path.replace("/", "://", 1)
        assert call(cluster, "PUT", self.path)[0] == 204
        for policy, value in policies.items():
            self.set(policy, value)

    def set(self, policy: str, value: Any, query: str = "") -> None:
        """Set a policy; on return the broker knows it, though a loaded topic may still go by the old one."""
        assert call(self.cluster, "POST", f"{self.path}/{policy}{query}", value)[0] == 204
        until(lambda: call(self.cluster, "GET", f"{self.path}/{policy}{'Map' if query else ''}")[1])

    def set_quota(self, kind: str, policy: str, **limits: int) -> None:
        self.set("backlogQuota", {**limits, "policy": policy}, f"?backlogQuotaType={kind}")

    def stats(self) -> Any:
        return call(self.cluster, "GET", f"{self.path}/stats")[1]

    def subscription(self, name: str = "s") -> Any:
        return self.stats()["subscriptions"][name]

    def fill(self, count: int, size: int = 50) -> None:
        """Publish so many entries."""
        with RawClient(self.cluster.service_url) as client:
            client.ask(producer(self.name))
            for number in range(count):
                client.send(commands.send(1, number, entry(b"x" * size, publish_time=now_ms())))
            received(client, count)


def now_ms() -> int:
    return int(time.time() * 1000)


def producer(topic: str, number: int = 1, **fields: Any) -> bytes:
    return commands.encode(pb.CommandProducer(topic=topic, producer_id=number, request_id=number, **fields))


def subscribe(topic: str, name: str = "s", number: int = 1, sub_type: Any = SHARED, **fields: Any) -> bytes:
    fields.setdefault("initialPosition", pb.CommandSubscribe.Earliest)
    fields.setdefault("consumer_name", f"c{number}")
    request = pb.CommandSubscribe(
        topic=topic, subscription=name, subType=sub_type, consumer_id=number, request_id=number, **fields
    )
    return commands.encode(request)


def ack(consumer: int, message: Any) -> bytes:
    return commands.encode(
        pb.CommandAck(consumer_id=consumer, ack_type=pb.CommandAck.Individual, message_id=[message.message_id])
    )


def received(client: RawClient, count: int) -> list[Any]:
    """The contents of so many answers."""
    return [client.answer().command.ListFields()[1][1] for _ in range(count)]


def received_so_far(client: RawClient) -> list[Any]:
    """The contents of the answers that are here already."""
    found = []
    while client.wait(0):
        command = client.receive().command
        if command.type == pb.BaseCommand.PING:
            client.send(commands.PONG)
        else:
            found.append(command.ListFields()[1][1])
    return found


def messages(client: RawClient, quiet_seconds: float = QUIET_SECONDS) -> list[Any]:
    """All messages that come until it is quiet; other commands are left out."""
    found = []
    while client.wait(quiet_seconds):
        command = client.receive().command
        if command.HasField("message"):
            found.append(command.message)
    return found


def is_refused(answer: Any, code: Any, words: str) -> bool:
    """Whether this is the official code, with Pulsar's words somewhere in the sentence."""
    assert isinstance(answer, pb.CommandError), answer
    assert (answer.error, words in answer.message) == (code, True), answer
    return True


def is_opened(answer: Any) -> bool:
    assert isinstance(answer, pb.CommandProducerSuccess | pb.CommandSuccess), answer
    return True


def looked_up(client: RawClient, topic: str) -> None:
    """A real broker takes a namespace only when one of its topics is looked up."""
    client.ask(commands.encode(pb.CommandLookupTopic(topic=topic, request_id=1, authoritative=False)))


# --- how many


@scenario
def producers_of_a_topic(cluster: Cluster) -> None:
    topic = Topic(cluster, maxProducers=1)
    with RawClient(cluster.service_url) as client, RawClient(cluster.service_url) as other:
        assert is_opened(client.ask(producer(topic.name, producer_name="a")))
        for mode in (pb.Shared, pb.Exclusive, pb.ExclusiveWithFencing, pb.WaitForExclusive):
            answer = other.ask(producer(topic.name, 2 + mode, producer_name="b", producer_access_mode=mode))
            assert is_refused(answer, pb.ProducerBusy, f"Topic '{topic.name}' reached max producers limit")
        assert is_opened(other.ask(producer(topic.name, 9, producer_name="pulsar.repl.west")))
        topic.set("maxProducers", 2)
        until(lambda: isinstance(other.ask(producer(topic.name, 10)), pb.CommandProducerSuccess))
        assert is_refused(other.ask(producer(topic.name, 11)), pb.ProducerBusy, "reached max producers limit")


@scenario
def consumers_of_a_topic(cluster: Cluster) -> None:
    topic = Topic(cluster, maxConsumers=2)
    with RawClient(cluster.service_url) as client:
        assert is_opened(client.ask(subscribe(topic.name, "a", 1)))
        assert is_opened(client.ask(subscribe(topic.name, "b", 2, durable=False)))
        for name, durable in (("a", True), ("c", True), ("d", False)):
            answer = client.ask(subscribe(topic.name, name, 3, durable=durable))
            assert is_refused(answer, pb.ConsumerBusy, BUSY_TOPIC)
        assert sorted(topic.stats()["subscriptions"]) == ["a", "b"]
        client.ask(commands.encode(pb.CommandCloseConsumer(consumer_id=1, request_id=7)))
        assert is_opened(client.ask(subscribe(topic.name, "c", 3)))


@scenario
def consumers_of_a_subscription(cluster: Cluster) -> None:
    for sub_type in (SHARED, FAILOVER, KEY_SHARED):
        topic = Topic(cluster, maxConsumersPerSubscription=1)
        with RawClient(cluster.service_url) as client, RawClient(cluster.service_url) as other:
            client.send(subscribe(topic.name, "a", 1, sub_type))
            assert is_opened(received(client, 1)[0])
            answer = other.ask(subscribe(topic.name, "a", 2, sub_type))
            assert is_refused(answer, pb.ConsumerBusy, BUSY_SUBSCRIPTION)
            assert is_opened(other.ask(subscribe(topic.name, "b", 3, sub_type)))


@scenario
def subscriptions_of_a_topic(cluster: Cluster) -> None:
    topic = Topic(cluster, maxSubscriptionsPerTopic=1)
    words = f"Exceed the maximum number of subscriptions of the topic: {topic.name}"
    with RawClient(cluster.service_url) as client:
        assert is_opened(client.ask(subscribe(topic.name, "a", 1)))
        for number, durable in ((2, True), (3, False)):
            answer = client.ask(subscribe(topic.name, "b", number, durable=durable))
            assert is_refused(answer, pb.NotAllowedError, words)
        answer = client.ask(producer(topic.name, 4, initial_subscription_name="c"))
        assert is_refused(answer, pb.NotAllowedError, words)
        status, reason = call(
            cluster, "PUT", f"{topic.path}/subscription/d", {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
        )
        assert (status, words in reason) == (409, True)
        assert is_opened(client.ask(subscribe(topic.name, "a", 5)))
    assert sorted(topic.stats()["subscriptions"]) == ["a"]


@scenario
def types_of_subscriptions(cluster: Cluster) -> None:
    topic = Topic(cluster, subscriptionTypesEnabled=["Exclusive", "Failover"])
    with RawClient(cluster.service_url) as client:
        for number, (sub_type, label) in enumerate(((SHARED, "Shared"), (KEY_SHARED, "Key_Shared")), 1):
            answer = client.ask(subscribe(topic.name, "a", number, sub_type))
            assert is_refused(answer, pb.NotAllowedError, f"Topic[{{{topic.name}}}] doesn't support {label} sub type!")
        assert is_opened(client.ask(subscribe(topic.name, "a", 3, EXCLUSIVE)))


# --- who publishes


@scenario
def names_of_producers(cluster: Cluster) -> None:
    """A generated name goes to a producer with a higher epoch, a given one only to the same producer."""
    topic = Topic(cluster)
    with RawClient(cluster.service_url) as client, RawClient(cluster.service_url) as other:

        def named(number: int, epoch: int, given: bool) -> bytes:
            name = "given" if given else "generated"
            return producer(topic.name, number, producer_name=name, epoch=epoch, user_provided_producer_name=given)

        for given in (True, False):
            assert is_opened(alive(client, named(1 + given, 0, given)))
            assert is_refused(alive(client, named(3, 0, given)), pb.ProducerBusy, "is already connected to topic")
        assert is_refused(alive(client, named(3, 1, True)), pb.ProducerBusy, "is already connected to topic")
        assert is_opened(alive(client, named(2, 1, True)))
        assert is_opened(other.ask(named(1, 1, False)))


@scenario
def epochs_of_exclusive_producers(cluster: Cluster) -> None:
    topic = Topic(cluster)
    with RawClient(cluster.service_url) as client, RawClient(cluster.service_url) as other:
        opened = client.ask(producer(topic.name, 1, producer_access_mode=pb.Exclusive))
        assert (opened.topic_epoch, opened.producer_ready) == (0, True)
        refused = other.ask(producer(topic.name, 2, producer_access_mode=pb.Exclusive))
        assert is_refused(refused, pb.ProducerFenced, "Topic has an existing exclusive producer")
        assert is_refused(other.ask(producer(topic.name, 3)), pb.ProducerBusy, "existing exclusive producer")
        waiting = other.ask(producer(topic.name, 4, producer_access_mode=pb.WaitForExclusive))
        assert not waiting.producer_ready
        client.ask(commands.encode(pb.CommandCloseProducer(producer_id=1, request_id=9)))
        [ready] = received(other, 1)
        assert (ready.producer_ready, ready.topic_epoch) == (True, 1)
        other.ask(commands.encode(pb.CommandCloseProducer(producer_id=4, request_id=9)))
        assert other.ask(producer(topic.name, 5, producer_access_mode=pb.Exclusive)).topic_epoch == 2
        fencing = client.ask(producer(topic.name, 6, producer_access_mode=pb.ExclusiveWithFencing))
        assert (fencing.producer_ready, fencing.topic_epoch) == (True, 3)
        back = producer(topic.name, 7, producer_access_mode=pb.Exclusive, topic_epoch=2)
        assert is_refused(client.ask(back), pb.ProducerFenced, "")
        assert [each["accessMode"] for each in topic.stats()["publishers"]] == ["ExclusiveWithFencing"]


@scenario
def sequence_ids_that_repeat(cluster: Cluster) -> None:
    topic = Topic(cluster, deduplicationEnabled=True)
    with RawClient(cluster.service_url) as client:
        assert client.ask(producer(topic.name, 1, producer_name="p")).last_sequence_id == -1
        stored = []
        for sequence in (5, 7, 7, 5, 8):
            client.send(commands.send(1, sequence, entry(b"x", producer_name="p", sequence_id=sequence)))
            [receipt] = received(client, 1)
            assert receipt.sequence_id == sequence
            stored.append(receipt.message_id.ledgerId < 1 << 63)
        assert stored == [True, True, False, False, True]
        assert call(cluster, "PUT", f"{topic.path}/unload")[0] == 204
        assert isinstance(received(client, 1)[0], pb.CommandCloseProducer)
        looked_up(client, topic.name)
        assert client.ask(producer(topic.name, 2, producer_name="p")).last_sequence_id == 8
        assert client.ask(producer(topic.name, 3, producer_name="other")).last_sequence_id == -1


# --- what is published


@scenario
def size_of_messages(cluster: Cluster) -> None:
    topic = Topic(cluster, maxMessageSize=100)
    filled = 100 - len(entry(b""))
    with RawClient(cluster.service_url) as client:
        client.ask(producer(topic.name))
        client.send(commands.send(1, 0, entry(b"x" * filled)))
        assert isinstance(received(client, 1)[0], pb.CommandSendReceipt)
        client.send(commands.send(1, 1, entry(b"x" * (filled + 1))))
        [answer] = received(client, 1)
        assert isinstance(answer, pb.CommandSendError)
        assert (answer.error, answer.sequence_id) == (pb.NotAllowedError, 1)
        assert "Exceed maximum message size" in answer.message
        client.send(commands.send(1, 2, entry(b"x" * 200), is_chunk=True))
        assert isinstance(received(client, 1)[0], pb.CommandSendReceipt)


@scenario
def encryption(cluster: Cluster) -> None:
    namespace = f"public/{uuid4().hex}"
    assert call(cluster, "PUT", f"namespaces/{namespace}")[0] == 204
    topic = f"persistent://{namespace}/t"
    with RawClient(cluster.service_url) as client:
        looked_up(client, topic)
        assert is_opened(client.ask(producer(topic, 1)))
        assert is_opened(client.ask(producer(topic, 2, encrypted=True)))
        assert call(cluster, "POST", f"namespaces/{namespace}/encryptionRequired", True)[0] == 204
        assert received(client, 1)[0].producer_id == 1  # is disconnected
        answer = client.ask(producer(topic, 3))
        assert is_refused(answer, pb.MetadataError, f"Encryption is required in {topic}")
        client.send(commands.send(2, 0, entry(b"plain")))
        [refused] = received(client, 1)
        assert (refused.error, "Messages must be encrypted" in refused.message) == (pb.MetadataError, True)
        key = pb.EncryptionKeys(key="k", value=b"v")
        client.send(commands.send(2, 1, entry(b"secret", encryption_keys=[key])))
        assert isinstance(received(client, 1)[0], pb.CommandSendReceipt)


@scenario
def publish_rate(cluster: Cluster) -> None:
    """10 come at once, then one every tenth of a second; nothing is refused, and other connections do not wait."""
    topic = Topic(cluster, publishRate={"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1})
    free = Topic(cluster)
    with RawClient(cluster.service_url) as client, RawClient(cluster.service_url) as other:
        client.ask(producer(topic.name))
        other.ask(producer(free.name))
        began = time.monotonic()
        client.send(*(commands.send(1, number, entry(b"x")) for number in range(25)))
        other.send(*(commands.send(1, number, entry(b"x")) for number in range(50)))
        assert [each.sequence_id for each in received(other, 50)] == list(range(50))
        early = received_so_far(client)
        all_were_due = time.monotonic() - began > 1.3  # on a machine that stood still meanwhile
        assert len(early) < 25 or all_were_due, "the limited one was no slower than the other"
        assert [each.sequence_id for each in (*early, *received(client, 25 - len(early)))] == list(range(25))
        assert time.monotonic() - began > 1.3
    assert topic.stats()["publishRateLimitedTimes"] > 0


# --- what is delivered


@scenario
def dispatch_rates(cluster: Cluster) -> None:
    deliveries_are_slowed_down(cluster, "Msg", dispatch_rate(dispatchThrottlingRateInMsg=10))


@scenario
def dispatch_rates_in_bytes(cluster: Cluster) -> None:
    deliveries_are_slowed_down(cluster, "Bytes", dispatch_rate(dispatchThrottlingRateInByte=10_000))


def dispatch_rate(**fields: Any) -> dict[str, Any]:
    unlimited = {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": -1}
    return {**unlimited, "relativeToPublishRate": False, "ratePeriodInSecond": 1, **fields}


def deliveries_are_slowed_down(cluster: Cluster, kind: str, rate: dict[str, Any]) -> None:
    """25 messages, of which each second lets through 10."""
    for policy, by in (("dispatchRate", "Topic"), ("subscriptionDispatchRate", "Subscription")):
        topic = Topic(cluster, **{policy: rate})
        with RawClient(cluster.service_url) as client:
            client.ask(subscribe(topic.name))
            topic.fill(25, 1000)
            began = time.monotonic()
            client.send(commands.flow(1, 100))
            assert len(received(client, 25)) == 25
            assert time.monotonic() - began > 1.3
            events = {
                name: count
                for name, count in topic.subscription().items()
                if "ThrottledMsg" in name or "ThrottledBytes" in name
            }
            assert events.pop(f"dispatchThrottled{kind}EventsBy{by}Limit") > 0
            assert not any(events.values())


@periodic_scenario
def dispatch_rates_that_follow_the_producers(cluster: Cluster) -> None:
    """Both do so, once the broker has computed what is published."""
    rate = dispatch_rate(dispatchThrottlingRateInMsg=2, relativeToPublishRate=True)
    topics = [Topic(cluster, dispatchRate=rate), Topic(cluster, subscriptionDispatchRate=rate)]
    with RawClient(cluster.service_url) as consumers, RawClient(cluster.service_url) as producers:
        for number, topic in enumerate(topics, 1):
            consumers.ask(subscribe(topic.name, number=number))
            producers.ask(producer(topic.name, number))
        consumers.send(commands.flow(1, 5000) + commands.flow(2, 5000))
        began, sent, got = time.monotonic(), 0, {1: 0, 2: 0}
        while min(got.values()) < 2 * (time.monotonic() - began) + 50:
            passed = time.monotonic() - began
            assert passed < RATES_SECONDS_MAX, (got, sent)
            if sent < 20 * passed:
                producers.send(*(commands.send(number, sent, entry(b"x")) for number in got))
                sent += 1
            for command in [*arrived(producers), *arrived(consumers)]:
                if command.HasField("message"):
                    got[command.message.consumer_id] += 1


@scenario
def official_client_over_the_size_of_its_topic(cluster: Cluster) -> None:
    """It closes the connection and sends again, until the message may pass; without end, its time-out does not come."""
    topic = Topic(cluster, maxMessageSize=500)
    with connected(cluster.service_url) as client:
        sender = client.create_producer(topic.name, batching_enabled=False)
        sender.send(b"small")
        results: list[Any] = []
        sender.send_async(b"x" * 1000, lambda result, _: results.append(result))
        addresses: set[str] = set()

        def has_come_back() -> bool:
            addresses.update(publisher["address"] for publisher in topic.stats()["publishers"])
            return len(addresses) > 2

        until(has_come_back)
        assert results == []
        topic.set("maxMessageSize", 2000)
        assert until(lambda: results) == [pulsar.Result.Ok]
    assert call(cluster, "GET", f"{topic.path}/internalStats")[1]["numberOfEntries"] == 2


@scenario
def subscribe_rate(cluster: Cluster) -> None:
    topic = Topic(cluster, subscribeRate={"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 60})
    with RawClient(cluster.service_url) as client, RawClient(cluster.service_url) as other:
        assert is_opened(client.ask(subscribe(topic.name, consumer_name="n")))
        client.ask(commands.encode(pb.CommandCloseConsumer(consumer_id=1, request_id=7)))
        for each in (client, other):
            answer = each.ask(subscribe(topic.name, consumer_name="n"))
            assert is_refused(answer, pb.NotAllowedError, "Subscribe limited by subscribe rate limit per consumer.")
        assert is_opened(client.ask(subscribe(topic.name, number=2, consumer_name="n")))
        assert is_opened(other.ask(subscribe(topic.name, consumer_name="m")))


@scenario
def unacknowledged_messages_of_a_consumer(cluster: Cluster) -> None:
    for sub_type in (SHARED, KEY_SHARED):
        topic = Topic(cluster, maxUnackedMessagesOnConsumer=4)
        with RawClient(cluster.service_url) as client:
            client.ask(subscribe(topic.name, sub_type=sub_type))
            topic.fill(10)
            client.send(commands.flow(1, 100))
            held = messages(client)
            assert (len(held), unacknowledged(topic)) == (4, (4, True))
            client.send(ack(1, held[0]))
            assert (messages(client), unacknowledged(topic)) == ([], (3, True))
            client.send(ack(1, held[1]))
            assert (len(messages(client)), unacknowledged(topic)) == (2, (4, True))


def alive(client: RawClient, request: bytes) -> Any:
    """The answer to this request, of a client that answers when it is asked whether it lives."""
    client.send(request)
    while (command := client.receive().command).HasField("ping"):
        client.send(commands.encode(pb.CommandPong()))
    return command.ListFields()[1][1]


def arrived(client: RawClient) -> list[Any]:
    """The commands that are there, or come in a moment; a question whether we live is answered."""
    found = []
    while client.wait(0.01):
        found.append(client.receive().command)
        if found[-1].HasField("ping"):
            client.send(commands.encode(pb.CommandPong()))
    return found


def unacknowledged(topic: Topic) -> tuple[int, bool]:
    [consumer] = topic.subscription()["consumers"]
    return consumer["unackedMessages"], consumer["blockedConsumerOnUnackedMsgs"]


@scenario
def unacknowledged_messages_of_a_subscription(cluster: Cluster) -> None:
    topic = Topic(cluster, maxUnackedMessagesOnSubscription=4)
    with RawClient(cluster.service_url) as client:
        for number in (1, 2):
            client.ask(subscribe(topic.name, number=number))
        topic.fill(20)
        client.send(commands.flow(1, 2) + commands.flow(2, 2))
        held = messages(client)
        assert len(held) == 4
        client.send(commands.flow(1, 10) + commands.flow(2, 10))
        assert messages(client) == []
        for number, still_blocked in enumerate((True, True, False)):
            client.send(ack(held[number].consumer_id, held[number]))
            assert bool(messages(client)) != still_blocked
            if still_blocked:
                assert topic.subscription()["blockedSubscriptionOnUnackedMsgs"]


# --- the official client


@scenario
def official_client_at_its_limits(cluster: Cluster) -> None:
    topic = Topic(cluster, maxProducers=1, maxConsumers=1)
    with connected(cluster.service_url) as client:
        sender = client.create_producer(topic.name)
        refused_by_client(pulsar.ProducerBusy, lambda: client.create_producer(topic.name))
        receiver = client.subscribe(topic.name, "a")
        refused_by_client(pulsar.ConsumerBusy, lambda: client.subscribe(topic.name, "b"))
        sender.send(b"x")
        assert receiver.receive(60_000).data() == b"x"


@scenario
def official_client_over_its_quota(cluster: Cluster) -> None:
    official_client_meets(cluster, "producer_request_hold", pulsar.ProducerBlockedQuotaExceededError)
    official_client_meets(cluster, "producer_exception", pulsar.ProducerBlockedQuotaExceededException)


def official_client_meets(cluster: Cluster, policy: str, error: type[Exception]) -> None:
    topic = Topic(cluster)
    topic.set_quota("destination_storage", policy, limitSize=1000)
    with connected(cluster.service_url) as client:
        receiver = client.subscribe(topic.name, "a", initial_position=pulsar.InitialPosition.Earliest)
        topic.fill(20)
        refused_by_client(error, lambda: client.create_producer(topic.name))
        for _ in range(20):
            receiver.acknowledge(receiver.receive(60_000))
        until(lambda: topic.subscription("a")["msgBacklog"] == 0)
        client.create_producer(topic.name).send(b"x")


def refused_by_client(error: type[Exception], work: Callable[[], Any]) -> None:
    try:
        work()
    except error:
        return
    raise AssertionError(f"not refused with {error.__name__}")


# --- backlog quotas, looked after every second


@periodic_scenario
def quota_that_holds_producers_back(cluster: Cluster) -> None:
    producers_are_held_back(cluster, "producer_request_hold", pb.ProducerBlockedQuotaExceededError)
    producers_are_held_back(cluster, "producer_exception", pb.ProducerBlockedQuotaExceededException)


def producers_are_held_back(cluster: Cluster, policy: str, code: Any) -> None:
    topic = Topic(cluster)
    limit = 10 * len(entry(b"x" * 50, publish_time=now_ms()))
    topic.set_quota("destination_storage", policy, limitSize=limit, limitTime=-1)
    with RawClient(cluster.service_url) as client:
        client.ask(subscribe(topic.name, number=1))
        client.ask(producer(topic.name, 2))
        topic.fill(9)
        assert not client.wait(1.5)
        assert topic.stats()["backlogQuotaLimitSize"] == limit
        topic.fill(1)
        [closed] = received(client, 1)
        assert (type(closed), closed.producer_id) == (pb.CommandCloseProducer, 2)
        for name in ("a", "pulsar.repl.west"):
            answer = client.ask(producer(topic.name, 3, producer_name=name))
            assert is_refused(answer, code, "Cannot create producer on topic with backlog quota exceeded")
        client.send(commands.flow(1, 100))
        for message in messages(client):
            client.send(ack(1, message))
        until(lambda: isinstance(client.ask(producer(topic.name, 4)), pb.CommandProducerSuccess))


@periodic_scenario
def quota_that_evicts(cluster: Cluster) -> None:
    topic = Topic(cluster)
    with RawClient(cluster.service_url) as client:
        client.ask(subscribe(topic.name, number=1))
        client.ask(subscribe(topic.name, "reader", number=2, durable=False))
        client.ask(producer(topic.name, 3))
        topic.fill(10)
        topic.set_quota("destination_storage", "consumer_backlog_eviction", limitSize=400, limitTime=-1)
        backlog = until(lambda: (left := topic.subscription()["msgBacklog"]) < 10 and left)
        assert 3 <= backlog <= 5  # at most 9/10 of the quota, less what the estimate of sizes is off
        assert topic.subscription("reader")["msgBacklog"] == 10
        client.send(commands.flow(1, 100))
        assert len(messages(client)) == backlog
        assert [each["producerId"] for each in topic.stats()["publishers"]] == [3]


@periodic_scenario
def official_client_that_is_held_goes_on_when_there_is_room(cluster: Cluster) -> None:
    topic = Topic(cluster)
    with connected(cluster.service_url) as client:
        receiver = client.subscribe(topic.name, "a", initial_position=pulsar.InitialPosition.Earliest)
        sender = client.create_producer(topic.name, send_timeout_millis=60_000)
        for _ in range(20):
            sender.send(b"x" * 50)
        topic.set_quota("destination_storage", "producer_request_hold", limitSize=1000, limitTime=-1)
        until(lambda: not topic.stats()["publishers"])
        sent: list[Any] = []
        sender.send_async(b"held", lambda result, _: sent.append(result))
        for _ in range(20):
            receiver.acknowledge(receiver.receive(60_000))
        assert receiver.receive(SECONDS_MAX * 1000).data() == b"held"
        assert until(lambda: sent) == [pulsar.Result.Ok]


@periodic_scenario
def quota_of_age(cluster: Cluster) -> None:
    topic = Topic(cluster)
    topic.set_quota("message_age", "producer_exception", limitSize=-1, limitTime=1)
    with RawClient(cluster.service_url) as client:
        client.ask(subscribe(topic.name, number=1))
        client.ask(producer(topic.name, 2))
        topic.fill(1)
        [closed] = received(client, 1)
        assert (type(closed), closed.producer_id) == (pb.CommandCloseProducer, 2)
        answer = client.ask(producer(topic.name, 3))
        words = "Cannot create producer on topic with backlog quota exceeded"
        assert is_refused(answer, pb.ProducerBlockedQuotaExceededException, words)
        shown = topic.stats()
        assert (shown["backlogQuotaLimitTime"], shown["oldestBacklogMessageSubscriptionName"]) == (1, "s")
        assert shown["oldestBacklogMessageAgeSeconds"] >= 1


LONG_SCENARIOS = frozenset(
    {
        publish_rate,
        dispatch_rates,
        dispatch_rates_in_bytes,
        official_client_over_the_size_of_its_topic,
        unacknowledged_messages_of_a_consumer,
        unacknowledged_messages_of_a_subscription,
        *PERIODIC_SCENARIOS,
    }
)
"""These take seconds on any broker."""
