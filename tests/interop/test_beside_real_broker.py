"""A broker of ours and one of Apache Pulsar serve one cluster: each takes over the topics of the other, under load."""

from __future__ import annotations

import json
import random
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any

import pulsar
import pytest

from interpulse.broker.topics.change_events.event_codec import EVENT_SCHEMA, decode_policies
from tests.interop.mixed_cluster import (
    SECONDS_MAX,
    Broker,
    OurBroker,
    Traffic,
    ask,
    check_stored,
    create_namespace,
    known_owner,
    lookup_url,
    move,
    quiet_client,
    running,
    service_url,
)
from tests.interop.real_pulsar.bookkeeper import real_bookkeeper
from tests.interop.real_pulsar.broker import RealBroker
from tests.support.official_client import is_quiet, receive
from tests.support.soak import soak
from tests.support.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]

COMPRESSING = {
    "managedLedgerInfoCompressionThresholdInBytes": "0",
    "managedCursorInfoCompressionThresholdInBytes": "0",
}
"""Records of topics and cursors that are compressed whatever their size (cluster 17, row 26)."""
TOPICS = 6
HALF_SEED = 16
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'


class Pair:
    """The two brokers. Each has the same addresses whenever it runs."""

    def __init__(self, directory: Path, zookeeper: str) -> None:
        """``zookeeper``: host and port."""
        self.real = RealBroker(directory / "real", zookeeper, COMPRESSING)
        self.ours = OurBroker(directory / "ours", zookeeper)

    @property
    def brokers(self) -> tuple[Broker, Broker]:
        """Ours is asked first."""
        return self.ours, self.real

    @property
    def service_url(self) -> str:
        """Both, for clients."""
        return service_url(self.brokers)

    def owner(self, topic: str) -> Broker:
        """As ours says; as the real one says if ours does not run. Asked until one of them knows it."""
        return known_owner(topic, self.brokers)

    def move(self, topic: str, to: Broker) -> None:
        """Let the owner of a topic give its bundle away."""
        move(topic, to, self.brokers)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("beside")
    with real_bookkeeper(directory, 3) as engines, ExitStack() as running_brokers:
        both = Pair(directory, engines.zookeeper.address)
        for broker in both.brokers:
            broker.start()
            running_brokers.callback(broker.kill)
        yield both


def traffic(pair: Pair, prefix: str) -> AbstractContextManager[Traffic]:
    topics = [f"persistent://public/default/{prefix}-{number}" for number in range(TOPICS)]
    return running(Traffic(topics), pair.service_url)


def test_brokers_when_of_both_kinds_then_are_one_cluster(pair: Pair) -> None:
    ids = sorted(each.web_url.removeprefix("http://") for each in (pair.real, pair.ours))
    for broker in (pair.real, pair.ours):
        until(lambda broker=broker: sorted(ask(broker, "GET", "brokers/lab")) == ids)  # type: ignore[misc]
    leaders = {ask(broker, "GET", "brokers/leaderBroker")["brokerId"] for broker in (pair.real, pair.ours)}
    assert len(leaders) == 1
    assert leaders <= set(ids)
    schema = {"type": "JSON", "schema": RECORD, "properties": {"p": "q"}}
    path = "schemas/public/default/beside-schema/schema"
    ask(pair.ours, "POST", path, schema)
    for broker in (pair.real, pair.ours):
        pair.move("persistent://public/default/beside-schema", broker)
        found = ask(broker, "GET", path)
        assert (found["version"], found["type"], found["data"], found["properties"]) == (0, "JSON", RECORD, {"p": "q"})


def test_isolation_policies_when_set_at_either_then_both_follow_them(pair: Pair) -> None:
    """No broker is such a one, so that neither takes the bundle."""
    path, topic = "clusters/lab/namespaceIsolationPolicies", "persistent://public/apart/x"
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}
    policy = {"primary": ["nowhere"], "secondary": [], "auto_failover_policy": failover}
    ask(pair.real, "PUT", "namespaces/public/apart")
    for at, other, name in ((pair.ours, pair.real, "apart"), (pair.real, pair.ours, "another")):
        ask(at, "POST", f"{path}/{name}", policy | {"namespaces": [f"public/{name}"]})
        shown = ask(at, "GET", path)
        until(lambda other=other, shown=shown: ask(other, "GET", path) == shown)  # type: ignore[misc]
    for broker in (pair.ours, pair.real):
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(lookup_url(broker, topic), timeout=20)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{lookup_url(pair.ours, topic)}?authoritative=true", timeout=20)
    assert b"isolation policy apart (primary nowhere)" in caught.value.read()
    for name in ("apart", "another"):
        ask(pair.ours, "DELETE", f"{path}/{name}")
    until(lambda: ask(pair.real, "GET", path) == {})
    pair.owner(topic)


def test_bundle_when_both_are_asked_for_it_at_once_then_has_one_owner_that_everybody_is_led_to(pair: Pair) -> None:
    """Cluster 17, row 28."""
    ask(pair.real, "PUT", "namespaces/public/asked", {"bundles": {"numBundles": 1}})
    topic = "persistent://public/asked/t"

    def answer_of(broker: Broker) -> str:
        """Nothing where the real broker says 500, as it may while the bundle is on its way; clients ask again."""
        try:
            with urllib.request.urlopen(lookup_url(broker, topic), timeout=30) as reply:
                return str(json.loads(reply.read())["brokerId"])
        except urllib.error.HTTPError as refusal:
            if refusal.code != 500 or not str(refusal.url).startswith(pair.real.web_url):  # ours may lead to it
                raise
            return ""

    def owner_as_told_by(broker: Broker) -> str:
        return until(lambda: answer_of(broker))

    found: set[str] = set()
    with ThreadPoolExecutor(4) as threads:
        for _ in range(soak(1000, otherwise=50)):
            told = set(threads.map(owner_as_told_by, pair.brokers * 2))
            assert len(told) == 1
            found |= told
            at = next(each for each in pair.brokers if each.web_url.endswith(next(iter(told))))
            ask(at, "PUT", "namespaces/public/asked/0x00000000_0xffffffff/unload")
    assert found <= {each.web_url.removeprefix("http://") for each in pair.brokers}


def test_topics_when_given_to_and_fro_under_load_then_nothing_is_lost_and_order_holds(pair: Pair) -> None:
    with traffic(pair, "moved") as load:
        moved = 0
        while moved < 100:
            to = (pair.ours, pair.real)[moved // TOPICS % 2]
            for topic in load.topics:
                pair.move(topic, to)
                moved += 1
            load.goes_on()


def test_namespace_when_half_is_at_each_broker_then_nothing_is_lost_doubled_or_reordered(pair: Pair) -> None:
    """Bundles change sides meanwhile, at random."""
    create_namespace(pair.ours, "public/half")
    topics = [f"persistent://public/half/t-{number}" for number in range(TOPICS)]
    kinds = (pulsar.ConsumerType.Shared, pulsar.ConsumerType.Failover)
    chance = random.Random(HALF_SEED)
    with running(Traffic(topics, producers=("a", "b"), subscriptions=kinds), pair.service_url) as load:
        for number, topic in enumerate(topics):
            pair.move(topic, pair.brokers[number % 2])
        for _ in range(soak(200, otherwise=20)):
            pair.move(chance.choice(topics), chance.choice(pair.brokers))
            load.goes_on()
    check_stored(load, pair.service_url)


class Ended:
    """A topic that one of the brokers terminated."""

    def __init__(self, pair: Pair, name: str, by: Broker) -> None:
        self._pair = pair
        self._topic, self._path = f"persistent://public/default/{name}", f"persistent/public/default/{name}"
        pair.move(self._topic, by)
        client = quiet_client(pair.service_url)
        client.subscribe(self._topic, "s").close()
        producer = client.create_producer(self._topic, batching_enabled=False)
        for number in range(3):
            producer.send(b"%d" % number)
        self._last = ask(by, "POST", f"{self._path}/terminate")
        client.close()

    def check(self, at: Broker) -> None:
        """There it takes nothing more, tells the same end, and has all its messages."""
        self._pair.move(self._topic, at)
        client = quiet_client(self._pair.service_url)
        with pytest.raises(pulsar.TopicTerminated):
            client.create_producer(self._topic)
        assert ask(at, "POST", f"{self._path}/terminate") == self._last
        consumer = client.subscribe(self._topic, "s")
        assert [int(message.data()) for message in receive(consumer, 3)] == [0, 1, 2]
        assert is_quiet(consumer)
        client.close()


def test_topic_when_either_broker_terminated_it_then_is_so_at_the_other(pair: Pair) -> None:
    """Cluster 17, row 25."""
    for by, other in (pair.brokers, pair.brokers[::-1]):
        ended = Ended(pair, f"ended-at-{type(by).__name__}", by)
        for at in (other, by, other):
            ended.check(at)


def test_topics_when_either_broker_is_killed_or_paused_then_the_other_serves_them(pair: Pair) -> None:
    with traffic(pair, "taken") as load:
        ended = Ended(pair, "ended-and-killed", pair.real)
        pair.real.kill()
        load.goes_on()
        ended.check(pair.ours)
        assert {pair.owner(topic) for topic in load.topics} == {pair.ours}

        pair.real.start()
        for topic in load.topics[::2]:
            pair.move(topic, pair.real)
        load.goes_on()
        assert {pair.owner(topic) for topic in load.topics[::2]} == {pair.real}

        ended = Ended(pair, "ended-and-killed-too", pair.ours)
        pair.ours.kill()
        load.goes_on()
        ended.check(pair.real)
        pair.ours.start()
        for topic in load.topics[::2]:
            pair.move(topic, pair.ours)
        load.goes_on()
        for topic in load.topics:
            pair.move(topic, pair.real)
        load.goes_on()

        pair.real.pause()
        try:
            until(lambda: {pair.owner(topic) for topic in load.topics} == {pair.ours}, SECONDS_MAX)
        finally:
            pair.real.go_on()
        load.goes_on()


def test_cursor_when_the_other_broker_takes_it_then_holds_every_single_acknowledgement(pair: Pair) -> None:
    topic = "persistent://public/default/beside-cursor"
    client = quiet_client(pair.service_url)
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic, batching_enabled=False)
    left = list(range(60))

    def figures(at: Broker) -> tuple[int, int]:
        """Consumers and backlog."""
        stats = ask(at, "GET", "persistent/public/default/beside-cursor/stats")["subscriptions"]["s"]
        return len(stats["consumers"]), stats["msgBacklog"]

    def await_figures(at: Broker) -> None:
        until(lambda: figures(at) == (1, len(left)))

    for number in left:
        producer.send(b"%d" % number)
    for to in (pair.real, pair.ours, pair.real, pair.ours):
        pair.move(topic, to)
        assert pair.owner(topic) is to
        await_figures(to)  # the consumer came along
        messages = [consumer.receive(60_000) for _ in left]
        assert [int(message.data()) for message in messages] == left
        for message in messages[1::3]:
            consumer.acknowledge(message)
            left.remove(int(message.data()))
        await_figures(to)
    client.close()


def test_batch_when_a_part_was_acknowledged_at_a_real_broker_then_ours_sends_the_rest(pair: Pair) -> None:
    """A real broker reads nothing of that in the record of a cursor, also not what it wrote itself."""
    topic = "persistent://public/default/beside-batch"
    client = quiet_client(pair.service_url)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay_ms=10_000
    )
    pair.move(topic, pair.real)
    options = {"consumer_type": pulsar.ConsumerType.Shared, "batch_index_ack_enabled": True}
    consumer = client.subscribe(topic, "s", **options)
    for number in range(10):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    for message in [consumer.receive(60_000) for _ in range(10)][1:3]:
        consumer.acknowledge(message)

    def unacknowledged() -> int:
        stats = ask(pair.real, "GET", "persistent/public/default/beside-batch/stats")
        return int(stats["subscriptions"]["s"]["unackedMessages"])

    until(lambda: unacknowledged() == 6)  # it counts each acknowledgement twice
    pair.move(topic, pair.ours)
    consumer.close()
    consumer = client.subscribe(topic, "s", **options)
    assert [int(consumer.receive(60_000).data()) for _ in range(8)] == [0, *range(3, 10)]
    assert is_quiet(consumer)
    client.close()


def test_compacted_topic_when_the_other_broker_takes_it_then_is_served_and_compacted_on(pair: Pair) -> None:
    topic, path = "persistent://public/default/beside-compacted", "persistent/public/default/beside-compacted"
    client = quiet_client(pair.service_url)
    producer = client.create_producer(topic, batching_enabled=False)

    def status(at: Broker) -> str:
        return str(ask(at, "GET", f"{path}/compaction")["status"])

    def await_end(at: Broker) -> None:
        until(lambda: status(at) != "RUNNING", SECONDS_MAX)

    def kept() -> list[int]:
        reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
        found = []
        while reader.has_message_available():
            found.append(int(reader.read_next(60_000).data()))
        reader.close()
        return found

    turns: list[Broker] = [pair.ours, pair.real, pair.ours, pair.real]
    for begin, by in zip(range(0, 200, 50), turns, strict=True):
        pair.move(topic, by)
        for number in range(begin, begin + 50):
            producer.send(b"%d" % number, partition_key=str(number % 5))
        assert kept() == list(range(max(begin - 5, 0), begin + 50))
        ask(by, "PUT", f"{path}/compaction")
        await_end(by)
        assert kept() == list(range(begin + 45, begin + 50))
    client.close()


RATE = {
    "dispatchThrottlingRateInMsg": 7,
    "dispatchThrottlingRateInByte": 1000,
    "relativeToPublishRate": True,
    "ratePeriodInSecond": 3,
}
INACTIVITY = {
    "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
    "maxInactiveDurationSeconds": 77,
    "deleteWhileInactive": True,
}
TOPIC_POLICIES: tuple[tuple[str, str, Any], ...] = (
    ("POST", "retention", {"retentionTimeInMinutes": 60, "retentionSizeInMB": 10}),
    ("POST", "maxProducers", 5),
    ("POST", "maxConsumers", 6),
    ("POST", "maxConsumersPerSubscription", 7),
    ("POST", "maxSubscriptionsPerTopic", 8),
    ("POST", "maxUnackedMessagesOnConsumer", 9),
    ("POST", "maxUnackedMessagesOnSubscription", 10),
    ("POST", "maxMessageSize", 11),
    ("POST", "deduplicationEnabled", True),
    ("POST", "deduplicationSnapshotInterval", 12),
    ("POST", "compactionThreshold", 13_000_000_000),
    ("POST", "delayedDelivery", {"tickTime": 15, "active": True, "maxDeliveryDelayInMillis": 16}),
    ("POST", "inactiveTopicPolicies", INACTIVITY),
    ("POST", "publishRate", {"publishThrottlingRateInMsg": 17, "publishThrottlingRateInByte": 18}),
    ("POST", "dispatchRate", RATE),
    ("POST", "subscriptionDispatchRate", RATE),
    ("POST", "replicatorDispatchRate", RATE),
    ("POST", "subscribeRate", {"subscribeThrottlingRatePerConsumer": 19, "ratePeriodInSecond": 20}),
    ("POST", "subscriptionTypesEnabled", ["Exclusive", "Shared"]),
    ("POST", "autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False}),
    ("PUT", "schemaCompatibilityStrategy", "FULL"),
    ("POST", "schemaValidationEnforced", True),
)
"""Those that both kinds have; a real broker forgets ``subscriptionExpirationTime`` of a topic at once."""


def test_topic_policies_when_set_at_either_then_both_follow_them(pair: Pair) -> None:
    """Each kind sets half of them, turn by turn, so that each has to know what the other one said last."""
    ask(pair.real, "PUT", "namespaces/public/policies", {"bundles": {"numBundles": 1}})
    topic, path = "persistent://public/policies/t", "persistent/public/policies/t"
    wanted = {name: value for _, name, value in TOPIC_POLICIES}

    def shown(at: Broker) -> dict[str, Any]:
        return {name: ask(at, "GET", f"{path}/{name}") for name in wanted}

    def shown_everywhere(at: Broker) -> list[Any]:
        return [ask(at, "GET", f"{path}/{name}?isGlobal=true") for name in ("maxProducers", "maxConsumers")]

    ask(pair.ours, "PUT", path)
    for first in (0, 1):
        pair.move(topic, pair.brokers[first])
        for number, (method, name, value) in enumerate(TOPIC_POLICIES):
            if number % 2 == first:
                ask(pair.brokers[first], method, f"{path}/{name}", value)
        ask(pair.brokers[first], "POST", f"{path}/{('maxProducers', 'maxConsumers')[first]}?isGlobal=true", 99)
    for broker in pair.brokers:
        pair.move(topic, broker)
        with suppress(AssertionError):  # the next lines say what differs
            until(lambda: (shown(broker), shown_everywhere(broker)) == (wanted, [99, 99]))  # noqa: B023
        assert shown(broker) == wanted
        assert shown_everywhere(broker) == [99, 99]
    schemas = ask(pair.real, "GET", "schemas/public/policies/__change_events/schemas")
    assert len(schemas["getSchemaResponses"]) == 1
    for by, other in (pair.brokers, pair.brokers[::-1]):
        ask(by, "POST", f"{path}/maxProducers", 20)
        until(lambda: ask(other, "GET", f"{path}/maxProducers") == 20)  # noqa: B023
        ask(by, "DELETE", f"{path}/maxProducers")
        until(lambda: ask(other, "GET", f"{path}/maxProducers") is None)  # noqa: B023


def test_topic_policies_when_a_topic_is_deleted_at_either_then_are_gone_at_both(pair: Pair) -> None:
    topic, path = "persistent://public/default/with-policies", "persistent/public/default/with-policies"
    for by, other in (pair.brokers, pair.brokers[::-1]):
        ask(other, "PUT", path)
        pair.move(topic, by)
        ask(by, "POST", f"{path}/maxConsumers", 5)
        until(lambda: ask(other, "GET", f"{path}/maxConsumers") == 5)  # noqa: B023
        ask(by, "DELETE", path)
        ask(other, "PUT", path)
        for broker in (by, other):
            until(lambda: ask(broker, "GET", f"{path}/maxConsumers") is None)  # noqa: B023
        ask(by, "DELETE", path)


def test_topic_policies_when_changed_at_both_at_once_then_the_later_event_holds_at_both(pair: Pair) -> None:
    """Each event has all policies of the topic as its broker knew them: either change may be lost with the earlier
    one, at a real broker as at ours, but both brokers hold the same in the end."""
    topic, path = "persistent://public/default/changed-at-once", "persistent/public/default/changed-at-once"
    events = "persistent://public/default/__change_events"
    ask(pair.ours, "PUT", path)
    pair.move(topic, pair.real)  # which changes policies of its own topics only; ours those of any
    changes = ((pair.ours, "maxProducers"), (pair.real, "maxConsumers"))
    client = quiet_client(pair.service_url)

    def told() -> dict[str, int]:
        """By the last event of the topic."""
        reader = client.create_reader(events, pulsar.MessageId.earliest)
        last = b""
        while reader.has_message_available():
            message = reader.read_next(60_000)
            last = message.data() if message.partition_key() == topic else last
        reader.close()
        found = decode_policies(last, EVENT_SCHEMA.definition)
        assert found is not None
        policies = {"maxProducers": found[0].max_producers, "maxConsumers": found[0].max_consumers}
        return {name: value for name, value in policies.items() if value is not None}

    def shown(at: Broker) -> dict[str, int]:
        values = {name: ask(at, "GET", f"{path}/{name}") for _, name in changes}
        return {name: value for name, value in values.items() if value is not None}

    with ThreadPoolExecutor(len(changes)) as threads:
        for number in range(1, soak(100, otherwise=5) + 1):
            setting = [threads.submit(ask, at, "POST", f"{path}/{name}", number) for at, name in changes]
            for each in setting:
                each.result()
            last = told()
            assert number in last.values()
            for broker in pair.brokers:
                until(lambda broker=broker, last=last: shown(broker) == last)  # type: ignore[misc]
    client.close()
