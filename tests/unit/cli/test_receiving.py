"""``consume`` and ``read``: what is refused at once, and messages as they are printed."""

from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from interpulse.cli.produce import produce
from interpulse.cli.receiving import consume, describe_message, message_as_json, read
from interpulse.client.contents import TypedValue
from interpulse.model.extras import pip_install
from interpulse.model.ids import MessageId
from tests.support.received_messages import received


@pytest.mark.parametrize("command", [consume, read])
def test_key_when_cryptography_is_missing_then_says_what_to_install(
    command: click.Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.cli.messaging.find_spec", lambda name: None)
    result = CliRunner().invoke(command, ["t", "-ekv", "file:///key"])
    said = f"Error: -ekv needs cryptography as well: {pip_install('encryption')}\n"
    assert (result.exit_code, result.stderr) == (2, said)


@pytest.mark.parametrize("flag", ["-ekn", "-ekv", "--encryption-key-name", "--encryption-key-value"])
def test_key_when_producing_with_half_of_it_then_is_wrong_usage(flag: str) -> None:
    result = CliRunner().invoke(produce, ["t", "-m", "x", flag, "key"])
    assert result.exit_code == 2
    assert "-ekn and -ekv need each other: the name of the public key, and the key" in result.stderr


def test_pool_when_asked_for_then_says_that_there_is_none() -> None:
    result = CliRunner().invoke(read, ["t", "-pm", "true", "--url", "pulsar://127.0.0.1:1", "--timeout", "0.2"])
    assert result.stderr.startswith("-pm has no effect here: there is no pool of messages\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t", "-s", "s", "-n", "-1"], "-1 is not in the range x>=0"),
        (["t", "-s", "s", "-t", "Odd"], "'Odd' is not one of"),
        (["t/x", "-s", "s", "--regex"], "tenant/namespace/expression"),
        (["t/ns/(", "-s", "s", "--regex"], "not a regular expression"),
        (["a/b", "-s", "s"], "Invalid topic name"),
        (["t", "-stp", "2", "-etp", "1"], "end timestamp should larger than start timestamp."),
        (["t", "-m", "Odd"], "'Odd' is not one of"),
        (["t", "-st", "avro"], "'avro' is not one of"),
        (["t", "-s", "s", "--url", "nonsense"], "not a service URL: 'nonsense'"),
    ],
)
def test_consume_when_used_wrongly_then_says_why(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(consume, arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_consume_when_no_server_listens_then_exits_as_unreachable() -> None:
    result = CliRunner().invoke(consume, ["t", "-s", "s", "--url", "pulsar://127.0.0.1:1", "--timeout", "0.2"])
    assert result.exit_code == 5
    assert "pulsar://127.0.0.1:1" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t", "-m", "1"], "'1' is neither latest nor earliest nor ledgerId:entryId"),
        (["t", "-n", "-1"], "-1 is not in the range x>=0"),
        (["a/b"], "Invalid topic name"),
    ],
)
def test_read_when_used_wrongly_then_says_why(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(read, arguments)
    assert result.exit_code == 2
    assert words in result.stderr


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
