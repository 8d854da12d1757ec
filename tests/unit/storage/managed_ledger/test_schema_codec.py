"""Schemas in Pulsar's protobuf, against those that a real broker wrote."""

from __future__ import annotations

import pytest

from interpulse.model.ids import Position
from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.storage.managed_ledger import managed_ledger_pb2 as pb
from interpulse.storage.managed_ledger.schema_codec import (
    StoredSchema,
    VersionEntry,
    decode_locator,
    decode_schema,
    encode_locator,
    encode_schema,
)

DIGEST = bytes.fromhex("54c513598319e25a2f0d71e091f3fb55646cbf1f5ae1643b1719bdc17cdca73e")
LOCATOR = bytes.fromhex(f"0a2a08001204080e10001a20{DIGEST.hex()}122a08001204080e10001a20{DIGEST.hex()}")
UNKNOWN = bytes.fromhex("fa3e03616263")  # field 1007
DEFINITION = b"""{
 "type": "record",
 "name": "R",
 "fields": [
  {
   "name": "a",
   "type": [
    "null",
    "string"
   ]
  },
  {
   "name": "b",
   "type": [
    "null",
    "int"
   ]
  }
 ]
}"""
ENTRY = bytes.fromhex(
    f"12d5010a0b74312f6e73312f6176726f1200180322b801{DEFINITION.hex()}28cab391bba0343000"
    f"2a3c0800121608ffffffffffffffffff0110ffffffffffffffffff011a20{DIGEST.hex()}"
)
SCHEMA = SchemaInfo(SchemaType.JSON, DEFINITION)
FIRST = VersionEntry(0, Position(14, 0), DIGEST)


def test_locator_of_a_real_broker_when_read_then_is_written_as_it_was() -> None:
    assert decode_locator(LOCATOR) == [FIRST]
    assert encode_locator([FIRST]) == LOCATOR


def test_locator_when_a_version_comes_then_is_the_old_one_with_it() -> None:
    second = VersionEntry(1, Position(20, 0), b"x" * 32)
    grown = encode_locator([FIRST, second], previous=LOCATOR + UNKNOWN)
    assert decode_locator(grown) == [FIRST, second]
    assert grown.endswith(UNKNOWN)
    message = pb.SchemaLocator.FromString(grown)
    assert (message.info.version, message.info.position.ledgerId) == (1, 20)


def test_entry_of_a_real_broker_when_read_then_is_written_as_it_was() -> None:
    assert decode_schema(ENTRY) == StoredSchema(SCHEMA, 1795420346826)
    assert encode_schema("t1/ns1/avro", SCHEMA, 1795420346826, []) == (ENTRY, DIGEST)


@pytest.mark.parametrize("kind", [kind for kind in SchemaType if kind is not SchemaType.AUTO_CONSUME])
def test_schema_when_written_and_read_again_then_is_the_same(kind: SchemaType) -> None:
    schema = SchemaInfo(kind, b"definition", {"a": "b"})
    entry, _ = encode_schema("t/n/x", schema, 7, [FIRST])
    assert decode_schema(entry) == StoredSchema(schema, 7)
    assert pb.SchemaEntry.FromString(entry).index[0].position.ledgerId == 14


def test_deletion_is_a_version_without_schema() -> None:
    assert decode_schema(encode_schema("t/n/x", None, 7, [FIRST])[0]) == StoredSchema(None, 7)


def test_schema_of_a_type_that_is_not_known_is_refused() -> None:
    info = pb.SchemaInfo(schema_id="x", user="", type=23, schema=b"", timestamp=1, deleted=False)
    with pytest.raises(ValueError, match="schemas of type 23 are not supported"):
        decode_schema(pb.SchemaEntry(schema_data=info.SerializeToString()).SerializeToString())


@pytest.mark.parametrize("value", [b"", b"{}"])
def test_value_that_is_no_record_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="it is no Schema"):
        decode_locator(value)
    with pytest.raises(ValueError, match="it is no Schema"):
        decode_schema(value)
