"""``start`` of the job's file: words, times, and positions by topic."""

import tomllib
from datetime import UTC, datetime

import pytest

from interpulse.model.ids import EARLIEST, LATEST, MessageId, Position
from interpulse.spark.job.start import Start, first_message, parse_start

X, Y = (f"persistent://public/default/{name}" for name in "xy")
NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z


def start_of(line):
    return parse_start(tomllib.loads(line)["start"])


@pytest.mark.parametrize(
    ("line", "begin", "offsets", "shown"),
    [
        ('start = "subscription"', None, "subscription", "subscription"),
        ('start = "earliest"', EARLIEST, "earliest", "earliest"),
        ('start = "latest"', LATEST, "latest", "latest"),
        ('start = "2026-01-01T12:00:00Z"', NOON, "subscription", "2026-01-01T12:00:00.000+00:00"),
        ("start = 2026-01-01T12:00:00Z", NOON, "subscription", "2026-01-01T12:00:00.000+00:00"),
        ("start = 2026-01-01T13:00:00+01:00", NOON, "subscription", "2026-01-01T12:00:00.000+00:00"),
        (f"start = {NOON}", NOON, "subscription", "2026-01-01T12:00:00.000+00:00"),
        (f'start = "{NOON}"', NOON, "subscription", "2026-01-01T12:00:00.000+00:00"),
    ],
)
def test_word_or_time_is_for_all_topics(line, begin, offsets, shown):
    start = start_of(line)
    assert (start.of(X), start.offsets, str(start)) == (begin, offsets, shown)
    assert start.needs_cursor(X) == isinstance(begin, int)


@pytest.mark.parametrize(
    ("value", "begin"),
    [
        ('"12:845"', Position(12, 844)),
        ('"12:0"', Position(12, -1)),
        ('"earliest"', EARLIEST),
        ("-1", LATEST),
        ('"CAwQzQY="', Position(12, 844)),
        ("2026-01-01T12:00:00Z", NOON),
        (str(NOON), NOON),
    ],
)
def test_table_is_for_the_topics_it_names_and_the_others_begin_at_their_cursors(value, begin):
    start = start_of(f"[start]\nx = {value}")
    assert (start.of(X), start.of(f"{X}-partition-1"), start.of(Y)) == (begin, begin, None)
    assert (start.offsets, str(start)) == ("subscription", f"as given for {X}")
    assert start.needs_cursor(X)


def test_table_may_name_partitions():
    start = start_of('[start.x]\n0 = "12:845"\n1 = "latest"')
    assert [start.of(f"{X}-partition-{index}") for index in range(3)] == [Position(12, 844), LATEST, None]
    assert start.unknown({f"{X}-partition-0"}) == [f"{X}-partition-1"]
    assert start.unknown({f"{X}-partition-{index}" for index in range(2)}) == []


def test_topic_that_is_not_among_those_selected_is_known():
    start = start_of('[start]\nx = "12:845"\ny = "latest"')
    assert start.unknown({f"{X}-partition-0"}) == [Y]
    assert Start().unknown(set()) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('start = "now"', "'now' is not one of subscription, earliest, latest, nor a time with its zone"),
        ("start = 2026-01-01T12:00:00", "is not one of subscription"),
        ("start = -5", "-5 is not one of subscription"),
        ("start = true", "True is not one of subscription"),
        ("[start]", "the table names no topic"),
        ('[start]\nx = "yesterday"', "x: 'yesterday' is not a position"),
        ("[start]\nx = 2026-01-01T12:00:00", "nor is it a time with its zone"),
        ('[start]\nx = "12:845:3"', "is inside an entry, which is copied whole"),
    ],
)
def test_what_is_neither_is_refused(line, problem):
    with pytest.raises(ValueError, match=problem):
        start_of(line)


class Topics:
    """Of an admin API that knows where the messages of a time begin."""

    def __init__(self, ledger, entry):
        self.topics = self
        self.found = {"ledgerId": ledger, "entryId": entry}

    async def message_id_at(self, name, time_ms):
        self.asked = (name, time_ms)
        return self.found


@pytest.mark.parametrize(
    ("begin", "first"),
    [
        (None, MessageId(*EARLIEST)),
        (EARLIEST, MessageId(*EARLIEST)),
        (LATEST, None),
        (Position(12, 844), MessageId(12, 845)),
        (NOON, MessageId(7, 3)),
    ],
)
async def test_first_message_is_the_one_behind_a_position_or_the_first_of_a_time(begin, first):
    topics = Topics(7, 3)
    assert await first_message(topics, X, begin) == first  # type: ignore[arg-type]
    assert begin != NOON or topics.asked == (X, int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp() * 1000))


async def test_topic_whose_messages_are_all_later_begins_with_its_first_one():
    assert await first_message(Topics(7, -1), X, NOON) == MessageId(7, 0)  # type: ignore[arg-type]
