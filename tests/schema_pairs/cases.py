"""What a case is, and the small words its definitions are written with."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text

STRATEGIES = (
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
ANSWERS = Path(__file__).with_name("real_answers.jsonl")
DEFINITIONS = Path(__file__).with_name("real_definitions.jsonl")


@dataclass(frozen=True)
class Schema:
    """A schema as REST takes it: for KEY_VALUE the text is an object of both definitions."""

    type: str
    text: str
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """What is posted."""
        return {"type": self.type, "schema": self.text, "properties": self.properties}

    @property
    def info(self) -> SchemaInfo:
        """The value our rules take."""
        kind = SchemaType[self.type]
        return SchemaInfo(kind, definition_from_text(kind, self.text), self.properties)


@dataclass(frozen=True)
class Case:
    """A topic's schemas, oldest first, and one that wants to be the next."""

    name: str
    history: tuple[Schema, ...]
    new: Schema


def read_answers() -> dict[str, dict[str, str]]:
    """By case, then by strategy: yes, no, invalid (the definition), or error (anything else went wrong there)."""
    return {line["case"]: line["real"] for line in map(json.loads, ANSWERS.read_text(encoding="utf-8").splitlines())}


def read_definitions() -> list[tuple[Schema, bool]]:
    """Definitions, and whether a real Pulsar takes each for the first schema of a topic."""
    lines = map(json.loads, DEFINITIONS.read_text(encoding="utf-8").splitlines())
    return [(Schema(line["type"], line["schema"]), line["taken"]) for line in lines]


def record(*fields: dict[str, Any], name: str = "A", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def fld(kind: Any, name: str = "f", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "X", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def mapping(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def avro(definition: Any, kind: str = "AVRO") -> Schema:
    return Schema(kind, json.dumps(definition))


def pair(key: Schema, value: Schema, encoding: str = "INLINE") -> Schema:
    """A KEY_VALUE schema."""
    text = {side: json.loads(part.text) if part.text else "" for side, part in (("key", key), ("value", value))}
    properties = {"key.schema.type": key.type, "value.schema.type": value.type, "kv.encoding.type": encoding}
    return Schema("KEY_VALUE", json.dumps(text), properties)
