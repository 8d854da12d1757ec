"""Contents that are written to one broker and compared on another: messages, subscriptions and documents."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.client import Client
from interpulse.client.messages import Message, OutgoingMessage
from interpulse.model.errors import OperationTimeout, PulsarError, TopicTerminated
from interpulse.model.ids import EARLIEST, MessageId
from interpulse.model.policies.policy_records import RetentionPolicies
from tests.simulation.administered import Administered
from tests.simulation.judge import Finding, falling
from tests.simulation.workload import until_done

SETTINGS: Final[Mapping[str, object]] = {
    "brokerDeduplicationEnabled": "true",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "managedLedgerMaxEntriesPerLedger": 7,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
}
"""Settings of a broker that holds contents: each topic has several ledgers."""
_MESSAGES_MAX: Final = 40
_KEYS: Final = 5
_REQUESTS: Final = 25
_QUIET_MS: Final = 1_500
"""The time in which a consumer gets what is left for it."""
_PRODUCER: Final = "named"
_LARGE: Final = 200_000
"""Characters of a property of a subscription; three of them exceed one commit."""
_SUBSCRIPTIONS: Final = {"single": "shared", "cumulative": "exclusive", "waiting": "exclusive"}
"""The types of subscriptions: one acknowledges single messages, one up to a message, one nothing."""


class Seen(NamedTuple):
    """A message as programs see it, without the id of its ledger."""

    content: bytes
    key: str | None
    properties: tuple[tuple[str, str], ...]
    producer: str
    sequence_id: int
    published_ms: int
    batch_size: int
    batch_index: int


def _seen(message: Message) -> Seen:
    return Seen(
        message.content or b"",
        message.key,
        tuple(sorted(message.properties.items())),
        message.producer_name,
        message.sequence_id,
        message.publish_time_ms,
        message.batch_size,
        message.id.batch_index,
    )


@dataclass(slots=True)
class Topic:
    """A topic that was filled, and what must be found in it."""

    name: str
    messages: list[Seen] = field(default_factory=list)
    left: dict[str, list[bytes]] = field(default_factory=dict)
    """The messages that each subscription has not acknowledged, in order."""
    properties: dict[str, str] = field(default_factory=dict)
    """Those of each subscription."""
    compacted: list[bytes] | None = None
    """The messages of the compacted topic; None = it is not compacted."""
    last_sequence_id: int = -1
    terminated: bool = False


class Contents:
    """The contents of a namespace. Fill it with `fill`, and compare it elsewhere with `compare`."""

    def __init__(self, namespace: str, chance: random.Random) -> None:
        self.findings: list[Finding] = []
        self.writing = True
        """False = `write` ends."""
        self._namespace = namespace
        self._chance = chance
        self._topics: list[Topic] = []
        self._things: list[Administered] = []
        self._values: list[object] = []
        self._late = f"persistent://{namespace}/late"
        self._late_sent: list[bytes] = []
        self._late_confirmed: list[bytes] = []

    # filling

    async def fill(self, client: Client, admin: AdminClient, things: Sequence[Administered]) -> None:
        """Fill the topics of a namespace that exists, and change these things."""
        self._things = list(things)
        await admin.topics.create_partitioned(self._name("partitioned-messages"), 2)
        partitions = [self._name(f"partitioned-messages-partition-{number}") for number in range(2)]
        for name in [*map(self._name, ("compacted", "ended", "trimmed")), *partitions]:
            batched, large = self._chance.random() < 0.5, self._chance.random() < 0.2
            self._topics.append(await self._fill_topic(client, admin, name, batched=batched, large=large))
        compacted, ended, trimmed = self._topics[:3]
        await self._compact(client, admin, compacted)
        await self._terminate(admin, ended)
        await self._trim(client, admin, trimmed)
        await self._administer(admin)

    async def write(self, client: Client) -> None:
        """Write to one more topic while `writing` lasts."""
        producer = await until_done(lambda: client.create_producer(self._late, batching_enabled=False))
        while self.writing:
            await asyncio.sleep(self._chance.uniform(0, 0.02))
            payload = b"late/%d" % len(self._late_sent)
            self._late_sent.append(payload)
            receipt = await producer.enqueue(OutgoingMessage(payload))
            receipt.add_done_callback(partial(self._confirm, payload))
        await asyncio.gather(producer.close(), return_exceptions=True)

    def _confirm(self, payload: bytes, receipt: asyncio.Future[MessageId]) -> None:
        if not receipt.cancelled() and receipt.exception() is None:
            self._late_confirmed.append(payload)

    def _name(self, local: str) -> str:
        return f"persistent://{self._namespace}/{local}"

    async def _fill_topic(self, client: Client, admin: AdminClient, name: str, *, batched: bool, large: bool) -> Topic:
        topic = Topic(name, properties={"text": "x" * _LARGE if large else name})
        producer = await client.create_producer(name, name=_PRODUCER, batching_enabled=batched)
        for subscription in _SUBSCRIPTIONS:
            await admin.topics.create_subscription(name, subscription, MessageId(*EARLIEST))
            await admin.topics.set_subscription_properties(name, subscription, topic.properties)
        receipts: list[asyncio.Future[Any]] = []
        for number in range(self._chance.randint(0, _MESSAGES_MAX)):
            content = f"{name.rpartition('/')[2]}/{number}".encode()
            message = OutgoingMessage(content, f"k{self._chance.randrange(_KEYS)}", {"n": str(number)})
            receipts.append(await producer.enqueue(message))
            if self._chance.random() < 0.1:
                await asyncio.gather(*receipts)
            if self._chance.random() < 0.03:
                await admin.topics.unload(name)
        await asyncio.gather(*receipts)
        topic.last_sequence_id = producer.last_sequence_id
        await producer.close()
        topic.messages = [_seen(message) for message in await _read(client, name)]
        topic.left = {each: await self._acknowledge(client, topic, each) for each in _SUBSCRIPTIONS}
        return topic

    async def _acknowledge(self, client: Client, topic: Topic, subscription: str) -> list[bytes]:
        """Acknowledge some messages, and return the others."""
        contents = [seen.content for seen in topic.messages]
        if subscription == "waiting":
            return contents
        share = self._chance.choice([0.2, 0.6, 1.0])
        chosen = {content for content in contents if self._chance.random() < share}
        upto = self._chance.randint(0, len(contents))
        consumer = await _subscribe(client, topic.name, subscription)
        for number in range(len(contents)):
            message = await consumer.receive()
            assert message.content == contents[number]
            if subscription == "cumulative" and number == upto - 1:
                consumer.acknowledge_cumulative(message)
            elif subscription == "single" and message.content in chosen:
                consumer.acknowledge(message)
        await consumer.close()
        return contents[upto:] if subscription == "cumulative" else [each for each in contents if each not in chosen]

    async def _compact(self, client: Client, admin: AdminClient, topic: Topic) -> None:
        if topic.messages and self._chance.random() < 0.7:
            await admin.topics.compact(topic.name)
            while (await admin.topics.compaction_status(topic.name))["status"] != "SUCCESS":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            read = await _read(client, topic.name, read_compacted=True)
            topic.compacted = [message.content or b"" for message in read]

    async def _terminate(self, admin: AdminClient, topic: Topic) -> None:
        await admin.topics.terminate(topic.name)
        topic.terminated = True

    async def _trim(self, client: Client, admin: AdminClient, topic: Topic) -> None:
        """Remove what every subscription has acknowledged, as far as whole ledgers go."""
        await admin.topics.delete_subscription(topic.name, "waiting")
        del topic.left["waiting"]
        await admin.topic_policies.set(topic.name, "retention", RetentionPolicies(0, 0))
        await admin.topics.trim(topic.name)
        await admin.topic_policies.remove(topic.name, "retention")
        topic.messages = [_seen(message) for message in await _read(client, topic.name)]

    async def _administer(self, admin: AdminClient) -> None:
        for _ in range(_REQUESTS):
            request = self._chance.choice(self._things).draw(self._chance)
            try:
                await request.send(admin)
            except PulsarError:
                continue  # refused; the values are read below
        self._values = [await thing.read(admin) for thing in self._things]

    # comparing

    async def compare(self, client: Client, admin: AdminClient, *, cluster: str) -> None:
        """Compare what is there with what was filled. ``cluster`` is the name that documents must have."""
        for thing, value in zip(self._things, self._values, strict=True):
            there = await until_done(partial(thing.read, admin))
            if there != value:
                self.findings.append(Finding("T2", f"{thing.name} is {there!r}, and was {value!r}"))
        await self._compare_clusters(admin, cluster)
        for topic in self._topics:
            await self._compare_topic(client, admin, topic)
        await self._compare_late(client)

    async def _compare_clusters(self, admin: AdminClient, cluster: str) -> None:
        tenant = self._namespace.partition("/")[0]
        named = {
            f"tenant {tenant}": (await admin.tenants.get(tenant)).allowed_clusters,
            f"namespace {self._namespace}": await admin.namespaces.replication_clusters(self._namespace),
        }
        for what, clusters in named.items():
            if list(clusters) != [cluster]:
                self.findings.append(Finding("T2", f"{what} has the clusters {clusters}, not {cluster}"))

    async def _compare_topic(self, client: Client, admin: AdminClient, topic: Topic) -> None:
        read = [_seen(message) for message in await _read(client, topic.name)]
        self.findings += differences(topic.name, topic.messages, read)
        if topic.compacted is not None:
            compacted = [message.content for message in await _read(client, topic.name, read_compacted=True)]
            if compacted != topic.compacted:
                self.findings.append(
                    Finding("S1", f"{topic.name} is compacted to {compacted}, and was to {topic.compacted}")
                )
        for subscription, left in topic.left.items():
            properties = await admin.topics.subscription_properties(topic.name, subscription)
            if properties != topic.properties:
                self.findings.append(Finding("T2", f"{topic.name}, subscription {subscription}: other properties"))
            received = await _consumed(client, topic.name, subscription)
            self.findings += of_subscription(topic.name, subscription, left, received)
        await self._compare_producer(client, topic)

    async def _compare_producer(self, client: Client, topic: Topic) -> None:
        try:
            producer = await client.create_producer(topic.name, name=_PRODUCER)
        except TopicTerminated:
            if not topic.terminated:
                self.findings.append(Finding("T2", f"{topic.name} is terminated"))
            return
        if topic.terminated:
            self.findings.append(Finding("T2", f"{topic.name} was terminated, and takes messages"))
        if producer.last_sequence_id != topic.last_sequence_id:
            text = f"the last sequence id of {topic.name} is {producer.last_sequence_id}, not {topic.last_sequence_id}"
            self.findings.append(Finding("L2", text))
        await producer.close()

    async def _compare_late(self, client: Client) -> None:
        if not self._late_sent:
            return
        read = [message.content or b"" for message in await _read(client, self._late)]
        self.findings += [
            *(
                Finding("L1", f"{each!r} was confirmed and is gone", each)
                for each in self._late_confirmed
                if each not in read
            ),
            *(Finding("L4", f"{each!r} was never sent", each) for each in read if each not in self._late_sent),
            *doubled(self._late, read),
            *falling("L3", "stored", read),
        ]


async def _subscribe(client: Client, topic: str, subscription: str) -> Any:
    return await until_done(
        lambda: client.subscribe(
            topic,
            subscription,
            subscription_type=_SUBSCRIPTIONS[subscription],
            initial_position="earliest",
            batch_index_ack_enabled=True,
        )
    )


async def _read(client: Client, topic: str, **options: Any) -> list[Message]:
    reader = await until_done(lambda: client.create_reader(topic, **options))
    read = []
    while await reader.has_message_available():
        read.append(await reader.read_next())
    await reader.close()
    return read


async def _consumed(client: Client, topic: str, subscription: str) -> list[bytes]:
    """Receive until nothing comes any more."""
    consumer = await _subscribe(client, topic, subscription)
    received: list[bytes] = []
    while True:
        try:
            message = await consumer.receive(timeout_ms=_QUIET_MS)
        except OperationTimeout:
            break
        received.append(message.content or b"")
    await consumer.close()
    return received


def differences(topic: str, wanted: Sequence[Seen], read: Sequence[Seen]) -> Iterator[Finding]:
    """Yield the messages of a topic that are gone, new, doubled or out of order."""
    for seen in wanted:
        if seen not in read:
            yield Finding("L1", f"{topic}: {seen} is not stored", seen.content)
    for seen in read:
        if seen not in wanted:
            yield Finding("L4", f"{topic}: {seen} was not there", seen.content)
    yield from doubled(topic, [seen.content for seen in read])
    yield from falling("L3", "stored", (seen.content for seen in read))


def doubled(topic: str, contents: Sequence[bytes]) -> Iterator[Finding]:
    """Yield the messages that a topic has more than once."""
    for content, count in Counter(contents).items():
        if count > 1:
            yield Finding("L2", f"{topic}: {content!r} is stored {count} times", content)


def of_subscription(
    topic: str, subscription: str, left: Sequence[bytes], received: Sequence[bytes]
) -> Iterator[Finding]:
    """Yield the messages that a subscription did not get, got again, or got out of order."""
    where = f"{topic}, subscription {subscription}"
    for content in left:
        if content not in received:
            yield Finding("S1", f"{where}: {content!r} was not acknowledged, and did not come", content)
    for content in received:
        if content not in left:
            yield Finding("S2", f"{where}: {content!r} was acknowledged, and came again", content)
    yield from falling("S4", f"delivered to {subscription}", received)
