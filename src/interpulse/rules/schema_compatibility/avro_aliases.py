"""Aliases of a reader: the writer's names are replaced by the reader's before the two are compared."""

from __future__ import annotations

from dataclasses import replace

from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType


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
        copy = replace(kind, name=name, aliases=(), fields=[])
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
