"""Streams over ledgers of any length with any limit: positions are those of entries, and only a loss is reported."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.errors import DataLoss
from interpulse.model.ids import EARLIEST, Position
from interpulse.spark.offsets import StreamOffset, ranges_between
from interpulse.spark.options.option import Purpose
from interpulse.spark.reading.batch_plan import split_ranges
from interpulse.spark.reading.planner import Beginning, Following, Ledger, StreamPlanner, TopicEnd
from interpulse.spark.reading.read_options import ReadOptions, parse_read_options

A = "persistent://t/ns/a"
_SIZE = 100

ledgers_of_any_length = st.lists(st.integers(0, 7), min_size=1, max_size=5)


@dataclass
class Log:
    """One topic as readers see it; ledgers count from 1, the last one is never trimmed."""

    counts: list[int]
    first_ledger: int = 1
    reloaded: bool = False
    """The broker knows of no entry that it has had; it began a new ledger."""

    @property
    def entries(self):
        numbered = enumerate(self.counts, start=1)
        return [Position(ledger, entry) for ledger, count in numbered for entry in range(count)]

    @property
    def there(self):
        return [position for position in self.entries if position.ledger >= self.first_ledger]

    def trim(self, ledgers):
        """Return what goes."""
        before = self.there
        self.first_ledger = min(self.first_ledger + ledgers, len(self.counts))
        return set(before) - set(self.there)

    # ---- As the planner's view

    def discover(self):
        return (A,)

    def ends(self, topics):
        if self.there:
            return {A: TopicEnd(max(self.there))}
        new_ledger = Position(len(self.counts), -1)
        return {A: TopicEnd(EARLIEST, log_end=new_ledger if self.reloaded else max(self.entries, default=new_ledger))}

    def following(self, topic, after, upto):
        found = next((position for position in self.there if after < position <= upto), None)
        return None if found is None else Following(found, _SIZE, after in self.there)

    def beginnings(self, pending):
        ((after, upto),) = pending.values()
        found = self.following(A, after, upto)
        is_there = any(position.ledger == after.ledger for position in self.there)
        return {A: Beginning(found and found.position, is_there)}

    def ledgers_there(self, ledgers):
        return {topic for topic, ledger in ledgers.items() if any(each.ledger == ledger for each in self.there)}

    def held(self):
        return {}

    rates = held

    def copied(self):
        return {}

    def written(self):
        return None


def planner_of(log, **options):
    values = {"service.url": "pulsar://x:1", "topics": "t/ns/a", "offsetPollIntervalMs": "1", **options}
    return StreamPlanner(parse_read_options(values, Purpose.STREAM_READ), log)


def read(log, start, end):
    """Read as a task does, which reports a range in one ledger that is gone."""
    found = []
    for item in ranges_between(start, end):
        inside = [position for position in log.there if item.after < position <= item.upto]
        if not inside and item.after.ledger == item.upto.ledger < log.first_ledger:
            raise DataLoss("all of a range is gone")
        found += inside
    return found


@given(counts=ledgers_of_any_length, limit=st.integers(1, 9), in_bytes=st.booleans(), stop_after=st.integers(0, 6))
def test_limited_stream_reads_every_entry_once_and_stands_at_entries(counts, limit, in_bytes, stop_after):
    log = Log(counts)
    limits = {"bytes_max": limit * _SIZE} if in_bytes else {"entries_max": limit}
    stream = planner_of(log, startingOffsets="earliest")
    offset, seen, step = stream.initial_offset(0).anchored(), list[Any](), 0
    while True:
        step += 1
        if step == stop_after:
            stream = planner_of(log)
        following = stream.latest_offset(StreamOffset.from_json(offset.to_json()), step, **limits)
        if following.positions == offset.positions:
            break
        assert following.positions[A] in log.entries
        found = read(log, offset, following)
        assert 1 <= len(found) <= limit
        seen, offset = seen + found, following
    assert seen == log.entries


@given(
    counts=ledgers_of_any_length,
    limit=st.integers(1, 9),
    trims=st.lists(st.integers(0, 2), max_size=8),
    restarts=st.sets(st.integers(1, 8)),
    reloaded=st.booleans(),
)
def test_stream_whose_ledgers_are_trimmed_reports_a_loss_exactly_where_entries_were_not_read(
    counts, limit, trims, restarts, reloaded
):
    log = Log(counts, reloaded=reloaded)
    stream = planner_of(log, startingOffsets="earliest")
    offset, seen, lost, step, restarted = stream.initial_offset(0).anchored(), list[Any](), set[Any](), 0, False
    while True:
        step += 1
        lost |= (log.trim(trims[step - 1]) if step <= len(trims) else set()) - set(seen)
        if step in restarts:
            stream, restarted = planner_of(log), True
        at = offset.positions[A]
        try:
            following = stream.latest_offset(offset, step, entries_max=limit)
            found = read(log, offset, following)
        except DataLoss:
            # Of a ledger that is gone a stream that was away cannot tell how long it was.
            assert lost or (restarted and at.ledger < log.first_ledger)
            return
        if following is offset and step > len(trims):
            break
        seen, offset = seen + found, following
        restarted = restarted and following is offset
        if at == EARLIEST:
            lost = set()  # from the earliest on is from any entry on
    assert not lost
    assert seen == [position for position in log.entries if position in set(seen)]


@given(counts=ledgers_of_any_length, ledger=st.integers(1, 5), beyond=st.integers(0, 9), limit=st.integers(1, 9))
def test_checkpoint_whose_position_lies_beyond_the_end_of_its_ledger_goes_on(counts, ledger, beyond, limit):
    """Earlier releases planned such positions."""
    counts = [*counts, 3]
    ledger = min(ledger, len(counts) - 1)
    log = Log([max(count, 1) for count in counts])
    start = Position(ledger, log.counts[ledger - 1] - 1 + beyond)
    stream, offset, seen = planner_of(log), StreamOffset({A: start}), list[Any]()
    for step in range(100):
        following = stream.latest_offset(offset, step, entries_max=limit)
        if following is offset:
            break
        seen, offset = seen + read(log, offset, following), following
    assert seen == [position for position in log.entries if position > start]


@given(
    counts=ledgers_of_any_length,
    trimmed=st.integers(0, 3),
    pieces=st.integers(1, 9),
    known=st.booleans(),
    bounds=st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_pieces_of_a_range_begin_and_end_at_entries(counts, trimmed, pieces, known, bounds):
    log = Log(counts)
    log.trim(trimmed)
    low, high = sorted(bounds)
    chosen = log.there[low : high + 1]
    if not chosen:
        return
    whole = planner_range(log, chosen)
    table = [Ledger(ledger, count, count * _SIZE) for ledger, count in enumerate(log.counts, start=1)]
    ledgers = {A: [each for each in table if each.id >= log.first_ledger]} if known else {}
    found = []
    for item in split_ranges([whole], ReadOptions(service_url="pulsar://x:1", min_partitions=pieces), ledgers):
        inside = [position for position in log.there if item.after < position <= item.upto]
        assert item.upto in log.there
        assert not inside or not known or item.first in (inside[0], whole.first)
        found += inside
    assert found == chosen


def planner_range(log, chosen):
    before = [position for position in log.there if position < chosen[0]]
    start, end = StreamOffset({A: max(before, default=EARLIEST)}), StreamOffset({A: chosen[-1]}, firsts={A: chosen[0]})
    (item,) = ranges_between(start, end)
    return item


@pytest.mark.parametrize("limit", range(1, 9))
def test_a_ledger_end_costs_a_few_questions(limit, monkeypatch):
    """One for each range, and where a ledger ends as many more as the length of the range has bits, and one."""
    log = Log([7, 7, 7])
    asked = []
    original = log.following

    def noted(*arguments):
        asked.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(log, "following", noted)
    stream = planner_of(log, startingOffsets="earliest")
    offset, steps = stream.initial_offset(0).anchored(), 0
    while (following := stream.latest_offset(offset, steps, entries_max=limit)) is not offset:
        offset, steps = following, steps + 1
    assert len(asked) <= steps + 1 + 2 * (limit.bit_length() + 1)
