"""The printed forms of messages."""

from dataclasses import replace

import pytest

from interpulse.cli.message_printer import describe_message, message_as_json
from interpulse.client.contents import TypedValue
from interpulse.model.ids import MessageId
from tests.support.received_messages import received

MESSAGE = received(
    MessageId(3, 4, -1, 5),
    topic="persistent://public/default/t",
    content=b"hello",
    key="k",
    properties={"a": "1", "b": "2"},
    publish_time_ms=1000,
    event_time_ms=2000,
    sequence_id=6,
)


def test_message_when_described_then_has_the_form_of_pulsar_client() -> None:
    assert describe_message(MESSAGE) == (
        "publishTime:[1000], eventTime:[2000], key:[k], properties:[a=1, b=2], content:hello"
    )


def test_message_when_parts_are_missing_then_says_null() -> None:
    bare = replace(MESSAGE, content=None, key=None, properties={}, event_time_ms=0)
    assert describe_message(bare) == "publishTime:[1000], eventTime:[0], key:[null], properties:[], content:null"


def test_message_when_metadata_is_wanted_then_follows_the_content() -> None:
    text = describe_message(replace(MESSAGE, index=9, replicated_from="east", ordering_key=b"o"), metadata=True)
    assert text.endswith(
        "content:hello, event-time:1970-01-01T00:00:02.000Z, message-id:3:4:-1:5, producer-name:p, sequence-id:6, "
        "replicated-from:east, redelivery-count:0, ordering-key:o, schema-version:, index:9"
    )


def test_content_when_wanted_in_hexadecimal_then_is_dumped() -> None:
    text = describe_message(replace(MESSAGE, content=b"0123456789abcdef\x00"), hexadecimal=True)
    assert text.endswith(
        "content:00000000 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66 0123456789abcdef\n"
        "00000010 00                                              .\n"
    )


def test_message_when_wanted_as_json_then_times_are_dates_and_content_is_text() -> None:
    assert message_as_json(MESSAGE) == {
        "topic": "persistent://public/default/t",
        "messageId": "3:4:-1:5",
        "key": "k",
        "publishTime": "1970-01-01T00:00:01.000Z",
        "eventTime": "1970-01-01T00:00:02.000Z",
        "properties": {"a": "1", "b": "2"},
        "producerName": "p",
        "sequenceId": 6,
        "redeliveryCount": 0,
        "replicatedFrom": None,
        "content": "hello",
    }


def test_message_when_its_content_is_no_text_then_json_has_it_in_base64() -> None:
    fields = message_as_json(replace(MESSAGE, content=b"\xff\x00", event_time_ms=0))
    assert (fields["contentBase64"], fields["eventTime"], "content" in fields) == ("/wA=", None, False)


def test_message_when_its_content_is_hidden_then_json_has_none() -> None:
    assert not {"content", "contentBase64"} & message_as_json(MESSAGE, hidden=True).keys()


@pytest.mark.parametrize(
    ("value", "text", "in_json"),
    [
        (TypedValue("hello", "java.lang.String"), "{value=hello, type=class java.lang.String}", "hello"),
        ({"a": 1, "b": None, "c": [True, {"d": b"x"}]}, "{a=1, b=NULL, c=[true, {d=x}]}", None),
        (
            {"key": TypedValue("k", "java.lang.String"), "value": {"a": 1}},
            "{key={value=k, type=class java.lang.String}, value={a=1}}",
            {"key": "k", "value": {"a": 1}},
        ),
        (None, "null", None),
    ],
)
def test_value_when_the_schema_is_read_then_stands_in_place_of_the_content(
    value: object, text: str, in_json: object
) -> None:
    assert describe_message(MESSAGE, value=value).endswith(f"content:{text}")
    if in_json is not None:
        assert message_as_json(MESSAGE, value=value)["content"] == in_json
