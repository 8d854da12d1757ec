"""``produce``: what is refused before anything is opened, and contents by schema. Sending is tested against brokers."""

import json
import struct

import click
import pytest
from click.testing import CliRunner

from interpulse.cli.produce import OutgoingContents, checked, encoded, produce
from interpulse.client.contents import TypedValue, read_content
from interpulse.model.schemas import SchemaInfo, SchemaType


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t"], "Please supply message content with either --messages or --files"),
        (["t", "-m", "x", "-n", "0"], "0 is not in the range x>=1"),
        (["t", "-m", "x", "-p", "novalue"], "'novalue' is not of the form key=value"),
        (["t", "-f", "/nowhere"], "/nowhere cannot be read: No such file or directory"),
        (["a/b", "-m", "x"], "Invalid topic name"),
        (["t", "-m", "x", "-kvk", "k"], "-kvk and -kvkf need -kvet separated or -kvet inline"),
        (["t", "-m", "x", "-k", "k", "-kvet", "inline"], "-k is for messages without -kvet"),
        (["t", "-m", "x", "-kvet", "inline", "-kvk", "k", "-kvkf", "f"], "a message has one key"),
        (["t", "-m", "x", "-kvet", "odd"], "'odd' is not one of"),
        (["t", "-m", "x", "--url", "nonsense"], "not a service URL: 'nonsense'"),
    ],
)
def test_produce_when_used_wrongly_then_says_why(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(produce, arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_produce_when_no_server_listens_then_exits_as_unreachable() -> None:
    result = CliRunner().invoke(produce, ["t", "-m", "x", "--url", "pulsar://127.0.0.1:1", "--timeout", "0.2"])
    assert result.exit_code == 5
    assert "pulsar://127.0.0.1:1" in result.stderr


@pytest.mark.parametrize(
    "arguments", [["-f", "-", "-m", "x"], ["-f", "-,a"], ["-f", "-", "-f", "a"], ["-f", "-", "-n", "2"]]
)
def test_standard_input_when_not_alone_then_is_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(produce, ["t", *arguments])
    assert result.exit_code == 2
    assert "-f - sends standard input once, and nothing else beside it" in result.stderr


RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int"]}]})


def read_back(outgoing: OutgoingContents, text: str, key: str | None = None) -> object:
    typed = None if key is None else encoded(outgoing.key, key)
    message_key, content = outgoing.joined(typed, encoded(outgoing.value, text))
    assert not isinstance(message_key, str)
    return read_content(outgoing.schema, content, message_key)


STRING = "java.lang.String"


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ("bytes", "x", TypedValue(b"x", STRING)),
        ("string", "x", TypedValue("x", STRING)),
        (f"json:{RECORD}", '{"a": 1}', {"a": 1}),
        (f"avro:{RECORD}", '{"a": {"int": 1}}', {"a": 1}),
    ],
)
def test_text_when_sent_in_a_schema_then_is_read_by_it(schema: str, text: str, value: object) -> None:
    assert read_back(OutgoingContents(schema), text) == value


@pytest.mark.parametrize("encoding", ["separated", "inline"])
@pytest.mark.parametrize("key", ["k", None])
def test_keys_and_values_when_in_one_schema_then_are_both_read(encoding: str, key: str | None) -> None:
    outgoing = OutgoingContents(f"avro:{RECORD}", "string", encoding)
    read = read_back(outgoing, '{"a": null}', key)
    assert read == {"key": None if key is None else TypedValue(key, STRING), "value": {"a": None}}


def test_schema_of_keys_and_values_when_made_then_is_that_of_java() -> None:
    schema = OutgoingContents(f"json:{RECORD}", "string", "inline").schema
    assert schema is not None
    assert schema.type is SchemaType.KEY_VALUE
    assert schema.definition == struct.pack(">ii", 0, len(RECORD)) + RECORD.encode()
    assert schema.properties == {
        "kv.encoding.type": "INLINE",
        "key.schema.name": "String",
        "key.schema.type": "STRING",
        "key.schema.properties": "{}",
        "value.schema.name": "client",
        "value.schema.type": "JSON",
        "value.schema.properties": "{}",
    }


@pytest.mark.parametrize(
    ("schema", "text", "words"),
    [
        ("avro", "x", "Invalid schema type: avro"),
        ("int", "x", "Invalid schema type: int"),
        ("avro:{", "x", "--value-schema: the definition cannot be read"),
        (f"avro:{RECORD}", "x", "Cannot convert x to AVRO"),
        (f"json:{RECORD}", "{", "{ is not of the schema JSON"),
    ],
)
def test_text_when_it_does_not_fit_then_is_refused(schema: str, text: str, words: str) -> None:
    with pytest.raises(click.UsageError, match="^" + words.replace("{", r"\{")):
        encoded(OutgoingContents(schema).value, text)


def test_file_when_it_is_no_avro_then_is_refused() -> None:
    outgoing = OutgoingContents(f"avro:{RECORD}")
    assert checked(outgoing.value, b"\x00", "file") == b"\x00"
    with pytest.raises(click.UsageError, match="file is not of the schema AVRO: 1 bytes are left over"):
        checked(outgoing.value, b"\x00\x00", "file")


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (SchemaType.BOOLEAN, b"\x01", True),
        (SchemaType.INT32, b"\x00\x00\x00\x05", 5),
        (SchemaType.DOUBLE, struct.pack(">d", 1.5), 1.5),
        (SchemaType.TIMESTAMP, struct.pack(">q", 1000), "1970-01-01T00:00:01.000Z"),
        (SchemaType.LOCAL_DATE, struct.pack(">q", 1), "1970-01-02"),
    ],
)
def test_primitive_when_read_then_is_its_value(kind: SchemaType, raw: bytes, value: object) -> None:
    assert read_content(SchemaInfo(kind), raw, None).value == value
    with pytest.raises(ValueError, match=r"requires a buffer"):
        read_content(SchemaInfo(kind), b"", None)


def test_content_when_a_default_does_not_fit_its_type_then_is_read() -> None:
    fields = [{"name": "a", "type": "string", "default": None}, {"name": "n", "type": "int", "default": "0"}]
    definition = json.dumps({"type": "record", "name": "R", "fields": fields}).encode()
    assert read_content(SchemaInfo(SchemaType.AVRO, definition), b"\x02x\x04", None) == {"a": "x", "n": 2}
