"""Topics that match a pattern, and how the consumer follows them."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator

import pytest

from interpulse.client.client import Client
from interpulse.client.consuming.consumer import Consumer
from interpulse.client.consuming.topic_discovery import TopicsPattern
from interpulse.model.errors import InvalidRequest, InvalidTopicName, NotAllowed
from interpulse.model.names import TopicName
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import Frame
from interpulse.wire.hashing import topics_hash
from tests.support import commands
from tests.support.scripted_broker import Peer, ScriptedBroker
from tests.support.waiting import eventually


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("persistent://a/b/f-.*", "persistent://a/b/f-.*"),
        ("a/b/f-.*", "persistent://a/b/f-.*"),
        ("f-.*", "persistent://public/default/f-.*"),
        ("^persistent://a/b/f-.*$", "persistent://a/b/f-.*$"),
        ("non-persistent://a/b/f", "persistent://a/b/f"),
    ],
)
def test_pattern_when_written_in_any_form_of_a_name_then_brokers_are_told_the_complete_one(
    written: str, told: str
) -> None:
    pattern = TopicsPattern.of(re.compile(written))
    assert (pattern.text, f"persistent://{pattern.namespace}/") == (told, told[: told.rindex("/") + 1])


@pytest.mark.parametrize("written", ["a/.*", "persistent://f", "persistent://.*/b/c", "a/b.*/c"])
def test_pattern_when_it_does_not_name_one_namespace_then_refused(written: str) -> None:
    with pytest.raises(InvalidTopicName):
        TopicsPattern.of(re.compile(written))


@pytest.mark.parametrize(
    ("written", "topic", "matches"),
    [
        ("a/b/f-.*", "persistent://a/b/f-1", True),
        ("a/b/f-.*", "persistent://a/b/g-1", False),
        ("a/b/f", "persistent://a/b/f-1", False),
        ("a/b/f|g", "persistent://a/b/g", True),
        ("a/b/f", "persistent://a/b/f-partition-3", True),
        ("a/b/f-partition-3", "persistent://a/b/f-partition-3", False),
        ("a/b/f.*", "non-persistent://a/b/f", True),
        ("a.c/b/f", "persistent://abc/b/f", False),
    ],
)
def test_pattern_when_asked_for_a_topic_then_the_whole_name_counts(written: str, topic: str, matches: bool) -> None:
    assert TopicsPattern.of(re.compile(written)).matches(TopicName.parse(topic)) is matches


def test_pattern_when_compiled_with_flags_then_keeps_them() -> None:
    assert TopicsPattern.of(re.compile("a/b/F", re.IGNORECASE)).matches(TopicName.parse("a/b/f"))


TYPES = pb.BaseCommand
NEVER_MS = 600_000


def complete(*names: str) -> list[str]:
    return [f"persistent://a/b/{name}" for name in names]


class Town(ScriptedBroker):
    """A broker with topics that come and go."""

    def __init__(self, *, watching: bool = True) -> None:
        super().__init__(pb.FeatureFlags(supports_topic_watchers=watching))
        self.topics = complete("f-1", "g-1")
        self.gone: set[str] = set()
        self.filters = False
        self.watcher: tuple[Peer, int] | None = None
        self.scripts[TYPES.GET_TOPICS_OF_NAMESPACE] = self.on_list
        self.scripts[TYPES.WATCH_TOPIC_LIST] = self.on_watch
        self.scripts[TYPES.SUBSCRIBE] = self.on_subscribe

    @property
    def matching(self) -> list[str]:
        return [topic for topic in self.topics if "/f-" in topic]

    def on_list(self, peer: Peer, frame: Frame) -> None:
        names = self.matching if self.filters else self.topics
        request_id = frame.command.getTopicsOfNamespace.request_id
        peer.say(commands.get_topics_of_namespace_response(request_id, names, topics_hash="", filtered=self.filters))

    def on_watch(self, peer: Peer, frame: Frame) -> None:
        request = frame.command.watchTopicList
        current = topics_hash(self.matching)
        self.watcher = peer, request.watcher_id
        names = [] if request.topics_hash == current else self.matching
        peer.say(commands.watch_topic_list_success(request.request_id, request.watcher_id, names, topics_hash=current))

    def on_subscribe(self, peer: Peer, frame: Frame) -> None:
        request = frame.command.subscribe
        if request.topic in self.gone:
            peer.say(commands.error(request.request_id, 11, f"{request.topic} is gone"))
        else:
            peer.say(commands.success(request.request_id))

    async def tell(self, new: list[str] = [], deleted: list[str] = [], *, silent: bool = False) -> None:  # noqa: B006
        """Change the topics; ``silent``: without a word."""
        self.topics = [topic for topic in [*self.topics, *new] if topic not in deleted]
        if silent:
            return
        await self.heard(TYPES.WATCH_TOPIC_LIST)
        assert self.watcher is not None
        peer, watcher_id = self.watcher
        current = topics_hash(self.matching)
        peer.say(commands.watch_topic_update(watcher_id, new=new, deleted=deleted, topics_hash=current))

    def subscribed(self) -> list[pb.CommandSubscribe]:
        return [command.subscribe for command in self.all_of(TYPES.SUBSCRIBE)]


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with Town() as town:
        yield town


async def opened(town: Town, **options: object) -> tuple[Client, Consumer]:
    client = Client(town.url, backoff_initial_ms=1, backoff_max_ms=10, operation_timeout_ms=60_000)
    settings = {"pattern_discovery_interval_ms": NEVER_MS, **options}
    return client, await client.subscribe(re.compile("a/b/f-.*"), "s", **settings)


@pytest.mark.parametrize("filters", [True, False])
async def test_pattern_when_opened_then_what_matches_is_subscribed_to_without_creating(
    town: Town, filters: bool
) -> None:
    town.filters = filters
    client, consumer = await opened(town)
    assert consumer.topics == complete("f-1")
    assert [(each.topic, each.force_topic_creation) for each in town.subscribed()] == [(*complete("f-1"), False)]
    assert town.all_of(TYPES.GET_TOPICS_OF_NAMESPACE)[0].getTopicsOfNamespace.topics_pattern == complete("f-.*")[0]
    assert town.count(TYPES.PARTITIONED_METADATA) == 0
    await client.close()


async def test_pattern_when_the_consumer_has_properties_then_they_are_sent_with_the_question(town: Town) -> None:
    """PIP-452: a plug-in of the broker may choose topics by them."""
    client, _ = await opened(town, properties={"team": "x"})
    asked = town.all_of(TYPES.GET_TOPICS_OF_NAMESPACE)[0].getTopicsOfNamespace
    assert [(each.key, each.value) for each in asked.properties] == [("team", "x")]
    await client.close()


async def test_pattern_when_the_broker_tells_of_topics_then_follows_from_their_beginning(town: Town) -> None:
    client, consumer = await opened(town)
    await town.tell(new=complete("f-2"))
    await eventually(lambda: consumer.topics == complete("f-1", "f-2") and consumer.is_connected)
    late = town.subscribed()[-1]
    assert (late.topic, late.initialPosition) == (*complete("f-2"), pb.CommandSubscribe.Earliest)
    await town.tell(deleted=complete("f-1"))
    await eventually(lambda: consumer.topics == complete("f-2"))
    assert town.count(TYPES.GET_TOPICS_OF_NAMESPACE) == 1
    await client.close()
    await town.heard(TYPES.WATCH_TOPIC_LIST_CLOSE)


async def test_pattern_when_an_update_was_missed_then_the_list_is_asked_for(town: Town) -> None:
    client, consumer = await opened(town)
    await town.heard(TYPES.WATCH_TOPIC_LIST)
    await town.tell(new=complete("f-2"), silent=True)
    await town.tell(new=complete("f-3"))
    await eventually(lambda: consumer.topics == complete("f-1", "f-2", "f-3"))
    first, second = (command.watchTopicList for command in town.all_of(TYPES.WATCH_TOPIC_LIST))
    assert (first.watcher_id, first.topics_hash) == (second.watcher_id, topics_hash(complete("f-1")))
    await client.close()


async def test_pattern_when_the_interval_is_over_then_makes_sure_of_its_topics(town: Town) -> None:
    client, consumer = await opened(town, pattern_discovery_interval_ms=20)
    await town.heard(TYPES.WATCH_TOPIC_LIST)
    await town.tell(new=complete("f-2"), deleted=complete("f-1"), silent=True)
    await eventually(lambda: consumer.topics == complete("f-2"))
    assert town.count(TYPES.GET_TOPICS_OF_NAMESPACE) == 1
    await client.close()


async def test_pattern_when_the_connection_is_lost_then_watches_again_and_catches_up(town: Town) -> None:
    client, consumer = await opened(town)
    await town.heard(TYPES.WATCH_TOPIC_LIST)
    await town.tell(new=complete("f-2"), silent=True)
    town.peers[-1].drop()
    await town.heard(TYPES.WATCH_TOPIC_LIST, 2)
    await eventually(lambda: consumer.topics == complete("f-1", "f-2") and consumer.is_connected)
    await client.close()


async def test_pattern_when_a_topic_is_gone_before_the_broker_says_so_then_left_and_taken_again(town: Town) -> None:
    client, consumer = await opened(town)
    await town.heard(TYPES.FLOW)
    town.gone.update(complete("f-1"))
    town.peers[-1].say(commands.close_consumer(town.subscribed()[0].consumer_id))
    await eventually(lambda: consumer.topics == [])
    town.gone.clear()
    await town.tell(deleted=complete("f-1"))
    await town.tell(new=complete("f-1"))
    await eventually(lambda: consumer.topics == complete("f-1") and consumer.is_connected)
    await client.close()


async def test_pattern_when_a_topic_cannot_be_opened_then_tried_again_long_before_the_interval_is_over(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    client, consumer = await opened(town)
    town.gone.update(complete("f-2"))
    with caplog.at_level(logging.WARNING, "interpulse.client.consuming.topic_discovery"):
        await town.tell(new=complete("f-2"))
        await eventually(lambda: "persistent://a/b/f-2" in caplog.text)
    town.gone.clear()
    await eventually(lambda: consumer.topics == complete("f-1", "f-2") and consumer.is_connected)
    await client.close()


async def test_pattern_when_a_listed_topic_has_just_gone_then_opened_without_it(town: Town) -> None:
    town.gone.update(complete("f-1"))
    client, consumer = await opened(town)
    assert consumer.topics == []
    await client.close()


async def test_pattern_when_a_topic_refuses_for_another_reason_then_so_is_the_consumer(town: Town) -> None:
    town.scripts[TYPES.SUBSCRIBE] = lambda peer, frame: peer.say(
        commands.error(frame.command.subscribe.request_id, 22, "not you")
    )
    with pytest.raises(NotAllowed, match="not you"):
        await opened(town)


@pytest.mark.parametrize("reason", ["refused", "unknown"])
async def test_pattern_when_the_broker_does_not_watch_then_is_asked(reason: str) -> None:
    async with Town(watching=reason == "refused") as town:
        town.scripts[TYPES.WATCH_TOPIC_LIST] = lambda peer, frame: peer.say(
            commands.error(frame.command.watchTopicList.request_id, 22, "Pattern longer than maximum: 50")
        )
        client, consumer = await opened(town, pattern_discovery_interval_ms=20)
        await town.tell(new=complete("f-2", "g-2"), deleted=complete("f-1"), silent=True)
        await eventually(lambda: consumer.topics == complete("f-2") and consumer.is_connected)
        assert town.count(TYPES.WATCH_TOPIC_LIST) == (1 if reason == "refused" else 0)
        await client.close()


async def test_pattern_when_other_topics_are_meant_than_watchers_know_then_asks(town: Town) -> None:
    client, consumer = await opened(town, pattern_discovery_interval_ms=20, topics_mode="ALL")
    await town.heard(TYPES.GET_TOPICS_OF_NAMESPACE, 3)
    assert town.count(TYPES.WATCH_TOPIC_LIST) == 0
    assert consumer.topics == complete("f-1")
    await client.close()


async def test_pattern_when_its_topics_are_to_be_named_then_refused(town: Town) -> None:
    client, consumer = await opened(town)
    for change in (consumer.add_topics, consumer.remove_topics):
        with pytest.raises(InvalidRequest, match=re.escape("persistent://a/b/f-.*")):
            await change(["x"])
    with pytest.raises(InvalidRequest, match="retry_enabled"):
        await client.subscribe(re.compile("a/b/x"), "s", retry_enabled=True)
    await client.close()
