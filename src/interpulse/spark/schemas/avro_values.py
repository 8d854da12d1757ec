"""Values of Avro: as fastavro reads and writes them, as Arrow takes them, and the defaults of fields.

The `WireForm` makes the branch of a union known instead of guessed: each branch of a union of several types is wrapped
in a record with one field, ``member0``, ``member1``.. as in Spark's columns. Such a record has the bytes of its only
field; fastavro reads and writes it as ``{"member1": value}``. Logical types are removed: times are numbers, decimals
are bytes. Symbols of enums are their numbers, where fastavro takes -1 for the last one. A top-level type that is no
record becomes one with the field ``value``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import MAX_PREC, Context, Decimal
from functools import partial
from typing import Any, Final, TypeAlias

from interpulse.model.errors import InvalidSchemaDefinition
from interpulse.rules.schema_compatibility.avro_types import AvroField, AvroType, parse_avro
from interpulse.spark.options.option import OptionError
from interpulse.spark.schemas.avro_columns import WIDE_NUMBERS, is_logical

Shape: TypeAlias = Callable[[Any], Any]
"""Conversion of one value. Raises ValueError for a value that does not fit. None stands for no conversion."""

DAYS: Final = (-719_162, 2_932_896)
MICROS: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Smallest and largest time of Python's calendar, from year 1 to year 9999."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = Context(prec=MAX_PREC)


class Unfit(ValueError):
    """A value that does not fit its type, with its column."""

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"column {'.'.join(self.path)}: {self.reason}" if self.path else self.reason


def below(name: str, error: Exception) -> Unfit:
    """Return the same error one level up, in the column ``name``."""
    return Unfit(error.reason, (name, *error.path)) if isinstance(error, Unfit) else Unfit(str(error), (name,))


def in_column(name: str, convert: Shape) -> Shape:
    """Return the same conversion for values of the column ``name``, which its errors name."""

    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except Unfit as error:
            raise below(name, error) from None

    return converted


def logical_of(kind: AvroType) -> str:
    """Return the logical type; the empty string for none and for one that has no type of Spark."""
    applies = kind.logical and is_logical({"type": kind.kind, "size": kind.size, **kind.logical})
    return str(kind.logical["logicalType"]) if applies else ""


def reading_leaf(written: AvroType, wanted: AvroType) -> Shape | None:
    """Return the shape that turns a value stored as ``written`` into one of ``wanted`` for Arrow.

    Times and decimals keep their meaning: where both types have a unit or a scale, that of the writer counts.
    """
    logical, origin = logical_of(wanted), logical_of(written)
    if logical == "decimal":
        scale = written.logical.get("scale", 0) if origin == "decimal" else wanted.logical.get("scale", 0)
        return partial(_decimal, scale, wanted.logical["precision"], wanted.logical.get("scale", 0))
    if logical == "date":
        return partial(_within, 1, DAYS, "days")
    unit = origin if "timestamp" in origin else logical
    if logical and unit.endswith("millis"):
        return partial(_within, 1000, MICROS, "milliseconds")
    return partial(_within, 1, MICROS, "microseconds") if logical else None


def _decimal(scale: int, precision_max: int, scale_max: int, stored: bytes) -> Decimal:
    unscaled = int.from_bytes(stored, "big", signed=True)
    value = Decimal(unscaled).scaleb(-scale, _EXACT)
    fitting = unscaled * 10**scale_max // 10**scale
    if abs(fitting) >= 10**precision_max or fitting * 10**scale != unscaled * 10**scale_max:
        raise ValueError(f"{value} does not fit DECIMAL({precision_max},{scale_max})")
    return value


def _within(factor: int, limits: tuple[int, int], unit: str, ticks: int) -> int:
    if not limits[0] <= ticks * factor <= limits[1]:
        raise ValueError(f"{ticks} {unit} from 1970 are before the year 1 or after the year 9999")
    return ticks * factor


def writing_leaf(kind: AvroType) -> Shape | None:
    """Return the shape that turns a value of Arrow into what Avro stores."""
    logical = logical_of(kind)
    if logical == "decimal":
        return partial(_stored_decimal, kind.logical.get("scale", 0), kind.size if kind.kind == "fixed" else None)
    if logical == "date":
        return lambda day: (day - _EPOCH.date()).days
    tick = timedelta(milliseconds=1) if logical.endswith("millis") else timedelta(microseconds=1)
    return partial(_ticks, tick) if logical else None


def _stored_decimal(scale: int, size: int | None, value: Decimal) -> bytes:
    unscaled = int(value.scaleb(scale, _EXACT))
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return unscaled.to_bytes(bits // 8 + 1 if size is None else size, "big", signed=True)


def _ticks(tick: timedelta, value: datetime) -> int:
    return ((value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - _EPOCH) // tick


VALUE: Final = "value"
"""Field of a top-level type that is no record."""


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
    wide = WIDE_NUMBERS.get(frozenset(member.kind for member in members)) if len(members) == 2 else None
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
            case "fixed":
                return {"type": "fixed", "name": self._named(kind), "size": kind.size}
            case "record":
                name = self._named(kind)
                fields = [{"name": field.name, "type": self._form(field.type)} for field in kind.fields]
                return {"type": "record", "name": name, "fields": fields}
            case _:
                return _stored_kind(kind)

    def _named(self, kind: AvroType) -> str:
        return self._names.setdefault(kind, f"Named{len(self._names)}")

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


_NUMBERS: Final = {"int": 31, "long": 63}
_SPELLED_AS: Final = {"null": type(None), "boolean": bool, "string": str, "bytes": str, "fixed": str}


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
    if kind.kind in ("int", "long", "float", "double"):
        return isinstance(spelled, int | float) and not isinstance(spelled, bool)
    return isinstance(spelled, _SPELLED_AS.get(kind.kind, object))


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
