"""Whether data of one Avro type can be read as another, as the validators of Avro 1.12 decide it.

They are looser than the resolution rules of Avro's specification, and a real Pulsar asks them:

* names of records do not count, those of enums and fixed types do, without their namespace;
* symbols of enums may come and go, with or without a default;
* a record finds its branch in a reader's union by full name, else by structure: the first whose fields do not fail at
  once, and rather one of the same short name;
* everything else in a reader's union is found by kind before it is by promotion.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from interpulse.rules.schema_compatibility.avro_aliases import AliasConflict, with_aliases_of
from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType, has_usable_default

__all__ = ["are_alike", "find_branch", "find_unreadable", "promotes"]

_PROMOTIONS: Final = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
_NAMED: Final = frozenset({"record", "enum", "fixed"})


@dataclass(slots=True, eq=False)
class _Resolution:
    """How one pair of types resolves: it fails with a reason, or depends on its parts. Recursive types make cycles."""

    reason: str = ""
    parts: list[_Resolution] = field(default_factory=list)

    @property
    def fails_at_once(self) -> bool:
        return bool(self.reason) or any(part.reason for part in self.parts)


def find_unreadable(writer: AvroType, reader: AvroType) -> str | None:
    """Why data of ``writer`` cannot be read with ``reader``; None if it can."""
    try:
        written = with_aliases_of(reader, writer)
        return next(_reasons(_Resolver().resolve(written, reader, "")), None)
    except AliasConflict as error:
        return str(error)
    except RecursionError:  # names let types be nested deeper than their definitions are
        return "the two are nested too deeply to be compared"


def find_branch(writer: AvroType, union: AvroType) -> AvroType | None:
    """Return the branch of a reader's union that takes what was written as no union; None if none does."""
    return _Resolver().branch(writer, union, "")


def promotes(writer: AvroType, reader: AvroType) -> bool:
    """Return True if a value of one kind can be read as the other, which is wider."""
    return reader.kind in _PROMOTIONS.get(writer.kind, ())


def are_alike(writer: AvroType, reader: AvroType) -> bool:
    """Return True for types of one structure: a union of the one is read branch by branch with the other."""
    return _are_alike(writer, reader, set())


def _reasons(root: _Resolution) -> Iterator[str]:
    seen, waiting = {root}, [root]
    while waiting:
        each = waiting.pop()
        if each.reason:
            yield each.reason
        fresh = [part for part in each.parts if part not in seen]
        seen.update(fresh)
        waiting += reversed(fresh)


class _Resolver:
    """Resolves one pair of definitions; every pair of records in it once."""

    def __init__(self) -> None:
        self._records: dict[tuple[AvroType, AvroType], _Resolution] = {}

    def resolve(self, writer: AvroType, reader: AvroType, where: str) -> _Resolution:
        if writer.kind == "union":
            return self._from_union(writer, reader, where)
        if writer.kind == reader.kind:
            return self._same_kind(writer, reader, where)
        if reader.kind == "union":
            branch = self.branch(writer, reader, where)
            return _mismatch(writer, reader, where) if branch is None else self.resolve(writer, branch, where)
        return _Resolution() if promotes(writer, reader) else _mismatch(writer, reader, where)

    def _from_union(self, writer: AvroType, reader: AvroType, where: str) -> _Resolution:
        if are_alike(writer, reader):
            return _Resolution()
        return _Resolution(parts=[self.resolve(branch, reader, where) for branch in writer.parts])

    def _same_kind(self, writer: AvroType, reader: AvroType, where: str) -> _Resolution:
        if writer.kind == "record":
            return self._record(writer, reader, where)
        if writer.parts:
            return _Resolution(parts=[self.resolve(writer.parts[0], reader.parts[0], f"{where}[]")])
        if writer.short_name != reader.short_name or writer.size != reader.size:
            return _mismatch(writer, reader, where)
        return _Resolution()

    def _record(self, writer: AvroType, reader: AvroType, where: str) -> _Resolution:
        known = self._records.get((writer, reader))
        if known is not None:
            return known
        resolution = self._records[writer, reader] = _Resolution()
        written = {each.name for each in writer.fields}
        read = {each.name: each.type for each in reader.fields}
        for each in writer.fields:
            if each.name in read:
                resolution.parts.append(self.resolve(each.type, read[each.name], _below(where, each.name)))
        missing = [each for each in reader.fields if each.name not in written and not has_usable_default(each)]
        if missing:
            # What resolved to this pair meanwhile keeps the open answer, as it does in Avro.
            self._records[writer, reader] = resolution = _Resolution(_cannot_be_filled(missing[0], where))
        return resolution

    def branch(self, writer: AvroType, union: AvroType, where: str) -> AvroType | None:
        same = [branch for branch in union.parts if branch.kind == writer.kind]
        if writer.kind not in _NAMED:
            promotions = _PROMOTIONS.get(writer.kind, frozenset())
            return next(iter(same or [branch for branch in union.parts if branch.kind in promotions]), None)
        alike: AvroType | None = None
        for branch in same:
            if branch.name == writer.name:
                return branch
            if writer.kind == "record" and not self._record(writer, branch, where).fails_at_once:
                alike = branch if alike is None or branch.short_name == writer.short_name else alike
        return alike


def _are_alike(writer: AvroType, reader: AvroType, seen: set[tuple[AvroType, AvroType]]) -> bool:
    if writer.kind != reader.kind or writer.short_name != reader.short_name or (writer, reader) in seen:
        return (writer, reader) in seen
    seen.add((writer, reader))
    if (writer.size, writer.symbols, len(writer.parts)) != (reader.size, reader.symbols, len(reader.parts)):
        return False
    if [each.name for each in writer.fields] != [each.name for each in reader.fields]:
        return False
    pairs = [*zip(writer.parts, reader.parts, strict=True)]
    pairs += [(old.type, new.type) for old, new in zip(writer.fields, reader.fields, strict=True)]
    return all(_are_alike(old, new, seen) for old, new in pairs)


def _mismatch(writer: AvroType, reader: AvroType, where: str) -> _Resolution:
    place = f"{where}: " if where else ""
    return _Resolution(f"{place}found {_shown(writer)}, expecting {_shown(reader)}")


def _shown(kind: AvroType) -> str:
    if kind.kind == "union":
        return f"a union of {', '.join(_shown(branch) for branch in kind.parts) or 'nothing'}"
    size = f" of {kind.size} bytes" if kind.kind == "fixed" else ""
    return f"{kind.kind} {kind.name}{size}" if kind.name else kind.kind


def _cannot_be_filled(field: AvroField, where: str) -> str:
    kind = field.type.name or field.type.kind
    lack = f"its default {json.dumps(field.default)[:80]} is no {kind}" if field.has_default else "has no default"
    return f"the field {_below(where, field.name)} is not written and {lack}"


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
