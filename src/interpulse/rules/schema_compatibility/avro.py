"""Compatibility of two Avro types, as the validators of Avro 1.12 decide it.

They are less strict than the resolution rules of Avro's specification, and Apache Pulsar uses them:

* names of records do not count; those of enums and fixed types do, without their namespace;
* symbols of enums may be added and removed, with or without a default;
* a record selects its branch of a reader's union by full name, otherwise by structure: the first branch whose fields do
  not fail immediately, preferably one with the same short name;
* all other branches of a reader's union are selected by kind first and by promotion second.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Final

from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType, has_usable_default

_PROMOTIONS: Final = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
_NAMED: Final = frozenset({"record", "enum", "fixed"})


@dataclasses.dataclass(slots=True, eq=False)
class _Resolution:
    """Resolution of one pair of types: a failure with a reason, or a dependency on parts.

    Recursive types make cycles.
    """

    reason: str = ""
    parts: list[_Resolution] = dataclasses.field(default_factory=list)

    @property
    def fails_at_once(self) -> bool:
        return bool(self.reason) or any(part.reason for part in self.parts)


def find_unreadable(writer: AvroType, reader: AvroType) -> str | None:
    """Return the reason why data of ``writer`` cannot be read with ``reader``; None if it can."""
    try:
        written = with_aliases_of(reader, writer)
        return next(_reasons(_Resolver().resolve(written, reader, "")), None)
    except AliasConflict as error:
        return str(error)
    except RecursionError:  # references by name nest types deeper than their definitions
        return "the two are nested too deeply to be compared"


def find_branch(writer: AvroType, union: AvroType) -> AvroType | None:
    """Return the branch of a reader's union for a writer's type that is not a union; None if there is none."""
    return _Resolver().branch(writer, union, "")


def promotes(writer: AvroType, reader: AvroType) -> bool:
    """Return True if a value of one kind can be read as the other, wider kind."""
    return reader.kind in _PROMOTIONS.get(writer.kind, ())


def are_alike(writer: AvroType, reader: AvroType) -> bool:
    """Return True for types of equal structure. A union of one is read branch by branch with the other."""
    return _are_alike(writer, reader, set())


def _reasons(root: _Resolution) -> Iterator[str]:
    seen, waiting = {root}, [root]
    while waiting:
        resolution = waiting.pop()
        if resolution.reason:
            yield resolution.reason
        fresh = [part for part in resolution.parts if part not in seen]
        seen.update(fresh)
        waiting += reversed(fresh)


class _Resolver:
    """Resolver of one pair of definitions. Every pair of records in it is resolved once."""

    def __init__(self) -> None:
        self._records: dict[tuple[AvroType, AvroType], _Resolution] = {}

    def resolve(self, writer: AvroType, reader: AvroType, where: str) -> _Resolution:
        if writer.kind == "union":
            parts = [] if are_alike(writer, reader) else writer.parts
            return _Resolution(parts=[self.resolve(branch, reader, where) for branch in parts])
        if writer.kind == reader.kind:
            return self._same_kind(writer, reader, where)
        if reader.kind == "union":
            branch = self.branch(writer, reader, where)
            return _mismatch(writer, reader, where) if branch is None else self.resolve(writer, branch, where)
        return _Resolution() if promotes(writer, reader) else _mismatch(writer, reader, where)

    def _same_kind(self, writer: AvroType, reader: AvroType, where: str) -> _Resolution:
        if writer.kind == "record":
            return self._record(writer, reader, where)
        if writer.parts:
            return _Resolution(parts=[self.resolve(writer.parts[0], reader.parts[0], f"{where}[]")])
        if writer.short_name != reader.short_name or writer.size != reader.size:
            return _mismatch(writer, reader, where)
        return _Resolution()

    def _record(self, writer: AvroType, reader: AvroType, where: str) -> _Resolution:
        resolved = self._records.get((writer, reader))
        if resolved is not None:
            return resolved
        resolution = self._records[writer, reader] = _Resolution()
        written = {field.name for field in writer.fields}
        read = {field.name: field.type for field in reader.fields}
        for written_field in writer.fields:
            if written_field.name in read:
                resolution.parts.append(
                    self.resolve(written_field.type, read[written_field.name], _below(where, written_field.name))
                )
        missing = [field for field in reader.fields if field.name not in written and not has_usable_default(field)]
        if missing:
            # Pairs that depend on this one keep the preliminary answer, as in Avro.
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
    if [field.name for field in writer.fields] != [field.name for field in reader.fields]:
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


class AliasConflict(ValueError):
    """Conflict of the reader's aliases: they give two fields of the writer one name."""


def with_aliases_of(reader: AvroType, writer: AvroType) -> AvroType:
    """Return ``writer`` with the names of ``reader``: records, enums and fixed types, then fields of equal records."""
    types: dict[str, str] = {}
    fields: dict[str, dict[str, str]] = {}
    _collect(reader, types, fields, set())
    return _Renaming(types, fields).apply(writer) if types or fields else writer


def _collect(kind: AvroType, types: dict[str, str], fields: dict[str, dict[str, str]], seen: set[AvroType]) -> None:
    if kind in seen:
        return
    seen.add(kind)
    types.update(dict.fromkeys(kind.aliases, kind.name))
    for field in kind.fields:
        if field.aliases:
            fields.setdefault(kind.name, {}).update(dict.fromkeys(field.aliases, field.name))
        _collect(field.type, types, fields, seen)
    for part in kind.parts:
        _collect(part, types, fields, seen)


class _Renaming:
    """Copy of a tree under other names. A recursive record is copied once.

    Aliases and defaults are omitted, because those of a writer are not used.
    """

    def __init__(self, types: dict[str, str], fields: dict[str, dict[str, str]]) -> None:
        self._types = types
        self._fields = fields
        self._copies: dict[AvroType, AvroType] = {}

    def apply(self, kind: AvroType) -> AvroType:
        if kind in self._copies:
            return self._copies[kind]
        name = self._types.get(kind.name, kind.name)
        copy = dataclasses.replace(kind, name=name, aliases=(), fields=[])
        self._copies[kind] = copy
        copy.parts = [self.apply(part) for part in kind.parts]
        renamed = self._fields.get(name, {})
        names: set[str] = set()
        for field in kind.fields:
            renamed_field = renamed.get(field.name, field.name)
            if renamed_field in names:
                raise AliasConflict(f"the aliases of {name} give two of its fields the name {renamed_field}")
            names.add(renamed_field)
            copy.fields.append(AvroField(renamed_field, self.apply(field.type)))
        return copy
