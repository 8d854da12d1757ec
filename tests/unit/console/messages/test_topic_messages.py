"""The stored entries of a topic, and the filter of a search."""

from typing import Any

import pytest

from interpulse.client.messages import Message
from interpulse.console.messages.topic_messages import EntryRange, MessageFilter
from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import MessageId, Position

LEDGERS = [(3, 2), (5, 0), (8, 4)]


def test_entries_when_counted_then_each_has_its_position_and_back() -> None:
    entries = EntryRange(LEDGERS)
    positions = [entries[number] for number in range(len(entries))]
    assert positions == [Position(3, 0), Position(3, 1), *(Position(8, entry) for entry in range(4))]
    assert [entries.number(position) for position in positions] == list(range(6))


@pytest.mark.parametrize(
    ("position", "number"),
    [
        (Position(0, 9), 0),
        (Position(3, 2), 2),
        (Position(3, 99), 2),
        (Position(5, 0), 2),
        (Position(7, 0), 2),
        (Position(8, -1), 2),
        (Position(8, 4), 6),
        (Position(9, 0), 6),
    ],
)
def test_position_when_no_entry_is_there_then_counts_as_the_next_one(position: Position, number: int) -> None:
    assert EntryRange(LEDGERS).number(position) == number


@pytest.mark.parametrize("number", [-1, 6])
def test_entry_when_there_is_none_then_is_refused(number: int) -> None:
    with pytest.raises(IndexError):
        EntryRange(LEDGERS)[number]


@pytest.mark.parametrize(
    ("stats", "count"),
    [
        ({"ledgers": []}, 0),
        ({"ledgers": [{"ledgerId": 1, "entries": 3}, {"ledgerId": 2}], "currentLedgerEntries": 4}, 7),
        ({"ledgers": [{"ledgerId": 1, "entries": 3}], "currentLedgerEntries": 3}, 3),
    ],
)
def test_open_ledger_has_the_count_beside_the_ledgers(stats: dict[str, object], count: int) -> None:
    assert len(EntryRange.of(stats)) == count


def message(**fields: Any) -> Message:
    given: dict[str, Any] = {
        "id": MessageId(1, 2),
        "topic": "t",
        "content": b"celsius 21",
        "key": "attic",
        "key_is_binary": False,
        "ordering_key": None,
        "properties": {"unit": "C"},
        "publish_time_ms": 0,
        "event_time_ms": 0,
        "producer_name": "p-1",
        "sequence_id": 0,
        "schema_version": None,
        "replicated_from": None,
        "deliver_at_ms": None,
        "redelivery_count": 0,
        "index": None,
        "broker_publish_time_ms": None,
        "is_encrypted": False,
        "batch_size": 0,
    }
    return Message(**given | fields)


@pytest.mark.parametrize(
    ("asked", "matches"),
    [
        ({}, True),
        ({"key": "attic"}, True),
        ({"key": "att"}, False),
        ({"property_name": "unit"}, True),
        ({"property_name": "unit", "property_value": "C"}, True),
        ({"property_name": "unit", "property_value": "F"}, False),
        ({"property_name": "none"}, False),
        ({"producer": "p-1"}, True),
        ({"producer": "p"}, False),
        ({"content": "sius 2"}, True),
        ({"content": "SIUS"}, False),
        ({"content": "/s [0-9]+$/"}, True),
        ({"content": "/^[0-9]/"}, False),
        ({"content": "//"}, False),
        ({"key": "attic", "content": "99"}, False),
    ],
)
def test_message_when_looked_for_then_everything_given_has_to_fit(asked: dict[str, str], matches: bool) -> None:
    assert MessageFilter(**asked).matches(message()) is matches
    assert MessageFilter(**asked).empty is (asked == {})


def test_pattern_when_the_content_is_no_text_then_its_bytes_are_searched() -> None:
    assert MessageFilter(content=r"/\xff./").matches(message(content=b"a\xffb"))
    assert not MessageFilter(content="/a/").matches(message(content=None))


@pytest.mark.parametrize("pattern", ["/(/", r"/(?=a)/", f"/{'a' * 2000}/"])
def test_pattern_when_it_is_none_then_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRequest, match="attern"):
        MessageFilter(content=pattern)
