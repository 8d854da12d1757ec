"""What a stream plans, against a source cluster made of dictionaries."""

import pytest

from interpulse.model.errors import AuthenticationError, DataLoss, NotConnected, SubscriptionNotFound
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.offsets import CutPosition, StreamOffset, ranges_between
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading.planner import Beginning, Following, HeldBack, StreamPlanner, TopicEnd, WrittenBatch
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.spark.reading.throttle import Rate

A, B = "persistent://t/ns/a", "persistent://t/ns/b"


class Source:
    """Topics with dense ledgers: ``{topic: {ledger: entries}}``."""

    def __init__(self, **topics):
        self.topics = {f"persistent://t/ns/{name}": ledgers for name, ledgers in topics.items()}
        self.acknowledged = {}
        self.asked = 0
        self.failure = None
        self.refused = {}
        self.limits = {}
        self.newest = None
        self.reached = {}
        self.first_at = {}
        self.waits = []
        self.news = False

    def discover(self):
        return tuple(self.topics)

    def ends(self, topics):
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return {name: TopicEnd(self.last(name), self.acknowledged.get(name)) for name in topics if name in self.topics}

    def last(self, topic):
        ledgers = self.topics[topic]
        return Position(max(ledgers), ledgers[max(ledgers)] - 1) if ledgers else EARLIEST

    def following(self, topic, after, upto):
        entries = [Position(ledger, entry) for ledger, count in self.topics[topic].items() for entry in range(count)]
        later = [position for position in entries if after < position <= upto]
        return Following(min(later), 100) if later else None

    def beginnings(self, pending):
        return {topic: self.beginning(topic, *ends) for topic, ends in pending.items()}

    def beginning(self, topic, after, upto):
        following = self.following(topic, after, upto)
        return Beginning(following and following.position, after.ledger in self.topics[topic])

    def ledgers_there(self, ledgers):
        return {topic for topic, ledger in ledgers.items() if self.topics[topic].get(ledger)}

    def await_news(self, shortest, longest):
        self.waits.append((round(shortest, 3), longest))
        return self.news

    def before(self, times):
        return {topic: self.first_at[topic] for topic in times if topic in self.first_at}

    def held(self):
        return self.refused

    def rates(self):
        return self.limits

    def copied(self):
        return self.reached

    def activity(self):
        return {}

    def note_followed(self, topics):
        pass

    def written(self):
        return self.newest

    def acknowledge(self, positions):
        self.acknowledged.update(positions)

    def close(self):
        pass


def planner(source, **options):
    given = {"service.url": "pulsar://x:1", "topics": "t/ns/a", **options}
    values = {name: value for name, value in given.items() if value}
    return StreamPlanner(parse_read_options(values, Purpose.STREAM_READ), source)


def test_initial_offset_of_a_stream_is_the_end():
    assert planner(Source(a={3: 5})).initial_offset(0) == StreamOffset({A: Position(3, 4)}, 16, initial=True)


def test_initial_offset_earliest_comes_before_everything():
    assert planner(Source(a={3: 5}), startingOffsets="earliest").initial_offset(0).positions == {A: EARLIEST}


def test_initial_offset_at_a_subscription_is_what_it_acknowledged():
    source = Source(a={3: 5})
    source.acknowledged[A] = Position(3, 1)
    plan = planner(source, startingOffsets="subscription", predefinedSubscription="s")
    assert plan.initial_offset(0).positions == {A: Position(3, 1)}


def test_initial_offset_naming_an_unselected_topic_is_refused():
    with pytest.raises(ValueError, match="not read: persistent://t/ns/z"):
        planner(Source(a={3: 5}), startingOffsets='{"t/ns/z": "1:1"}').initial_offset(0)


def test_initial_offset_given_for_a_partitioned_topic_holds_for_its_partitions():
    source = Source(**{"a-partition-0": {3: 5}, "a-partition-1": {3: 5}})
    start = '{"t/ns/a": "earliest", "t/ns/a-partition-1": "3:2"}'
    positions = planner(source, startingOffsets=start).initial_offset(0).positions
    assert positions == {f"{A}-partition-0": EARLIEST, f"{A}-partition-1": Position(3, 1)}


def test_initial_offset_at_a_time_is_before_the_first_message_since_then():
    source = Source(a={3: 5}, b={3: 5})
    source.first_at[A] = Position(3, 1)
    plan = planner(source, topics="t/ns/a,t/ns/b", startingTime="1000")
    assert plan.initial_offset(0).positions == {A: Position(3, 1), B: Position(3, 4)}
    strict = planner(source, topics="t/ns/a,t/ns/b", startingTime="1000", startingOffsetsByTimestampStrategy="error")
    with pytest.raises(ValueError, match=f"no message was published at or after it in {B} at 1000"):
        strict.initial_offset(0)


def test_initial_offset_at_a_time_of_one_topic_leaves_the_others_at_their_ends():
    source = Source(a={3: 5}, b={3: 5})
    source.first_at = {A: EARLIEST, B: EARLIEST}
    positions = planner(source, startingTime='{"t/ns/a": "1970-01-01T00:00:01Z"}').initial_offset(0).positions
    assert positions == {A: EARLIEST, B: Position(3, 4)}
    with pytest.raises(ValueError, match="not read: persistent://t/ns/z"):
        planner(source, startingTime='{"t/ns/z": 1}').initial_offset(0)


def test_first_latest_offset_is_the_anchor_whatever_is_there():
    source = Source(a={3: 5})
    plan = planner(source, startingOffsets="earliest")
    initial = plan.initial_offset(0)
    assert plan.latest_offset(initial, 0) == initial.anchored()


def test_batch_waits_for_its_minimum_or_until_the_oldest_entry_has_waited_long_enough():
    source = Source(a={3: 5})
    plan = planner(source, minEntriesPerTrigger="3", maxTriggerDelay="10s", offsetPollIntervalMs="1")
    start = plan.initial_offset(0).anchored()
    source.topics[A][3] = 7
    assert plan.latest_offset(start, 1) is start
    assert plan.latest_offset(start, 10) is start
    assert plan.latest_offset(start, 11.1).positions == {A: Position(3, 6)}
    source.topics[A][3] = 8
    assert plan.latest_offset(start, 12).positions == {A: Position(3, 7)}


def test_run_of_what_is_there_now_has_no_minimum():
    source = Source(a={3: 5})
    plan = planner(source, minEntriesPerTrigger="3")
    start = plan.initial_offset(0).anchored()
    source.topics[A][3] = 6
    plan.fix_target(1)
    assert plan.latest_offset(start, 1).positions == {A: Position(3, 5)}


def test_latest_offset_without_news_is_start_itself():
    plan = planner(Source(a={3: 5}))
    start = plan.initial_offset(0).anchored()
    assert plan.latest_offset(start, 10) is start


def test_brokers_are_asked_once_per_poll_interval():
    source = Source(a={3: 5})
    plan = planner(source, offsetPollIntervalMs="200")
    start = plan.initial_offset(0).anchored()
    for step in range(100):
        plan.latest_offset(start, step / 100)
    assert source.asked <= 6


def test_limit_in_entries_is_exact_within_a_ledger():
    plan = planner(Source(a={3: 500}), startingOffsets="earliest")
    start = plan.initial_offset(0).anchored()
    end = plan.latest_offset(start, 1, entries_max=100)
    assert end.positions == {A: Position(3, 99)}
    assert plan.latest_offset(end, 2, entries_max=100).positions == {A: Position(3, 199)}


def test_limit_across_ledgers_goes_on_to_the_end():
    source = Source(a={3: 150, 7: 30, 9: 40})
    plan = planner(source, startingOffsets="earliest")
    offset = plan.initial_offset(0).anchored()
    steps = 0
    while (following := plan.latest_offset(offset, steps, entries_max=50)) is not offset:
        read = [
            position
            for item in ranges_between(offset, following)
            for position in _entries(source, item.topic)
            if item.after < position <= item.upto
        ]
        assert len(read) <= 50
        offset, steps = following, steps + 1
    assert offset.positions == {A: Position(9, 39)}


def _entries(source, topic):
    return [Position(ledger, entry) for ledger, count in source.topics[topic].items() for entry in range(count)]


def test_limit_in_bytes_uses_the_size_of_entries():
    plan = planner(Source(a={3: 500}), startingOffsets="earliest")
    start = plan.initial_offset(0).anchored()
    assert plan.latest_offset(start, 1, bytes_max=1000).positions == {A: Position(3, 9)}


def test_topic_found_later_begins_at_its_first_entry():
    source = Source(a={3: 5})
    plan = planner(source)
    start = plan.initial_offset(0).anchored()
    source.topics[B] = {8: 2}
    end = plan.latest_offset(start, 31)
    assert [(item.topic, item.after, item.upto) for item in ranges_between(start, end)] == [
        (B, EARLIEST, Position(8, 1))
    ]


def test_topic_found_later_begins_at_the_subscription_if_there_is_one():
    source = Source(a={3: 5})
    source.acknowledged = {A: Position(3, 4), B: Position(8, 1)}
    plan = planner(source, startingOffsets="subscription", predefinedSubscription="s")
    start = plan.initial_offset(0).anchored()
    source.topics[B] = {8: 5}
    end = plan.latest_offset(start, 31)
    assert [(item.topic, item.after, item.upto) for item in ranges_between(start, end)] == [
        (B, Position(8, 1), Position(8, 4))
    ]


@pytest.mark.parametrize(
    "named",
    [{"topics": "t/ns/a,t/ns/b"}, {"topics": "", "topicsPattern": "t/ns/.*"}, {"topics": "", "topicsFile": "f"}],
)
def test_topic_that_is_deleted_is_dropped(named):
    """Or that the job took off its list: its cursor knows the place."""
    source = Source(a={3: 5}, b={4: 5})
    plan = planner(source, **named)
    start = plan.initial_offset(0).anchored()
    del source.topics[B]
    assert set(plan.latest_offset(start, 31).positions) == {A}


@pytest.mark.parametrize("left_out", [{}, {"topics": "", "topicsPattern": "t/ns/[^b]"}], ids=["list", "pattern"])
def test_topic_that_is_taken_out_and_named_again_goes_on_at_its_place(left_out, caplog):
    caplog.set_level("INFO")
    source = Source(a={3: 5}, b={4: 2})
    both = {"topics": "t/ns/a,t/ns/b"}
    start = planner(source, startingOffsets="earliest", **both).latest_offset(
        StreamOffset({A: EARLIEST, B: EARLIEST}), 1
    )
    unseen = Source(a={3: 7})
    shorter = planner(unseen, **left_out)
    between = shorter.latest_offset(start, 2)
    unseen.topics[A] = {3: 8}
    between = shorter.latest_offset(between, 3)
    assert [record.message for record in caplog.records if "not read any more" in record.message] == [
        f"topic is not read any more, its position stays topic={B} position=4:1"
    ]
    source.topics = {A: {3: 8}, B: {4: 5}}
    end = planner(source, **both).latest_offset(StreamOffset.from_json(between.to_json()), 4)
    assert [(item.topic, item.after, item.upto) for item in ranges_between(between, end)] == [
        (B, Position(4, 1), Position(4, 4))
    ]


def cut_of(item):
    assert isinstance(item.after, CutPosition)
    return item.after.batch_index


def test_only_batch_reads_what_is_there_and_a_replay_reads_the_same():
    source = Source(a={3: 5, 7: 2}, b={4: 5})
    source.acknowledged = {A: Position(3, 2)}
    named = {"topics": "t/ns/a,t/ns/b", "startingOffsets": '{"t/ns/a": "3:2:1", "t/ns/b": "earliest"}'}
    plan = planner(source, **named)
    start = plan.initial_offset(0)
    end = StreamOffset.from_json(plan.only_batch(start, 0).to_json())
    source.topics = {A: {3: 5, 7: 9}, B: {4: 9}}
    replayed = ranges_between(planner(source, topics="t/ns/a,t/ns/b").initial_offset(1), end)
    assert replayed == ranges_between(start, end)
    assert [(item.topic, item.after, item.upto, item.first) for item in replayed] == [
        (A, Position(3, 1), Position(7, 1), Position(3, 2)),
        (B, EARLIEST, Position(4, 4), None),
    ]
    assert cut_of(replayed[0]) == 1
    following = planner(source, topics="t/ns/a,t/ns/b").latest_offset(end, 2)
    assert [(item.topic, item.after) for item in ranges_between(end, following)] == [
        (A, Position(7, 1)),
        (B, Position(4, 4)),
    ]


def test_only_batch_of_a_stream_from_the_end_reads_nothing():
    plan = planner(Source(a={3: 5}))
    start = plan.initial_offset(0)
    assert ranges_between(start, plan.only_batch(start, 0)) == []


def test_start_inside_a_batch_stays_in_the_checkpoint_until_something_of_the_topic_is_read():
    source = Source(a={3: 5}, b={4: 5})
    plan = planner(source, topics="t/ns/a,t/ns/b", startingOffsets='{"t/ns/a": "3:5:7", "t/ns/b": "4:2:3"}')
    start = plan.initial_offset(0).anchored()
    end = StreamOffset.from_json(plan.latest_offset(StreamOffset.from_json(start.to_json()), 1).to_json())
    assert [(item.topic, item.after, cut_of(item)) for item in ranges_between(start, end)] == [(B, Position(4, 1), 3)]
    source.topics[A] = {3: 9}
    following = planner(source, topics="t/ns/a,t/ns/b").latest_offset(end, 2)
    assert [(item.topic, item.after, cut_of(item)) for item in ranges_between(end, following)] == [
        (A, Position(3, 4), 7)
    ]
    assert "c" not in following.to_json()


def test_deleted_topic_with_unread_entries_is_data_loss(caplog):
    source = Source(a={3: 5}, b={4: 5})
    start = StreamOffset({A: Position(3, 4), B: Position(4, 1)}, 16)
    both = {"topics": "t/ns/a,t/ns/b"}
    strict, lenient = planner(source, **both), planner(source, **both, failOnDataLoss="false")
    for plan in (strict, lenient):
        assert plan.latest_offset(start, 1, entries_max=1).positions == {A: Position(3, 4), B: Position(4, 2)}
    del source.topics[B]
    told = f"{B} was deleted, its entries behind 4:1 up to 4:4 were not read"
    with pytest.raises(DataLoss, match=f"{told}. Start with a new checkpoint, or set failOnDataLoss=false"):
        strict.latest_offset(start, 40)
    assert lenient.latest_offset(start, 40).positions == {A: Position(3, 4)}
    lenient.latest_offset(start, 41)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        f"data loss reason={told}"
    ]


def test_range_that_goes_on_in_a_later_ledger_knows_its_first_entry():
    source = Source(a={3: 5, 7: 2})
    start = StreamOffset({A: Position(3, 1)}, 16)
    end = planner(source).latest_offset(start, 1)
    assert StreamOffset.from_json(end.to_json()) == end
    assert [(item.after, item.first) for item in ranges_between(start, end)] == [(Position(3, 1), Position(3, 2))]


@pytest.mark.parametrize(
    ("start", "options"),
    [
        ("7:0", {}),
        ("-1:-1", {}),
        ("3:1", {"predefinedSubscription": "s"}),
        ("3:1", {"readCompacted": "true"}),
    ],
    ids=["one-ledger", "earliest", "kept-by-subscription", "compacted"],
)
def test_range_that_may_begin_anywhere_or_is_counted_has_no_first_entry(start, options):
    source = Source(a={3: 5, 7: 2})
    assert not planner(source, **options).latest_offset(StreamOffset({A: Position.parse(start)}, 16), 1).firsts


@pytest.mark.parametrize(
    ("seen", "at", "told"),
    [
        ({3: 5}, "3:1", "3 or more entries behind 3:1 up to 3:4 are gone, the first one there is 7:0"),
        ({3: 5, 5: 2}, "3:4", "2 or more entries behind 3:4 up to 5:1 are gone, the first one there is 7:0"),
        ({7: 1}, "3:4", "ledger 3, read up to 3:4, is gone with what came behind it, the first one there is 7:0"),
        ({3: 5}, "3:4", None),
        ({7: 1}, "3:-1", None),
    ],
    ids=["slow", "ledger-between", "was-away", "had-read-all", "had-read-none-of-an-empty-ledger"],
)
def test_ledger_that_is_gone_is_data_loss_unless_it_was_seen_to_end(seen, at, told, caplog):
    source = Source(a=seen)
    start = StreamOffset({A: Position.parse(at)}, 16)
    strict, lenient = planner(source), planner(source, failOnDataLoss="false")
    for plan in (strict, lenient):
        plan.initial_offset(0)
    source.topics[A] = {7: 3}
    if told is None:
        assert strict.latest_offset(start, 1).firsts == {A: Position(7, 0)}
        return
    with pytest.raises(DataLoss, match=f"{A}: {told}. Start with a new checkpoint, or set failOnDataLoss=false"):
        strict.latest_offset(start, 1)
    assert lenient.latest_offset(start, 1).positions == {A: Position(7, 2)}
    assert [record.message for record in caplog.records] == [f"data loss reason={A}: {told}"]


def test_topic_that_holds_nothing_any_more_reports_its_loss_once(caplog):
    source = Source(a={3: 5})
    strict, lenient = planner(source), planner(source, failOnDataLoss="false", offsetPollIntervalMs="1")
    start = StreamOffset({A: Position(3, 1)}, 16)
    source.topics[A], ends = {7: 0}, source.ends
    source.ends = lambda topics: {A: TopicEnd(EARLIEST, log_end=Position(7, -1))}  # type: ignore[method-assign]
    loss = f"{A}: ledger 3, read up to 3:1, is gone with what came behind it, none is there"
    with pytest.raises(DataLoss, match=loss):
        strict.latest_offset(start, 1)
    for second in range(1, 5):
        assert lenient.latest_offset(start, second) is start
    source.topics[A], source.ends = {7: 1}, ends  # type: ignore[method-assign]
    assert lenient.latest_offset(start, 5).positions == {A: Position(7, 0)}
    assert [record.message for record in caplog.records] == [f"data loss reason={loss}"]


def test_source_that_goes_away_while_it_is_asked_what_an_empty_topic_lost_is_asked_again():
    source = Source(a={7: 0})
    plan, start = planner(source, offsetPollIntervalMs="1"), StreamOffset({A: Position(3, 1)}, 16)
    original = source.ledgers_there

    def vanished(ledgers):
        source.ledgers_there = original  # type: ignore[method-assign]
        raise NotConnected("no route")

    source.ledgers_there = vanished  # type: ignore[method-assign]
    assert plan.latest_offset(start, 1) is start
    with pytest.raises(DataLoss):
        plan.latest_offset(start, 2)


def test_source_that_went_backwards_is_an_error():
    source = Source(a={3: 5})
    plan = planner(source)
    start = plan.initial_offset(0).anchored()
    source.topics[A] = {1: 2}
    with pytest.raises(ValueError, match="went backwards"):
        plan.latest_offset(start, 1)


def test_source_that_cannot_be_asked_keeps_the_stream_idle():
    source = Source(a={3: 5})
    plan = planner(source)
    start = plan.initial_offset(0).anchored()
    source.failure = NotConnected("gone")
    assert plan.latest_offset(start, 1) is start


def test_source_that_cannot_be_asked_is_told_when_that_changes(caplog):
    source = Source(a={3: 5})
    plan = planner(source)
    start = plan.initial_offset(0).anchored()
    for now, failure in enumerate(["gone", "gone", "away", None, "away", "away"], start=1):
        source.failure = failure and NotConnected(failure)
        plan.latest_offset(start, now)
    assert [record.getMessage().rpartition("=")[2] for record in caplog.records] == ["gone", "away", "away"]


def test_source_that_cannot_be_asked_at_the_start_is_an_error():
    source = Source(a={3: 5})
    source.failure = NotConnected("gone")
    with pytest.raises(NotConnected):
        planner(source).initial_offset(0)


def test_available_now_reads_nothing_newer():
    source = Source(a={3: 5})
    plan = planner(source, startingOffsets="earliest")
    start = plan.initial_offset(0).anchored()
    plan.fix_target(0)
    source.topics[A] = {3: 50}
    source.topics[B] = {4: 1}
    end = plan.latest_offset(start, 60)
    assert end.positions == {A: Position(3, 4)}
    assert plan.latest_offset(end, 120) is end


def test_subscription_follows_what_is_done():
    source = Source(a={3: 5})
    plan = planner(source, startingOffsets="earliest", predefinedSubscription="s")
    start = plan.initial_offset(0).anchored()
    end = plan.latest_offset(start, 1)
    plan.latest_offset(end, 3)
    assert source.acknowledged[A] == Position(3, 4)


def test_report_tells_lag_and_age():
    source = Source(a={3: 5})
    plan = planner(source)
    start = plan.initial_offset(0).anchored()
    source.topics[A] = {3: 8}
    plan.latest_offset(start, 10)
    report = plan.report(12.5)
    assert report["lag"] == {"entries": 3, "partitions": 1, "oldestMs": 2500}
    assert report["topics"][A]["last"] == "3:7"


def test_topic_whose_new_ledger_is_empty_has_nothing_to_plan():
    source = Source(a={3: 5})
    plan = planner(source, startingOffsets="earliest", maxBytesPerTrigger="1m")
    start = StreamOffset({A: Position(3, 4)}, 16)
    source.topics[A] = {3: 5, 4: 0}
    end = plan.latest_offset(start, 0, bytes_max=1 << 20)
    assert end.positions[A] <= Position(4, -1)


def test_held_topic_keeps_its_place_and_its_cursor_while_the_others_go_on():
    source = Source(a={3: 5}, b={3: 5})
    plan = planner(source, startingOffsets="earliest", predefinedSubscription="s")
    source.refused = {A: HeldBack(Position(3, 1), 1, is_due=False)}
    start = StreamOffset({A: Position(3, 3), B: Position(3, 3)}, 16)
    end = plan.latest_offset(start, 0)
    assert end.positions == {A: Position(3, 3), B: Position(3, 4)}
    assert source.acknowledged == {A: Position(3, 1), B: Position(3, 3)}


def test_held_topic_that_is_due_comes_again_from_where_it_was_held():
    source = Source(a={3: 5})
    plan = planner(source, startingOffsets="earliest")
    start = StreamOffset({A: Position(3, 4)}, 16)
    source.refused = {A: HeldBack(Position(3, 1), 1, is_due=True)}
    end = plan.latest_offset(start, 0)
    assert [(item.after, item.upto) for item in ranges_between(start, end)] == [(Position(3, 1), Position(3, 4))]
    source.refused = {A: HeldBack(Position(3, 1), 2, is_due=True)}
    assert plan.latest_offset(end, 1).to_json() != end.to_json()


def test_held_topic_with_a_limit_comes_again_in_parts():
    source = Source(a={3: 9})
    plan = planner(source, startingOffsets="earliest")
    source.refused = {A: HeldBack(Position(3, 1), 1, is_due=True)}
    start = StreamOffset({A: Position(3, 8)}, 16)
    end = plan.latest_offset(start, 0, entries_max=3)
    assert end.positions == {A: Position(3, 4)}
    source.refused = {}
    after = plan.latest_offset(end, 1, entries_max=3)
    assert [(item.after, item.upto) for item in ranges_between(end, after)] == [(Position(3, 4), Position(3, 7))]


def test_held_topic_whose_cursor_an_operator_moved_goes_on_at_the_cursor():
    source = Source(a={3: 5})
    source.acknowledged = {A: Position(3, 3)}
    plan = planner(source, startingOffsets="earliest")
    source.refused = {A: HeldBack(Position(3, 1), 1, is_due=True)}
    assert plan.latest_offset(StreamOffset({A: Position(3, 4)}, 16), 0).begins == {A: Position(3, 3)}


def test_topic_found_later_whose_cursor_stands_behind_its_last_message_did_not_go_backwards():
    source = Source(a={3: 5}, b={3: 5})
    source.acknowledged = {B: Position(4, -1)}
    plan = planner(source, startingOffsets="subscription", predefinedSubscription="s")
    end = plan.latest_offset(StreamOffset({A: Position(3, 4)}, 16), 0)
    assert end.positions[B] == end.begins[B] == Position(4, -1)
    assert plan.latest_offset(end, 1) is end


def test_stream_that_followed_its_cursor_behind_the_last_message_waits_there():
    source = Source(a={3: 5})
    source.acknowledged = {A: Position(4, -1)}
    source.acknowledge = lambda positions: None  # type: ignore[method-assign]
    plan = planner(source, startingOffsets="subscription", predefinedSubscription="s")
    end = plan.latest_offset(StreamOffset({A: Position(3, 2)}, 16), 0)
    assert end.positions == {A: Position(4, -1)}
    assert plan.latest_offset(end, 1) is end
    source.topics[A] = {3: 5, 4: 2}
    after = plan.latest_offset(end, 2)
    assert [(item.after, item.upto) for item in ranges_between(end, after)] == [(Position(4, -1), Position(4, 1))]
    source.topics[A], source.acknowledged = {1: 2}, {A: Position(1, 0)}
    with pytest.raises(ValueError, match="went backwards"):
        plan.latest_offset(after, 3)


def test_topic_whose_cursor_stands_ahead_goes_on_at_the_cursor():
    source = Source(a={3: 5}, b={3: 5})
    source.acknowledged = {A: Position(3, 3), B: Position(3, 1)}
    plan = planner(source, startingOffsets="subscription", predefinedSubscription="s")
    start = StreamOffset({A: Position(3, 1), B: Position(3, 1)}, 16)
    source.acknowledge = lambda positions: None  # type: ignore[method-assign]
    end = plan.latest_offset(start, 0)
    assert [(item.topic, item.after, item.upto) for item in ranges_between(start, end)] == [
        (A, Position(3, 3), Position(3, 4)),
        (B, Position(3, 1), Position(3, 4)),
    ]


def test_topic_whose_cursor_was_closed_keeps_its_place_and_the_stream_waits():
    source = Source(a={3: 5})
    source.acknowledged[A] = Position(3, 4)
    plan = planner(source, startingOffsets="subscription", predefinedSubscription="s")
    start = plan.initial_offset(0).anchored()
    source.failure = SubscriptionNotFound("policies closed it")
    assert plan.latest_offset(start, 1) is start
    source.failure, source.topics[A], source.acknowledged[A] = None, {3: 9}, Position(3, 6)
    end = plan.latest_offset(start, 2)
    assert [(item.after, item.upto) for item in ranges_between(start, end)] == [(Position(3, 6), Position(3, 8))]


def copied(source, stream, seconds, size=100):
    """What a job copies that makes a micro-batch every tenth of a second: the entries of each topic, by second."""
    offset, counts = StreamOffset({topic: Position(3, -1) for topic in source.topics}), []
    source.newest = WrittenBatch(7_000, {A: (1_000, 1_000_000)})  # of an earlier run
    for number in range(seconds * 10):
        end = stream.latest_offset(offset, number / 10, entries_max=1000, bytes_max=1 << 20)
        batch = {item.topic: item.upto.entry - item.after.entry for item in ranges_between(offset, end)}
        source.newest = WrittenBatch(number, {topic: (count, count * size) for topic, count in batch.items()})
        if number % 10 == 0:
            counts.append(dict.fromkeys(source.topics, 0))
        for topic, count in batch.items():
            counts[-1][topic] += count
        offset = end
    return counts


def test_topic_with_a_rate_is_copied_no_faster_and_others_as_fast_as_they_can():
    source = Source(a={3: 1000}, b={3: 1000})
    source.limits = {A: Rate(20, 0)}
    counts = copied(source, planner(source), 5)
    assert counts[0][B] == 1000
    assert counts[0][A] <= 40, "what gathered in one period, and what came in it"
    assert all(second[A] in (19, 20, 21) for second in counts[1:])


def test_topic_that_waits_for_its_rate_is_reported_as_throttled_until_nothing_waits():
    source = Source(a={3: 30}, b={3: 1000})
    source.limits = {A: Rate(20, 0)}
    stream, offset, throttled = planner(source), StreamOffset({A: Position(3, -1), B: Position(3, -1)}), []
    source.newest = WrittenBatch(7_000, {})  # of an earlier run
    for second in range(4):
        before, offset = offset, stream.latest_offset(offset, float(second), entries_max=2000)
        written = offset.positions[A].entry + 1
        count = written - before.positions[A].entry - 1
        topics = stream.report(float(second))["topics"]
        throttled.append((written, [name for name, item in topics.items() if "throttled" in item]))
        source.newest = WrittenBatch(second, {A: (count, 100 * count)})
    assert throttled[0] == (20, [A])
    assert throttled[-1] == (30, [])


def test_rate_in_bytes_is_kept_by_the_size_of_what_was_written():
    source = Source(a={3: 1000})
    source.limits = {A: Rate(0, 1_000)}
    counts = copied(source, planner(source), 10, size=300)
    assert 9_000 <= sum(second[A] for second in counts) * 300 <= 11_300


def test_entry_above_the_rate_is_copied_and_waited_for_afterwards():
    source = Source(a={3: 10})
    source.limits = {A: Rate(0, 1_000)}
    assert sum(second[A] for second in copied(source, planner(source), 9, size=3_000)) == 4


def test_rate_counts_over_its_period():
    source = Source(a={3: 1000})
    source.limits = {A: Rate(10, 0, 5)}
    assert sum(second[A] for second in copied(source, planner(source), 20)) in (48, 49)


def test_rate_that_is_taken_away_holds_nothing_back_any_more():
    source = Source(a={3: 1000})
    source.limits = {A: Rate(1, 0)}
    stream = planner(source)
    start = StreamOffset({A: Position(3, -1)})
    assert stream.latest_offset(start, 0, entries_max=1000).positions == {A: Position(3, 0)}
    source.limits = {}
    assert stream.latest_offset(start, 0, entries_max=1000).positions == {A: Position(3, 999)}


def test_relative_rate_is_what_is_copied_besides_what_is_published():
    source = Source(a={3: 100})
    source.limits = {A: Rate(10, 0, 1, relative=True)}
    stream, offset, copies = planner(source), StreamOffset({A: Position(3, -1)}), []
    for second in range(4):
        source.topics[A][3] = 100 + 50 * second
        end = stream.latest_offset(offset, float(second), entries_max=1000)
        copies.append(end.positions[A].entry - offset.positions[A].entry)
        source.newest, offset = WrittenBatch(second, {A: (copies[-1], 100)}), end
    assert copies == [10, 60, 60, 60]


def test_source_that_is_away_for_an_hour_is_waited_for_and_told_in_the_progress():
    source = Source(a={3: 5})
    stream = planner(source, startingOffsets="earliest")
    start = stream.initial_offset(0).anchored()
    assert stream.latest_offset(start, 1).positions == {A: Position(3, 4)}
    read = stream.latest_offset(start, 1)
    source.failure = NotConnected("no route")
    for second in range(2, 3603):
        assert stream.latest_offset(read, second) is read
    told = stream.report(3602)["waiting"]
    assert (told["reason"], told["ms"]) == ("no route", 3_600_000)
    assert told["remedy"].startswith("start the cluster")
    source.failure, source.topics[A] = None, {3: 7}
    assert stream.latest_offset(read, 3603).positions == {A: Position(3, 6)}
    assert "waiting" not in stream.report(3603)
    healed = stream.report(3603)["healed"]
    assert (healed["count"], healed["ms"], healed["reason"]) == (1, 3_601_000, "no route")
    assert healed["remedy"].startswith("start the cluster")


def test_source_that_is_away_for_longer_than_is_waited_ends_the_stream():
    source = Source(a={3: 5})
    stream = planner(source, outageTimeoutMs="10m")
    start = stream.initial_offset(0).anchored()
    source.failure = NotConnected("no route")
    assert stream.latest_offset(start, 1) is start
    assert stream.latest_offset(start, 600) is start
    with pytest.raises(NotConnected):
        stream.latest_offset(start, 602)


@pytest.mark.parametrize(("given", "heals"), [({"authTokenFile": "/t"}, True), ({"authToken": "t"}, False)])
def test_expired_token_is_waited_for_where_it_is_read_again(given, heals):
    source = Source(a={3: 5})
    stream = planner(source, **given)
    start = stream.initial_offset(0).anchored()
    source.failure = AuthenticationError("Token has expired")
    if heals:
        assert stream.latest_offset(start, 1) is start
        assert stream.report(2)["waiting"]["remedy"].startswith("renew the credentials")
    else:
        with pytest.raises(AuthenticationError):
            stream.latest_offset(start, 1)


def test_source_that_goes_away_while_a_batch_is_planned_is_waited_for():
    class Vanishing(Source):
        def following(self, topic, after, upto):
            raise NotConnected("no route")

    source = Vanishing(a={3: 5})
    stream = planner(source, startingOffsets="earliest")
    start = stream.initial_offset(0).anchored()
    assert stream.latest_offset(start, 1, bytes_max=100) is start
    stream.fix_target(2)
    with pytest.raises(NotConnected):  # to an end without data Trigger.AvailableNow would be done
        stream.latest_offset(start, 3, bytes_max=100)


def idle_at(stream, now=10.0):
    at = stream.latest_offset(stream.initial_offset(0.0), 0.0)
    assert stream.latest_offset(at, now) is at


def test_replication_job_waits_for_news_and_asks_at_once_when_there_are_some():
    source = Source(a={1: 5})
    stream = planner(source, topicsFile="/x/topics.json", startingOffsets="latest", topics="")
    idle_at(stream)
    stream.await_news(10.05)
    assert source.waits == [(0.15, 0.5)]
    asked = source.asked
    assert stream.is_idle(10.1)
    assert source.asked == asked
    source.news = True
    stream.await_news(10.1)
    assert not stream.is_idle(10.1)
    assert source.asked == asked + 1


def test_replication_job_with_rates_does_not_outwait_their_permits():
    source = Source(a={1: 5})
    source.limits = {"persistent://t/ns/a": Rate(10, -1)}
    stream = planner(source, topicsFile="/x/topics.json", startingOffsets="latest", topics="")
    idle_at(stream)
    stream.await_news(10.15)
    assert source.waits == [(0.05, pytest.approx(0.05))]


def test_streams_of_users_wait_only_with_many_topics():
    few, many = Source(a={1: 5}), Source(**{f"t{number}": {1: 5} for number in range(200)})
    for source in (few, many):
        stream = planner(source, startingOffsets="latest")
        idle_at(stream)
        stream.await_news(10.15)
    assert (few.waits, many.waits) == ([], [(0.05, pytest.approx(0.05))])


def ran_ahead(**options):
    """Return a source of which tasks have copied up to 3:7, a plan of it, and the offset at 3:4."""
    source = Source(a={3: 5})
    source.acknowledged[A] = EARLIEST
    plan = planner(source, **{"startingOffsets": "earliest", "predefinedSubscription": "s", **options})
    at = plan.latest_offset(plan.initial_offset(0).anchored(), 1)
    assert at.positions == {A: Position(3, 4)}
    source.topics[A] = {3: 8}
    source.reached = {A: Position(3, 7)}
    return source, plan, at


def test_batch_begins_where_tasks_that_ran_ahead_have_stopped():
    source, plan, at = ran_ahead()
    source.topics[A] = {3: 10}
    end = plan.latest_offset(at, 2)
    assert end.begins == {A: Position(3, 7)}
    (planned,) = ranges_between(at, StreamOffset.from_json(end.to_json()))
    assert (planned.after, planned.upto) == (Position(3, 7), Position(3, 9))


def test_run_ahead_that_copied_everything_needs_no_batch_and_moves_the_cursor():
    source, plan, at = ran_ahead()
    assert plan.latest_offset(at, 2) is at
    assert source.acknowledged[A] == Position(3, 7)
    assert plan.is_idle(2.01)
    assert plan.report(2)["topics"][A] == {"last": "3:7", "done": "3:7", "entries": 0, "ms": 0}


def test_cursor_that_follows_a_run_ahead_was_not_moved_by_an_operator():
    source, plan, at = ran_ahead(startingOffsets="subscription")
    source.acknowledged[A] = Position(3, 7)
    assert plan.latest_offset(at, 2) is at
    assert "passed" not in plan.report(2)["topics"][A]


def test_end_older_than_what_was_copied_is_asked_again_before_it_counts():
    source, plan, at = ran_ahead()
    source.topics[A] = {3: 6}
    asked = source.asked
    assert plan.latest_offset(at, 2) is at
    source.topics[A] = {3: 9}
    assert plan.latest_offset(at, 2.001).positions == {A: Position(3, 8)}
    assert source.asked == asked + 2


def test_end_that_stays_behind_what_was_copied_means_that_the_source_went_backwards():
    source, plan, at = ran_ahead()
    source.topics[A] = {3: 6}
    assert plan.latest_offset(at, 2) is at
    with pytest.raises(ValueError, match="the source went backwards"):
        plan.latest_offset(at, 2.001)


def test_end_known_from_before_an_outage_says_nothing_about_what_was_copied():
    source, plan, at = ran_ahead()
    source.failure = NotConnected("gone")
    for turn in range(3):
        assert plan.latest_offset(at, 2 + turn) is at
    source.failure = None
    assert plan.latest_offset(at, 6) is at
    assert source.acknowledged[A] == Position(3, 7)


def test_held_topic_is_not_taken_for_copied_as_far_as_its_lane():
    source, plan, at = ran_ahead()
    source.refused = {A: HeldBack(Position(3, 2), 1, is_due=False)}
    assert plan.latest_offset(at, 2) is at
    assert source.acknowledged.get(A, EARLIEST) <= Position(3, 2)
    source.refused = {A: HeldBack(Position(3, 2), 1, is_due=True)}
    assert plan.latest_offset(at, 3).begins == {A: Position(3, 2)}
