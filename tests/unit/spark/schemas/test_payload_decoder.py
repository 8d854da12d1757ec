"""Payloads as columns: each by the schema of its own version, as the schema of the query's start."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
import pytest

from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text
from interpulse.spark.schemas.payload_columns import payload_fields
from interpulse.spark.schemas.payload_decoder import Payload, PayloadDecoder, UnreadablePayload

OLD_FIELDS = [{"name": "a", "type": "int"}, {"name": "gone", "type": "string"}]
NEW_FIELDS = [
    {"name": "a", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 1000},
    {
        "name": "price",
        "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        "default": "\u0001",
    },
    {"name": "any", "type": ["null", "string", "int"], "default": None},
    {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
]


def schema(fields, name="R", kind=SchemaType.AVRO):
    return SchemaInfo(kind, json.dumps({"type": "record", "name": name, "fields": fields}).encode())


OLD, NEW = schema(OLD_FIELDS, "Old"), schema(NEW_FIELDS, "New")
VERSIONS = {b"0": OLD, b"1": NEW, b"2": SchemaInfo(SchemaType.STRING)}


def avro(written, value):
    payload = io.BytesIO()
    fastavro.schemaless_writer(payload, json.loads(written.definition), value)
    return payload.getvalue()


def payload(value, version=b"", key=None):
    return Payload("topic", (7, 3, -1), version, value, key)


def decoded(wanted, *payloads, **options):
    decoder = PayloadDecoder(wanted, payload_fields(wanted), lambda topic, version: VERSIONS.get(version), **options)  # type: ignore[arg-type]
    return {name: column.to_pylist() for name, column in decoder.arrays(payloads).items()}


def test_messages_of_two_versions_become_rows_of_the_newest():
    at = datetime(2024, 1, 2, tzinfo=UTC)
    new = avro(NEW, {"a": 6, "at": at, "price": Decimal("1.25"), "any": 4, "tags": {"k": 1}})
    found = decoded(NEW, payload(avro(OLD, {"a": 5, "gone": "x"}), b"0"), payload(new, b"1"), payload(None, b"1"))
    assert found == {
        "a": [5, 6, None],
        "at": [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), at, None],
        "price": [Decimal("0.01"), Decimal("1.25"), None],
        "any": [None, {"member0": None, "member1": 4}, None],
        "tags": [[], [("k", 1)], None],
    }


def test_message_without_version_has_the_schema_of_the_query():
    assert decoded(OLD, payload(avro(OLD, {"a": 5, "gone": "x"}))) == {"a": [5], "gone": ["x"]}


def test_json_may_lack_fields_and_have_others():
    wanted = schema(OLD_FIELDS, kind=SchemaType.JSON)
    assert decoded(wanted, payload(b'{"a": 5, "more": []}')) == {"a": [5], "gone": [None]}


@pytest.mark.parametrize(
    ("version", "said"),
    [(b"9", "does not know schema version 39"), (b"2", "has schema type STRING, the query reads AVRO")],
)
def test_version_that_cannot_be_read_is_told(version, said):
    with pytest.raises(UnreadablePayload, match=said):
        decoded(NEW, payload(b"", version))


@pytest.mark.parametrize("raw", [b'{"a": ', b'{"a": "text"}', b"[1]", b'{"a": 3000000000}'])
def test_payload_that_does_not_fit_is_named_or_kept(raw):
    wanted = schema(OLD_FIELDS, kind=SchemaType.JSON)
    fits = payload(b'{"a": 1}')
    with pytest.raises(UnreadablePayload, match=r"message at 7:3 of topic does not fit.*parseMode=PERMISSIVE"):
        decoded(wanted, fits, payload(raw))
    found = decoded(wanted, fits, payload(raw), corrupt_column="_corrupt")
    assert found == {"a": [1, None], "gone": [None, None], "_corrupt": [None, raw]}
    assert decoded(wanted, fits, payload(raw), corrupt_column="") == {"a": [1, None], "gone": [None, None]}


def pair(encoding):
    properties = {"key.schema.type": "STRING", "value.schema.type": "INT32", "kv.encoding.type": encoding}
    definition = definition_from_text(SchemaType.KEY_VALUE, '{"key": "", "value": ""}')
    return SchemaInfo(SchemaType.KEY_VALUE, definition, properties)


def test_inline_pair_is_cut():
    whole = b"\0\0\0\1k\0\0\0\4\0\0\0\7"
    half = b"\xff\xff\xff\xff\0\0\0\4\0\0\0\7"
    assert decoded(pair("INLINE"), payload(whole), payload(half), payload(None)) == {
        "key": ["k", None, None],
        "value": [7, 7, None],
    }
    with pytest.raises(UnreadablePayload, match="cut short"):
        decoded(pair("INLINE"), payload(b"\0\0\0\5k"))


def test_separated_pair_has_its_key_in_the_message():
    found = decoded(pair("SEPARATED"), payload(b"\0\0\0\7", key=b"k"), payload(None, key=b"k"))
    assert found == {"key": ["k", "k"], "value": [7, None]}
