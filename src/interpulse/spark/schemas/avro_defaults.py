"""Defaults of fields, from JSON to the stored Avro value, by the rules of Java's ``ResolvingGrammarGenerator``.

Bytes are ISO-8859-1 text; times and decimals are written as their stored type. A record takes missing values from the
defaults of its fields. A union takes the first branch whose type has this kind of JSON value.
"""

from __future__ import annotations

from typing import Any, Final

from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType
from interpulse.spark.schemas.avro_leaves import below
from interpulse.spark.schemas.avro_wire import members_of

_NUMBERS: Final = {"int": 31, "long": 63}


def default_of(field: AvroField) -> Any:
    """Return the default as fastavro reads and writes it by the ``WireForm``.

    Raises ValueError for JSON that is no value of the field.
    """
    return _value(field.type, field.default)


def _value(kind: AvroType, spelled: Any) -> Any:
    if kind.kind == "union":
        return _of_union(kind, spelled)
    if kind.kind == "record":
        return _record(kind, spelled)
    if kind.kind == "array":
        return [_value(kind.parts[0], item) for item in _items(spelled)]
    if kind.kind == "map" and not (isinstance(spelled, list) and spelled):
        return {key: _value(kind.parts[0], value) for key, value in _entries(spelled).items()}
    if kind.kind == "enum" and spelled in kind.symbols:
        return kind.symbols.index(spelled)
    if kind.kind in ("map", "enum") or not _may_be(kind, spelled):
        raise ValueError(f"its default {spelled!r:.80} is no {kind.kind}")
    return _leaf(kind, spelled)


def _entries(spelled: Any) -> dict[str, Any]:
    """Return no entries for JSON that is no object: for Java the default ``false`` is an empty map, too."""
    return spelled if isinstance(spelled, dict) else {}


def _items(spelled: Any) -> list[Any]:
    return spelled if isinstance(spelled, list) else [*_entries(spelled).values()]


def _of_union(union: AvroType, spelled: Any) -> Any:
    branch = next((branch for branch in union.parts if _may_be(branch, spelled)), None)
    if branch is None:
        raise ValueError(f"its default {spelled!r:.80} is of no branch of its union")
    value, members = _value(branch, spelled), members_of(union)
    return value if len(members) < 2 or branch.kind == "null" else {f"member{members.index(branch)}": value}


def _may_be(kind: AvroType, spelled: Any) -> bool:
    """Return True for a branch that Java takes: it looks no further than this."""
    is_number = isinstance(spelled, int | float) and not isinstance(spelled, bool)
    match kind.kind:
        case "null":
            return spelled is None
        case "boolean":
            return isinstance(spelled, bool)
        case "int" | "long" | "float" | "double":
            return is_number
        case "string" | "bytes" | "fixed":
            return isinstance(spelled, str)
        case _:
            return True


def _record(kind: AvroType, spelled: Any) -> dict[str, Any]:
    entries, record = _entries(spelled), {}
    for field in kind.fields:
        if field.name not in entries and not field.has_default:
            raise ValueError(f"its default {spelled!r:.80} lacks {field.name}, which has no default of its own")
        try:
            record[field.name] = _value(field.type, entries.get(field.name, field.default))
        except ValueError as error:
            raise below(field.name, error) from None
    return record


def _leaf(kind: AvroType, spelled: Any) -> Any:
    if kind.kind in _NUMBERS:
        limit = 1 << _NUMBERS[kind.kind]
        if isinstance(spelled, float):
            return max(-limit, min(int(spelled), limit - 1))
        if not -limit <= spelled < limit:
            raise ValueError(f"its default {spelled} is no {kind.kind}")
        return spelled
    if kind.kind in ("float", "double"):
        return float(spelled)
    if kind.kind in ("bytes", "fixed"):
        stored = spelled.encode("latin-1", "replace")
        return stored if kind.kind == "bytes" else stored[: kind.size].ljust(kind.size, b"\0")
    return spelled
