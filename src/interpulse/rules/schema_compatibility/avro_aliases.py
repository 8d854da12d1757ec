"""The aliases of a reader: what it calls by other names is renamed in the writer before the two are compared."""

from __future__ import annotations

from dataclasses import replace

from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType

__all__ = ["AliasConflict", "with_aliases_of"]


class AliasConflict(ValueError):
    """The reader's aliases give two fields of the writer one name."""


def with_aliases_of(reader: AvroType, writer: AvroType) -> AvroType:
    """``writer`` as ``reader`` names it: records, enums and fixed types, then the fields of records of equal name."""
    types: dict[str, str] = {}
    fields: dict[str, dict[str, str]] = {}
    _collect(reader, types, fields, set())
    return _Renaming(types, fields).apply(writer) if types or fields else writer


def _collect(kind: AvroType, types: dict[str, str], fields: dict[str, dict[str, str]], seen: set[AvroType]) -> None:
    if kind in seen:
        return
    seen.add(kind)
    types.update(dict.fromkeys(kind.aliases, kind.name))
    for each in kind.fields:
        if each.aliases:
            fields.setdefault(kind.name, {}).update(dict.fromkeys(each.aliases, each.name))
        _collect(each.type, types, fields, seen)
    for part in kind.parts:
        _collect(part, types, fields, seen)


class _Renaming:
    """Copies a tree under other names; a record that holds itself is copied once.

    Aliases and defaults are left out: nothing asks for those of a writer.
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
        given: set[str] = set()
        for each in kind.fields:
            known = renamed.get(each.name, each.name)
            if known in given:
                raise AliasConflict(f"the aliases of {name} give two of its fields the name {known}")
            given.add(known)
            copy.fields.append(AvroField(known, self.apply(each.type)))
        return copy
