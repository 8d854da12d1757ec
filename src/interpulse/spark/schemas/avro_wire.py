"""The form in which fastavro reads and writes Avro, so that the branch of a union is known instead of guessed.

Each branch of a union of several types is wrapped in a record with one field, ``member0``, ``member1``.. as in Spark's
columns. Such a record has the bytes of its only field; fastavro reads and writes it as ``{"member1": value}``. Logical
types are removed: times are numbers, decimals are bytes. Symbols of enums are their numbers, where fastavro takes -1
for the last one. A top-level type that is no record becomes one with the field ``value``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.rules.schema_compatibility.avro_types import AvroType, parse_avro
from interpulse.spark.options.option import OptionError

VALUE: Final = "value"
"""Field of a top-level type that is no record."""
_WIDE: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def tree_of(definition: bytes) -> AvroType:
    """Return the type of a topic's definition; raise OptionError if it is none."""
    try:
        return parse_avro(definition)
    except InvalidSchemaDefinition as error:
        raise OptionError(f"the topic's schema is no Avro definition: {error}; read with valueSchema=raw") from None


def members_of(union: AvroType) -> list[AvroType]:
    """Return the branches other than null."""
    return [branch for branch in union.parts if branch.kind != "null"]


def wide_member(members: Sequence[AvroType]) -> int | None:
    """Return the index of the wider of two widths of one number, which are one column; None for other members."""
    wide = _WIDE.get(frozenset(member.kind for member in members)) if len(members) == 2 else None
    if wide is None or any(member.logical for member in members):
        return None
    return [member.kind for member in members].index(wide)


class WireForm:
    """One type as fastavro takes it: ``parsed``. Records, fixed types and members of unions get new names."""

    def __init__(self, top: AvroType) -> None:
        import fastavro

        self._names: dict[AvroType, str] = {}
        self._member_names: dict[AvroType, list[str]] = {}
        form = self._form(top)
        if top.kind != "record":
            form = {"type": "record", "name": "Top", "fields": [{"name": VALUE, "type": form}]}
        self.parsed = fastavro.parse_schema(form, named_schemas={})

    def branch_names(self, union: AvroType) -> list[str]:
        """Return the names of the branches other than null: fastavro writes ``(name, value)`` as that branch."""
        members = members_of(union)
        if len(members) > 1:
            return self._member_names[union]
        return [self._names.get(member, _stored_kind(member)) for member in members]

    def _form(self, kind: AvroType) -> Any:
        if kind in self._names:
            return self._names[kind]
        match kind.kind:
            case "union":
                return self._union(kind)
            case "array":
                return {"type": "array", "items": self._form(kind.parts[0])}
            case "map":
                return {"type": "map", "values": self._form(kind.parts[0])}
            case "record" | "fixed":
                self._names[kind] = name = f"Named{len(self._names)}"
                return {"type": kind.kind, "name": name, **self._content(kind)}
            case _:
                return _stored_kind(kind)

    def _content(self, kind: AvroType) -> dict[str, Any]:
        if kind.kind == "fixed":
            return {"size": kind.size}
        return {"fields": [{"name": field.name, "type": self._form(field.type)} for field in kind.fields]}

    def _union(self, union: AvroType) -> Any:
        members = members_of(union)
        if len(members) < 2:
            return [self._form(branch) for branch in union.parts]
        number = len(self._member_names)
        self._member_names[union] = names = [f"Union{number}Member{index}" for index in range(len(members))]
        forms = iter(
            {"type": "record", "name": name, "fields": [{"name": f"member{index}", "type": self._form(member)}]}
            for index, (name, member) in enumerate(zip(names, members, strict=True))
        )
        return ["null" if branch.kind == "null" else next(forms) for branch in union.parts]


def _stored_kind(kind: AvroType) -> str:
    return "int" if kind.kind == "enum" else kind.kind
