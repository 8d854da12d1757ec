"""Schemas between value and wire form."""

import pytest

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.errors import RemoteProtocolError
from interpulse.wire.schemas import schema_from_wire, schema_to_wire


@pytest.mark.parametrize("kind", SchemaType)
def test_schema_when_sent_and_read_then_is_the_same(kind: SchemaType) -> None:
    schema = SchemaInfo(kind, b"{}", {"a": "b"}, "name")
    assert schema_from_wire(schema_to_wire(schema)) == schema


def test_schema_when_its_type_is_unknown_then_is_refused() -> None:
    known = pb.Schema(name="later", schema_data=b"", type=pb.Schema.String).SerializeToString()
    assert known[-1] == pb.Schema.String
    with pytest.raises(RemoteProtocolError, match="schema later has no type"):
        schema_from_wire(pb.Schema.FromString(known[:-1] + b"\x7f"))
