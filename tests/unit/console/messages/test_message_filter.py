"""Which messages a visitor looks for."""

from typing import Any

import pytest

from interpulse.client.messages import Message
from interpulse.console.messages.message_filter import MessageFilter
from interpulse.model.errors import InvalidRequest
from interpulse.model.ids import MessageId


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
