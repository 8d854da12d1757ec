"""A table view, with a broker that says what the test wants."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interpulse.client import Client, TableView, TableViewConfig
from interpulse.model.errors import AlreadyClosed, NotAllowed
from interpulse.model.ids import Position
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.scripted_broker import ScriptedBroker
from tests.support.waiting import eventually
from tests.unit.client.consuming.test_partition_consumer import single

TOPIC = "persistent://public/default/t"


class Feeder:
    """A topic that grows; the scripted broker tells its end."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.entry = -1
        self._held: list[tuple[Position, bytes]] = []
        broker.scripts[pb.BaseCommand.FLOW] = lambda peer, frame: self._say_held()

    def hold(self, key: str | None, content: bytes) -> None:
        """There before the first read."""
        self.entry += 1
        fields = {} if key is None else {"partition_key": key}
        self._held.append((Position(1, self.entry), single(content, **fields)))
        self.broker.last = (1, self.entry)

    def _say_held(self) -> None:
        consumer_id = self.broker.all_of(pb.BaseCommand.SUBSCRIBE)[-1].subscribe.consumer_id
        held, self._held = self._held, []
        for position, entry in held:
            self.broker.peers[-1].say(commands.message(consumer_id, position, entry))

    async def send(self, view: TableView[Any], key: str | None, content: bytes) -> None:
        """Published now; returns when the view has it."""
        self.hold(key, content)
        self._say_held()
        await view.refresh()


Story = Callable[[Feeder, Client], Awaitable[None]]


async def play(story: Story) -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        async with asyncio.timeout(60):
            await story(Feeder(broker), client)


async def test_view_reads_from_the_beginning_as_compaction_left_it_and_leaves_nothing_behind() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        await client.create_table_view(TOPIC, subscription_prefix="view")
        (subscribe,) = [command.subscribe for command in broker.all_of(pb.BaseCommand.SUBSCRIBE)]
        assert subscribe.read_compacted
        assert not subscribe.durable
        assert subscribe.subscription.startswith("view-")
        assert subscribe.start_message_id.entryId == 2**64 - 1


async def test_view_when_opened_then_holds_the_newest_value_of_every_key() -> None:
    async def story(feeder: Feeder, client: Client) -> None:
        for key, content in [("a", b"1"), ("b", b"2"), ("a", b"3"), (None, b"x"), ("b", b"")]:
            feeder.hold(key, content)
        view = await client.create_table_view(TOPIC)
        assert view.topic == TOPIC
        assert (len(view), list(view), dict(view.items())) == (1, ["a"], {"a": b"3"})
        assert (view["a"], view.get("a"), view.get("b"), view.get("b", b"none")) == (b"3", b"3", None, b"none")
        assert ("a" in view, "b" in view) == (True, False)
        assert (list(view.keys()), list(view.values())) == (["a"], [b"3"])
        with pytest.raises(KeyError):
            view["b"]

    await play(story)


async def test_view_when_messages_come_then_follows_and_tells_its_listeners() -> None:
    async def story(feeder: Feeder, client: Client) -> None:
        feeder.hold("a", b"1")
        view = await client.create_table_view(TOPIC)
        heard: list[tuple[str, bytes | None]] = []
        all_: list[tuple[str, bytes | None]] = []
        end = view.listen(lambda key, value: heard.append((key, value)))
        view.for_each_and_listen(lambda key, value: all_.append((key, value)))
        before = view.items()
        await feeder.send(view, "b", b"2")
        await feeder.send(view, "a", b"")
        assert heard == [("b", b"2"), ("a", None)]
        assert all_ == [("a", b"1"), *heard]
        assert dict(before) == {"a": b"1"}, "what was given stays"
        assert view.snapshot() == {"b": b"2"}
        end()
        end()
        await feeder.send(view, "c", b"3")
        assert len(heard) == 2
        assert len(all_) == 4

    await play(story)


async def test_listener_that_raises_is_logged_and_the_others_hear(caplog: pytest.LogCaptureFixture) -> None:
    async def story(feeder: Feeder, client: Client) -> None:
        view = await client.create_table_view(TOPIC)
        heard: list[str] = []
        view.listen(lambda key, value: 1 // 0)
        view.listen(lambda key, value: heard.append(key))
        await feeder.send(view, "a", b"1")
        assert heard == ["a"]
        assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError]

    with caplog.at_level(logging.ERROR):
        await play(story)


async def test_values_are_decoded_and_what_cannot_be_ends_the_view_in_words() -> None:
    async def story(feeder: Feeder, client: Client) -> None:
        feeder.hold("a", b'{"n": 1}')
        view = await client.create_table_view(TOPIC, decode=json.loads)
        assert view["a"] == {"n": 1}
        with pytest.raises(json.JSONDecodeError):
            await feeder.send(view, "a", b"no json")
        with pytest.raises(json.JSONDecodeError):
            len(view)

    await play(story)


async def test_view_that_cannot_decode_what_is_there_is_not_opened() -> None:
    async def story(feeder: Feeder, client: Client) -> None:
        feeder.hold("a", b"no json")
        with pytest.raises(json.JSONDecodeError):
            await client.create_table_view(TOPIC, decode=json.loads)

    await play(story)


async def test_view_when_closed_then_says_so() -> None:
    async def story(feeder: Feeder, client: Client) -> None:
        async with await client.create_table_view(TOPIC) as view:
            pass
        assert view.is_closed
        for question in (lambda: view.get("a"), lambda: len(view), lambda: list(view), lambda: "a" in view):
            with pytest.raises(AlreadyClosed):
                question()
        with pytest.raises(AlreadyClosed):
            await view.refresh()
        await view.close()

    await play(story)


async def test_view_that_the_broker_refuses_is_not_opened() -> None:
    async with ScriptedBroker() as broker, Client(broker.url) as client:
        broker.scripts[pb.BaseCommand.SUBSCRIBE] = lambda peer, frame: peer.say(
            commands.error(frame.command.subscribe.request_id, pb.NotAllowedError, "readCompacted only valid here")
        )
        with pytest.raises(NotAllowed, match="readCompacted"):
            await client.create_table_view("non-persistent://public/default/t")


@pytest.mark.parametrize("interval_ms", [0, -1])
def test_interval_that_cannot_be_kept_is_refused(interval_ms: int) -> None:
    with pytest.raises(ValueError, match="auto_update_partitions_interval_ms"):
        TableViewConfig(auto_update_partitions_interval_ms=interval_ms)


async def test_refresh_when_the_last_message_is_compacted_away_before_it_comes_then_ends() -> None:
    async def story(feeder: Feeder, client: Client) -> None:
        feeder.hold("a", b"1")
        view = await client.create_table_view(TOPIC)
        broker, asked = feeder.broker, feeder.broker.count(pb.BaseCommand.GET_LAST_MESSAGE_ID)
        broker.last = (1, 1)
        refreshed = asyncio.create_task(view.refresh())
        await eventually(lambda: broker.count(pb.BaseCommand.GET_LAST_MESSAGE_ID) > asked)
        broker.last = (1, 0)
        await refreshed
        assert view.snapshot() == {"a": b"1"}

    await play(story)
