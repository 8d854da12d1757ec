"""The cursor of one topic-partition at the source, and the pace at which it is asked; time is an argument."""

from __future__ import annotations

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.session import Session
from interpulse.model.errors import PersistenceError
from interpulse.model.names import TopicName
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.spark.reading.source_cursor import PollPace, SourceCursor
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.scripted_broker import ScriptedBroker


async def test_cursor_when_its_question_fails_then_its_consumer_is_closed_before_another_is_opened() -> None:
    async with ScriptedBroker() as broker:
        given = {"service.url": broker.url, "topics": "t", "predefinedSubscription": "pulsar.repl.b"}
        session = Session(ClientConfig(broker.url))
        options = parse_read_options(given, Purpose.STREAM_READ)
        cursor = SourceCursor(session, TopicName.parse("t"), options, earliest=True)
        broker.scripts[pb.BaseCommand.GET_LAST_MESSAGE_ID] = lambda peer, frame: peer.say(
            commands.error(frame.command.getLastMessageId.request_id, pb.PersistenceError, "cannot be read")
        )
        with pytest.raises(PersistenceError):
            await cursor.end()
        del broker.scripts[pb.BaseCommand.GET_LAST_MESSAGE_ID]
        await cursor.end()
        subscribe, close = pb.BaseCommand.SUBSCRIBE, pb.BaseCommand.CLOSE_CONSUMER
        kinds = [frame.type for peer in broker.peers for frame in peer.seen if frame.type in (subscribe, close)]
        assert kinds == [subscribe, close, subscribe]
        await session.close()


def due_times(pace, end, *, until, stretch_max=1):
    """When it is asked if it ends there all the time, to a tenth of a second; the last answer says that it may rest."""
    asked = []
    for tenth in range(until * 10):
        if pace.due_at <= tenth / 10:
            asked.append(tenth / 10)
            if pace.note(end, tenth / 10, stretch_max=stretch_max):
                return asked, True
    return asked, False


def test_what_is_idle_is_asked_less_and_less_until_it_may_rest():
    assert due_times(PollPace(1.0), "1:2", until=60, stretch_max=8) == ([0.0, 1.0, 3.0, 7.0, 15.0], True)


def test_what_is_idle_among_few_is_asked_at_every_poll_until_it_may_rest():
    assert due_times(PollPace(1.0), "1:2", until=60) == ([float(second) for second in range(16)], True)


def test_what_grows_is_asked_at_every_poll():
    pace = PollPace(1.0)
    assert not any(pace.note(second, second) for second in range(20))
    assert pace.due_at == 20.0


def test_what_rests_is_asked_when_it_rings_and_after_minutes_all_the_same():
    pace = PollPace(1.0)
    pace.settle()
    assert pace.due_at == float("inf")
    pace.rest(10.0)
    assert 150.0 < pace.due_at <= 310.0
    pace.ring()
    assert pace.due_at <= 10.0


def test_what_rings_without_news_does_not_rest_at_once():
    """A broker that cannot send notices is asked on."""
    pace = PollPace(1.0)
    pace.note("1:2", 0.0)
    assert pace.note("1:2", 15.0)
    pace.ring()
    assert not pace.note("1:2", 16.0)


def test_what_rings_while_it_settles_does_not_rest():
    pace = PollPace(1.0)
    pace.settle()
    pace.ring()
    pace.rest(10.0)
    assert pace.due_at <= 10.0
