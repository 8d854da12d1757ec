"""Cases for the Java client, its answers, and what the data source makes of the same schemas and payloads."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text
from interpulse.spark.schemas.payload_columns import payload_fields
from interpulse.spark.schemas.payload_decoder import Payload, PayloadDecoder
from interpulse.spark.schemas.payload_encoder import RowEncoder
from tests.interop.conftest import CHECKS
from tests.interop.real_pulsar import run_java

_VERSION: Final = b"\0" * 8
Schema: TypeAlias = Mapping[str, Any]
"""As ``SchemaConformance.java`` takes it."""


class Stored(NamedTuple):
    """One message: the key is that of a SEPARATED pair."""

    value: bytes | None
    key: bytes | None = None


@dataclass
class Case:
    """Payloads of the schema ``written``, and how they are read as ``wanted``. ``payloads`` are those of ours."""

    written: Schema
    wanted: Schema
    value: Any
    payloads: list[Stored] = field(default_factory=list)


class Answer(NamedTuple):
    """What the Java client makes of a case; ``read`` begins with the value of its own payload. An error is a str."""

    payload: Stored | str
    read: list[Any]


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """So many examples, the same ones every time."""
    found: list[Any] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found


def java_answers(cases: Sequence[Case]) -> list[Answer]:
    """One run of Java for all of them."""
    lines = [
        json.dumps(
            {
                "written": case.written,
                "wanted": case.wanted,
                "value": case.value,
                "payloads": [_encoded(payload) for payload in case.payloads],
            }
        )
        for case in cases
    ]
    said = run_java(CHECKS / "SchemaConformance.java", stdin="\n".join(lines).encode())
    answers = [_answer(json.loads(line)) for line in said.decode().strip("\n").split("\n")]
    assert len(answers) == len(cases)
    return answers


def _encoded(payload: Stored) -> list[str | None]:
    return [None if part is None else base64.b64encode(part).decode() for part in payload]


def _answer(said: Mapping[str, Any]) -> Answer:
    payload = said["payload"]
    if isinstance(payload, dict):
        payload = payload["error"]
    else:
        payload = Stored(*(None if part is None else base64.b64decode(part) for part in payload))
    return Answer(payload, [value["error"] if _is_error(value) else value for value in said["read"]])


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"error"}


def schema_info(schema: Schema) -> SchemaInfo:
    kind = SchemaType[schema["type"]] if schema["type"] != "BYTES" else SchemaType.NONE
    if kind is not SchemaType.KEY_VALUE:
        return SchemaInfo(kind, schema.get("definition", "").encode())
    parts = {name: schema_info(schema[name]) for name in ("key", "value")}
    texts = {name: part.definition.decode() for name, part in parts.items()}
    types = {f"{name}.schema.type": part.type.name for name, part in parts.items()}
    definition = definition_from_text(kind, json.dumps(texts))
    return SchemaInfo(kind, definition, {**types, "kv.encoding.type": schema["encoding"]})


def row_of(written: Schema, wanted: Schema, payload: Stored, *, bulk: bool = True) -> dict[str, Any] | str:
    """The row that the data source makes of a message; the error as a str. Without ``bulk`` as one among odd ones."""
    schemas = schema_info(written), schema_info(wanted)
    fields = payload_fields(schemas[1])
    assert fields is not None
    decoder = PayloadDecoder(schemas[1], fields, lambda topic, version: schemas[0])
    messages = [Payload("t", (1, 2, -1), _VERSION, *payload)]
    if not bulk:
        messages.append(Payload("t", (1, 3, -1), _VERSION, None, None))
    try:
        columns = decoder.arrays(messages)
        return {name: columns[name][0].as_py() for name in fields.names}
    except Exception as error:  # noqa: BLE001 - the comparison shows it
        return f"{type(error).__name__}: {error}"


def payload_of(schema: Schema, row: Mapping[str, Any]) -> Stored:
    """The message that the data source makes of a row; both of its ways must agree."""
    info = schema_info(schema)
    fields = payload_fields(info)
    assert fields is not None
    batch = pa.RecordBatch.from_pylist([dict(row)], _arrow(fields))
    encoder = RowEncoder("t", info, fields)
    encoded = encoder.encode(batch.to_pylist()[0])
    at_once = encoder.encode_all(batch)
    assert at_once is None or at_once.to_pylist() == [encoded.value]
    return Stored(*encoded)


def _arrow(fields: StructType) -> pa.Schema:
    return to_arrow_schema(fields, timezone="UTC")
