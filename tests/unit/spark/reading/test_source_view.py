"""The source as the driver sees it: a topic that gives no answer keeps its place and holds no other up."""

import asyncio
import json
from typing import Any

import pytest

from interpulse.model.errors import NotConnected, PersistenceError, TopicNotFound
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.lanes import LaneState, pack_sequence
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading import source_view
from interpulse.spark.reading.planner import TopicEnd, WrittenBatch
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.spark.reading.source_cursor import PollPace
from interpulse.spark.reading.throttle import Rate
from interpulse.spark.state_files import LAST_COMMIT_FILE, LaneFiles

A, B, C = (f"persistent://t/ns/{name}" for name in "abc")
END = TopicEnd(Position(3, 4))


class Answers:
    """What cursors say, by topic: an end, an error, or a future."""

    def __init__(self, monkeypatch):
        self.by_topic: dict[Any, Any] = {}
        self.rings: list[Any] = []
        self.acknowledged: asyncio.Queue[tuple[str, Position]] = asyncio.Queue()
        answers = self

        class Cursor:
            def __init__(self, session, topic, options, *, earliest):
                self.topic = str(topic)

            def acknowledge(self, position):
                answers.acknowledged.put_nowait((self.topic, position))

            async def end(self):
                answer = answers.by_topic[self.topic]
                if isinstance(answer, asyncio.Future):
                    answer = await answer
                if isinstance(answer, Exception):
                    raise answer
                return answer

            async def rest(self, ring):
                answers.rings.append(ring)
                return True

            async def close(self):
                pass

        async def session_for(url, timeout_ms, access):
            return None

        monkeypatch.setattr(source_view, "SourceCursor", Cursor)
        monkeypatch.setattr(source_view, "session_for", session_for)
        monkeypatch.setattr(source_view, "_PATIENCE_S", 0.01)
        options = parse_read_options({"service.url": "pulsar://x:1", "topics": "t/ns/a"}, Purpose.STREAM_READ)
        self.view = source_view.BrokerSourceView(options)

    async def ends(self, **by_topic):
        self.by_topic = {f"persistent://t/ns/{name}": answer for name, answer in by_topic.items()}
        return await self.view.ends_in_loop(list(self.by_topic))


@pytest.fixture
def answers(monkeypatch):
    return Answers(monkeypatch)


async def test_first_question_that_fails_for_one_topic_is_an_error(answers):
    with pytest.raises(PersistenceError):
        await answers.ends(a=END, b=PersistenceError("damaged"))


async def test_topic_that_fails_later_is_left_out(answers):
    await answers.ends(a=END, b=END)
    assert await answers.ends(a=END, b=PersistenceError("damaged")) == {A: END}
    assert await answers.ends(a=END, b=END) == {A: END, B: END}


async def test_topic_that_is_gone_is_left_out(answers):
    assert await answers.ends(a=END, b=TopicNotFound("gone")) == {A: END}


async def test_topic_without_answer_is_asked_on_in_the_background(answers):
    await answers.ends(a=END, b=END)
    pending = asyncio.get_running_loop().create_future()
    assert await answers.ends(a=END, b=pending) == {A: END}
    pending.set_result(END)
    await asyncio.sleep(0)
    assert await answers.ends(a=END, b=pending) == {A: END, B: END}


async def test_answer_to_an_earlier_question_that_is_older_than_what_was_copied_since_is_asked_for_again(answers):
    """The stream would take the source for one that went backwards, and end for good."""
    await answers.ends(a=END, b=END)
    pending = asyncio.get_running_loop().create_future()
    await answers.ends(a=END, b=pending)
    pending.set_result(END)
    await asyncio.sleep(0)
    answers.view._copied = {B: Position(3, 7)}
    assert await answers.ends(a=END, b=pending) == {A: END}
    assert await answers.ends(a=END, b=TopicEnd(Position(3, 8))) == {A: END, B: TopicEnd(Position(3, 8))}


async def test_source_that_cannot_be_reached_at_all_is_an_error(answers):
    await answers.ends(a=END, b=END)
    with pytest.raises(NotConnected):
        await answers.ends(a=NotConnected("no route"), b=NotConnected("no route"))


def test_rates_and_what_was_written_are_read_from_the_files_of_the_job(tmp_path):
    listed = {"topics": [A, B], "held": [], "rates": {A: [10, -1, 1, False]}}
    (tmp_path / "topics.json").write_text(json.dumps(listed))
    given = {"service.url": "pulsar://x:1", "topicsFile": str(tmp_path / "topics.json")}
    view = source_view.BrokerSourceView(parse_read_options(given, Purpose.STREAM_READ))
    assert (view.discover(), view.rates(), view.written()) == ((A, B), {A: Rate(10, -1)}, None)
    for left in ("", "{"):  # by a crash of the machine
        (tmp_path / LAST_COMMIT_FILE).write_text(left)
        assert view.written() is None
    for batch in (4, 5):
        LaneFiles(str(tmp_path)).write_summary({"batchId": batch, "topics": {A: (batch, 20, 300)}})
        assert view.written() == WrittenBatch(batch, {A: (batch, 300)})


@pytest.fixture
async def of_job(answers, monkeypatch, tmp_path):
    """The view of a replication job, whose topics may rest from the first answer on."""
    monkeypatch.setattr(PollPace, "note", lambda pace, end, now, stretch_max: True)
    monkeypatch.setattr(source_view, "_ACKNOWLEDGE_SECONDS", 0.0)
    given = {"service.url": "pulsar://x:1", "topicsFile": str(tmp_path / "topics.json")}
    answers.view = source_view.BrokerSourceView(parse_read_options(given, Purpose.STREAM_READ))
    yield
    await answers.view.close_in_loop()


@pytest.mark.usefixtures("of_job")
async def test_subscription_follows_what_the_batch_in_progress_has_copied(answers, tmp_path, caplog):
    files = LaneFiles(str(tmp_path))
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "0-0.json").mkdir()  # cannot be read
    await answers.ends(a=END, b=END)
    async with asyncio.timeout(30):
        while "cannot be read" not in caplog.text:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0)
    (tmp_path / "live" / "0-0.json").rmdir()
    for entry in (2, 3):
        copied = {A: Position(3, entry), C: Position(3, entry)}
        files.write_live(0, 0, {topic: (position, 1, 1, 10) for topic, position in copied.items()})
        async with asyncio.timeout(30):
            while await answers.acknowledged.get() != (A, Position(3, entry)):
                pass


@pytest.mark.usefixtures("of_job")
async def test_topic_rests_only_when_its_subscription_has_acknowledged_everything(answers):
    acknowledged = END._replace(acknowledged=END.last)
    empty = TopicEnd(EARLIEST, Position(3, -1))
    waiting = END._replace(acknowledged=Position(3, 3))
    await answers.ends(a=acknowledged, b=empty, c=waiting)
    assert answers.view._settling.keys() == {A, B}
    skipped = END._replace(acknowledged=END.last)
    assert (await answers.ends(a=acknowledged, b=empty, c=skipped))[C] == skipped


@pytest.mark.usefixtures("of_job")
async def test_idle_job_is_woken_by_a_topic_that_rests(answers):
    asked = await answers.ends(a=END)
    await asyncio.wait(answers.view._settling.values())
    assert not await answers.view.await_news_in_loop(0.0, 0.01)
    assert await answers.ends(a=TopicEnd(Position(9, 9))) is asked  # not asked while it rests
    asyncio.get_running_loop().call_soon(answers.rings[0])
    assert await answers.view.await_news_in_loop(0.0, 60.0)
    assert await answers.ends(a=TopicEnd(Position(9, 9))) == {A: TopicEnd(Position(9, 9))}


@pytest.mark.usefixtures("of_job")
async def test_topic_of_which_tasks_copied_more_than_is_known_is_asked_though_it_rests(answers, tmp_path):
    await answers.ends(a=END)
    await asyncio.wait(answers.view._settling.values())
    files = LaneFiles(str(tmp_path))
    files.commit(0, {A: LaneState(pack_sequence(3, 9), Position(1, 1))})
    copied = answers.view.copied()
    assert copied == {A: Position(3, 9)}
    assert answers.view.copied() is copied
    later = TopicEnd(Position(3, 9))
    assert await answers.ends(a=later) == {A: later}
    files.commit(1, {A: LaneState(pack_sequence(3, 10), Position(1, 2))})
    assert answers.view.copied() == {A: Position(3, 10)}


@pytest.mark.usefixtures("of_job")
async def test_news_of_a_topic_that_tasks_do_not_follow_ends_their_run_ahead_once(answers, tmp_path):
    files = LaneFiles(str(tmp_path))
    (tmp_path / "topics.json").write_text(json.dumps({"topics": [A, B], "held": []}))
    answers.view.discover()
    await answers.ends(a=END, b=END)
    await asyncio.wait(answers.view._settling.values())
    assert answers.view.activity() == {A: False, B: False}
    for followed, ends in (({A, B}, False), ({B}, True), (set(), True)):
        before = files.run_ahead_watch()
        answers.view.note_followed(followed)
        answers.rings[0]()
        watch = files.run_ahead_watch()
        assert (watch != before) is ends
        answers.rings[0]()
        assert files.run_ahead_watch() == watch
    assert answers.view.activity() == {A: True, B: False}


@pytest.mark.usefixtures("of_job")
@pytest.mark.parametrize("held", [[B], []], ids=["holds", "does not list"])
async def test_topic_that_the_job_does_not_copy_any_more_is_not_followed(answers, tmp_path, held):
    await answers.ends(a=END, b=END)
    (tmp_path / "topics.json").write_text(json.dumps({"topics": [A], "held": held}))
    answers.view.discover()
    assert answers.view.activity().keys() == {A}
