"""Deletion of inactive topics: with the official client, on our broker and on a real Pulsar."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar
import pytest

from interpulse.model.names import TopicName
from interpulse.testing import InProcessBroker
from tests.interop.conftest import RealPulsarFactory
from tests.interop.real_pulsar import Address
from tests.support.official_client import admin, connected, receive
from tests.support.waiting import until

pytestmark = pytest.mark.interop

PATIENCE_S = 120
NO_SUBSCRIPTIONS, CAUGHT_UP = "delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"
SETTINGS = {"brokerDeleteInactiveTopicsFrequencySeconds": "1"}
METADATA_SWITCH = "brokers/configuration/brokerDeleteInactivePartitionedTopicMetadataEnabled"


class Side:
    """One cluster, a namespace of the test's own in it, and an official client."""

    def __init__(self, address: Address, client: pulsar.Client) -> None:
        self.client = client
        self.namespace = f"public/gone-{uuid.uuid4().hex[:8]}"
        self._web_url = address.web_url
        self._canaries = 0
        self.admin("PUT", f"namespaces/{self.namespace}", {"bundles": {"numBundles": 1}})

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        return admin(self._web_url, method, path, body)

    def of_topic(self, method: str, rest: str, body: Any = None, domain: str = "persistent") -> Any:
        return self.admin(method, f"{domain}/{self.namespace}/{rest}", body)

    def name(self, local: str, domain: str = "persistent") -> str:
        return f"{domain}://{self.namespace}/{local}"

    def topics(self, domain: str = "persistent") -> list[str]:
        names = [name.rpartition("/")[2] for name in self.admin("GET", f"{domain}/{self.namespace}")]
        return [name for name in names if not name.startswith("canary")]

    def partitioned(self, domain: str = "persistent") -> list[str]:
        return [name.rpartition("/")[2] for name in self.admin("GET", f"{domain}/{self.namespace}/partitioned")]

    def policies(self, mode: str, *, enabled: bool = True) -> None:
        policies = {"inactiveTopicDeleteMode": mode, "maxInactiveDurationSeconds": 1, "deleteWhileInactive": enabled}
        self.admin("POST", f"namespaces/{self.namespace}/inactiveTopicPolicies", policies)

    def touch(self, local: str, domain: str = "persistent", **options: Any) -> None:
        self.client.create_producer(self.name(local, domain), **options).close()

    def has_schema(self, local: str) -> bool:
        try:
            self.admin("GET", f"schemas/{self.namespace}/{local}/schema")
        except AssertionError as refusal:
            if ": 404 " not in str(refusal):
                raise
            return False
        return True

    def checks(self, count: int = 2) -> None:
        """Return when topics that were needed as lately as the call have gone, if they may."""
        for _ in range(count):
            self._canaries += 1
            canary = self.name(f"canary-{self._canaries}")
            self.client.create_producer(canary).close()
            deadline = time.monotonic() + PATIENCE_S
            while canary in self.admin("GET", f"persistent/{self.namespace}"):
                assert time.monotonic() < deadline, f"{canary} is still there"
                time.sleep(0.1)


def created_and_used(side: Side) -> Any:
    side.of_topic("PUT", "created", {})
    side.of_topic("PUT", "created", {}, "non-persistent")
    side.touch("used")
    side.touch("used", "non-persistent")
    producer = side.client.create_producer(side.name("produced"))
    reader = side.client.create_reader(side.name("read"), pulsar.MessageId.latest)
    unstored = side.client.subscribe(side.name("consumed", "non-persistent"), "s")
    side.client.subscribe(side.name("subscribed"), "s").close()
    side.checks()
    before = side.topics(), side.topics("non-persistent")
    for client in (producer, reader, unstored):
        client.close()
    side.checks()
    return before, side.topics(), side.topics("non-persistent")


def caught_up(side: Side) -> Any:
    for local in ("read", "unread"):
        side.client.subscribe(side.name(local), "s").close()
        producer = side.client.create_producer(side.name(local))
        producer.send(b"x")
        producer.close()
    consumer = side.client.subscribe(side.name("read"), "s")
    consumer.acknowledge(receive(consumer, 1)[0])
    consumer.close()  # before the policy: a real broker that deletes a topic refuses to close its consumer
    side.policies(CAUGHT_UP)
    side.checks()
    return side.topics()


def retained(side: Side) -> Any:
    side.admin(
        "POST", f"namespaces/{side.namespace}/retention", {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1}
    )
    producer = side.client.create_producer(side.name("kept"))
    producer.send(b"x")
    producer.close()
    side.touch("empty")
    side.touch("empty", "non-persistent")
    other = f"public/other-{uuid.uuid4().hex[:8]}"  # where nothing is retained, so that checks can be seen
    side.admin("PUT", f"namespaces/{other}")
    side.namespace, kept = other, side.namespace
    side.checks(3)
    side.namespace = kept
    before = side.topics(), side.topics("non-persistent")
    side.admin("DELETE", f"namespaces/{side.namespace}/retention")
    side.checks()
    return before, side.topics()


def policies(side: Side) -> Any:
    """The topic's word counts before its namespace's, and that before the broker's."""
    side.policies(NO_SUBSCRIPTIONS, enabled=False)
    seen = []
    for local, enabled in (("silent", None), ("goes", True), ("stays", False)):
        side.touch(local)
        if enabled is not None:
            own = {"inactiveTopicDeleteMode": NO_SUBSCRIPTIONS, "maxInactiveDurationSeconds": 1}
            side.of_topic("POST", f"{local}/inactiveTopicPolicies", {**own, "deleteWhileInactive": enabled})
    deadline = time.monotonic() + PATIENCE_S
    while "goes" in side.topics():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    seen.append(side.topics())
    side.of_topic("PUT", "goes", {})
    seen.append(side.of_topic("GET", "goes/inactiveTopicPolicies"))
    side.admin("DELETE", f"namespaces/{side.namespace}/inactiveTopicPolicies")
    side.checks()
    return seen, side.topics()


def partitions(side: Side) -> Any:
    side.checks(1)  # a real broker loads what is stored in a bundle when it takes the bundle over, and that is now
    side.of_topic("PUT", "p/partitions", 2)
    side.touch("p-partition-0", schema=pulsar.schema.StringSchema())
    side.checks()
    seen = [(side.topics(), side.partitioned(), side.has_schema("p"))]
    side.admin("POST", f"{METADATA_SWITCH}/true")
    side.touch("p-partition-0")
    side.checks()
    seen.append((side.topics(), side.partitioned(), side.has_schema("p")))
    side.touch("p", schema=pulsar.schema.StringSchema())
    side.checks()
    seen.append((side.topics(), side.partitioned(), side.has_schema("p")))
    side.admin("DELETE", METADATA_SWITCH)
    return seen


def schema_goes_along(side: Side) -> Any:
    side.touch("typed", schema=pulsar.schema.StringSchema())
    before = side.has_schema("typed")
    side.checks()
    return before, side.has_schema("typed")


STORIES: dict[str, Callable[[Side], Any]] = {
    story.__name__: story for story in (created_and_used, caught_up, retained, policies, partitions, schema_goes_along)
}
TOLD = {
    "created_and_used": (
        (["produced", "read", "subscribed"], ["consumed"]),
        ["subscribed"],
        [],
    ),
    "caught_up": ["unread"],
    "retained": ((["kept"], []), []),
    "policies": ([["silent", "stays"], None], ["stays"]),
    "partitions": [
        (["p-partition-1"], ["p"], True),
        (["p-partition-1"], ["p"], True),
        ([], [], False),
    ],
    "schema_goes_along": (True, False),
}


def tell(address: Address, log_file: Path) -> dict[str, Any]:
    """All at once: each has a namespace of its own, and most of its time waits for the checks of the broker."""
    with connected(address.service_url, log_file) as client, ThreadPoolExecutor(len(STORIES)) as tellers:
        told = {name: tellers.submit(story, Side(address, client)) for name, story in STORIES.items()}
        return {name: each.result() for name, each in told.items()}


@contextmanager
def broker_checked_by_hand(directory: Path) -> Iterator[InProcessBroker]:
    """Our broker, whose checks are the test's, without auto-creation."""
    settings = {
        "allowAutoTopicCreation": "false",
        "brokerDeleteInactiveTopicsFrequencySeconds": "1000000",
        "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": "0",
    }
    with InProcessBroker(directory, settings) as broker:
        yield broker


def check_inactive(broker: InProcessBroker) -> list[str]:
    broker.call(lambda app: app.context.inactive_topics.check())
    return [name.rpartition("/")[2] for name in admin(broker.web_url, "GET", "persistent/public/default")]


@dataclass
class OpenProducer:
    """A producer of `p`, one of whose two partitions went, and the questions for their count since then."""

    broker: InProcessBroker
    producer: pulsar.Producer
    left: list[str]
    asked: list[bool]


@pytest.fixture(scope="module")
def open_producer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenProducer]:
    """Its client asks once a minute, which goes by while the other slow tests of this file run."""
    base, asked = TopicName.parse("p"), list[bool]()

    async def count_questions(app: Any) -> None:
        answer = app.lifecycle.partitions

        async def partitions(name: TopicName, *, create: bool) -> int:
            if name == base:
                asked.append(create)
            return int(await answer(name, create=create))

        app.lifecycle.partitions = partitions
        app.lifecycle.cached_partitions = lambda name, create: None  # no answer from memory, so that each is counted

    with (
        broker_checked_by_hand(tmp_path_factory.mktemp("asked")) as broker,
        connected(broker.service_url) as client,
    ):
        producer = partitioned_producer(broker, client)
        left = check_inactive(broker)
        broker.call(count_questions)
        yield OpenProducer(broker, producer, left, asked)


def partitioned_producer(broker: InProcessBroker, client: pulsar.Client) -> pulsar.Producer:
    """One that has opened one of the two partitions of a new topic."""
    admin(broker.web_url, "PUT", "persistent/public/default/p/partitions", 2)
    admin(broker.web_url, "GET", "persistent/public/default/p/partitioned-stats")  # loads both
    return client.create_producer("p", lazy_start_partitioned_producers=True)


@pytest.mark.slow
@pytest.mark.usefixtures("open_producer")
def test_stories_when_told_by_our_broker_then_are_as_written_down(tmp_path: Path) -> None:
    with InProcessBroker(tmp_path / "data", SETTINGS) as broker:
        assert tell(Address(broker.service_url, broker.web_url), tmp_path / "client.log") == TOLD


@pytest.mark.slow
@pytest.mark.usefixtures("open_producer")
def test_stories_when_told_by_a_real_pulsar_then_are_as_written_down(
    start_real_pulsar: RealPulsarFactory, tmp_path: Path
) -> None:
    real = start_real_pulsar("standalone", SETTINGS)
    assert tell(real.address, tmp_path / "client.log") == TOLD


def test_partition_when_it_went_then_the_official_client_gets_it_back_by_sending(tmp_path: Path) -> None:
    with broker_checked_by_hand(tmp_path) as broker, connected(broker.service_url) as client:
        producer = partitioned_producer(broker, client)
        opened = check_inactive(broker)
        assert len(opened) == 1
        assert len(client.get_topic_partitions("p")) == 2
        assert check_inactive(broker) == opened, "asking does not bring the other one back"
        for payload in (b"0", b"1"):
            producer.send(payload)  # in turn to each partition
        assert check_inactive(broker) == ["p-partition-0", "p-partition-1"]
        reader = client.create_reader("p", pulsar.MessageId.earliest)
        assert sorted(reader.read_next(60_000).data() for _ in range(2)) == [b"0", b"1"]


@pytest.mark.slow
def test_partition_when_it_went_then_the_clients_periodic_question_leaves_it_gone(open_producer: OpenProducer) -> None:
    """The client asks for the partition count once a minute as long as a producer is open."""
    broker, opened = open_producer.broker, open_producer.left
    assert len(opened) == 1
    until(lambda: open_producer.asked, 2 * PATIENCE_S)
    assert check_inactive(broker) == opened
    for payload in (b"0", b"1"):
        open_producer.producer.send(payload)  # in turn to each partition
    assert check_inactive(broker) == ["p-partition-0", "p-partition-1"]
