"""Classes of Java for JSON schemas, drawn by hypothesis: their source, their values, and both in Spark.

A value is JSON as ``checks/JsonConformance.java`` has it; its cell is what Arrow takes and gives for it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from hypothesis import strategies as st

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = Context(prec=38)
_MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}
_MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
MILLIS = st.integers(-62_135_596_800_000, 253_402_300_799_999).map(lambda millis: millis * 1000)
"""Moments of a class that has milliseconds."""
_TEXT = st.text(max_size=6) | st.sampled_from(["", "null", "NaN", "7", "true", "2024-02-03", 'ä"\\\n', "\U0001f600"])


@dataclass
class JavaType:
    """One type: its name in Java, its type in Avro without null, its values and their cells."""

    name: str
    avro: Any
    values: st.SearchStrategy[Any]
    cell: Callable[[Any], Any] = lambda value: value
    """Of a value that is not null."""

    annotation: str = ""
    declarations: list[str] = field(default_factory=list)
    """Of the classes that it is made of, inside the class around."""

    @property
    def is_primitive(self) -> bool:
        return self.name[0].islower() and "." not in self.name and self.name != "byte[]"

    @property
    def in_field(self) -> Any:
        """The type in Avro of a field of it: the client lets all but primitive ones be null."""
        return self.avro if self.is_primitive else ["null", self.avro]

    def cell_of(self, value: Any) -> Any:
        return None if value is None else self.cell(value)


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _local_moment(micros: int) -> datetime:
    return _moment(micros).replace(tzinfo=None)


def _day(days: int) -> date:
    return _EPOCH.date() + timedelta(days=days)


def _raw(text: str) -> bytes:
    return text.encode("latin-1")


def _of_bits(layout: str) -> Callable[[int], float]:
    return lambda bits: float(struct.unpack(layout[0] + layout[2], struct.pack(layout[:2], bits))[0])


def _bits(layout: str, width: int) -> st.SearchStrategy[int]:
    numbers = st.floats(width=width, allow_nan=False) | st.sampled_from([float("inf"), -float("inf"), float("nan")])  # type: ignore[arg-type]
    return numbers.map(lambda number: struct.unpack(layout[:2], struct.pack(layout[0] + layout[2], number))[0])


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _int_class(name: str) -> Any:
    return {"type": "int", "java-class": f"java.lang.{name}"}


def _local(logical: str) -> Any:
    return {"type": "long", "logicalType": logical}


def _record(java_class: str) -> Any:
    namespace, _, name = java_class.rpartition(".")
    return {"type": "record", "name": name, "namespace": namespace, "fields": []}


_DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(number).scaleb(-9, _EXACT))

SINGLE_TYPES = [
    JavaType("boolean", "boolean", st.booleans()),
    JavaType("Boolean", "boolean", st.booleans()),
    JavaType("byte", _int_class("Byte"), _signed(8)),
    JavaType("short", _int_class("Short"), _signed(16)),
    JavaType("char", _int_class("Character"), st.integers(0, 0xD7FF)),
    JavaType("int", "int", _signed(32)),
    JavaType("Integer", "int", _signed(32)),
    JavaType("long", "long", _signed(64)),
    JavaType("Long", "long", _signed(64)),
    JavaType("float", "float", _bits(">if", 32), _of_bits(">if")),
    JavaType("Float", "float", _bits(">if", 32), _of_bits(">if")),
    JavaType("double", "double", _bits(">qd", 64), _of_bits(">qd")),
    JavaType("Double", "double", _bits(">qd", 64), _of_bits(">qd")),
    JavaType("String", "string", _TEXT),
    JavaType(
        "byte[]",
        "bytes",
        st.binary(max_size=5).map(lambda raw: raw.decode("latin-1")),
        lambda text: text.encode("latin-1"),
    ),
    JavaType("java.math.BigDecimal", "string", _DECIMALS.map(str)),
    JavaType("java.math.BigInteger", "string", st.integers(-(10**40), 10**40).map(str)),
    JavaType("java.util.UUID", "string", st.uuids().map(str)),
    JavaType("java.time.Instant", _local("timestamp-micros"), _MICROS, _moment),
    JavaType("java.time.ZonedDateTime", _record("java.time.ZonedDateTime"), _MICROS, _moment),
    JavaType("java.time.OffsetDateTime", _record("java.time.OffsetDateTime"), _MICROS, _moment),
    JavaType("java.util.Date", _record("java.util.Date"), MILLIS, _moment),
    JavaType("java.sql.Timestamp", _record("java.sql.Timestamp"), MILLIS, _moment),
    JavaType(
        "java.time.LocalDateTime",
        _local("local-timestamp-millis"),
        _MICROS,
        lambda micros: _moment(micros).replace(tzinfo=None),
    ),
    JavaType(
        "java.time.LocalDate",
        {"type": "int", "logicalType": "date"},
        st.integers(-719_162, 2_932_896),
        lambda days: date(1970, 1, 1) + timedelta(days=days),
    ),
    JavaType("java.time.LocalTime", {"type": "int", "logicalType": "time-millis"}, st.integers(0, 86_399_999)),
]
MONEY = JavaType(
    "java.math.BigDecimal",
    _MONEY,
    _DECIMALS.map(lambda number: format(number, "f")),
    Decimal,
    annotation=f"@org.apache.avro.reflect.AvroSchema({json.dumps(json.dumps(_MONEY))}) ",
)
_BOXED = [each for each in SINGLE_TYPES if not each.is_primitive]
_ENUM = ("RED", "GREEN", "BLUE")


@dataclass
class JavaClass:
    """A class with some fields. ``definition`` is what the client makes of it, but for the names of its parts."""

    name: str
    type: JavaType
    source: str

    @property
    def definition(self) -> Any:
        return {**self.type.avro, "name": self.name}


class _Naming:
    """Names for the parts of one class."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._count = 0

    def next(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


@st.composite
def classes(draw: st.DrawFn, name: str) -> JavaClass:
    """A class of up to five fields, with lists, maps, enumerations and classes in it."""
    made = _class_type(draw, name, _Naming(name), depth=2)
    return JavaClass(name, made, made.declarations[-1].replace("public static class", "public class", 1))


def _class_type(draw: st.DrawFn, name: str, naming: _Naming, depth: int) -> JavaType:
    fields = {f"f{index}": _any_type(draw, naming, depth) for index in range(draw(st.integers(1, 5)))}
    values = {key: each.values if each.is_primitive else st.none() | each.values for key, each in fields.items()}
    avro = [
        {"name": key, "type": each.in_field, **({} if each.is_primitive else {"default": None})}
        for key, each in fields.items()
    ]
    inner = [line for each in fields.values() for line in each.declarations]
    lines = [*inner, *(f"{each.annotation}public {each.name} {key};" for key, each in fields.items())]
    record = {"type": "record", "name": name, "namespace": naming.owner, "fields": avro}
    return JavaType(
        name,
        record,
        st.fixed_dictionaries(values),
        lambda value: {key: each.cell_of(value[key]) for key, each in fields.items()},
        declarations=["public static class {} {{ {} }}".format(name, " ".join(lines))],
    )


def _any_type(draw: st.DrawFn, naming: _Naming, depth: int) -> JavaType:
    kinds = ["single"] * 6 + ["money", "enum"] + (["list", "map", "pairs", "class"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "money":
        return MONEY
    if kind == "enum":
        return _enum(naming)
    if kind == "class":
        return _class_type(draw, naming.next("N"), naming, depth - 1)
    if kind == "single":
        return draw(st.sampled_from(SINGLE_TYPES))
    inner = _element(draw, naming, depth - 1)
    return {"list": _list, "map": _map, "pairs": _pairs_of(draw, naming)}[kind](inner)


def _element(draw: st.DrawFn, naming: _Naming, depth: int) -> JavaType:
    """A type that may stand in a list or map: neither primitive nor annotated."""
    made = _any_type(draw, naming, depth)
    return draw(st.sampled_from(_BOXED)) if made.is_primitive or made.annotation else made


def _enum(naming: _Naming) -> JavaType:
    name = naming.next("E")
    avro = {"type": "enum", "name": name, "namespace": naming.owner, "symbols": [*_ENUM]}
    lines = ["public enum {} {{ {} }}".format(name, ", ".join(_ENUM))]
    return JavaType(name, avro, st.sampled_from(_ENUM), declarations=lines)


def _list(inner: JavaType) -> JavaType:
    avro = {"type": "array", "items": inner.avro, "java-class": "java.util.List"}
    values = st.lists(inner.values, max_size=3)
    return JavaType(
        f"java.util.List<{inner.name}>",
        avro,
        values,
        lambda items: [inner.cell(item) for item in items],
        declarations=inner.declarations,
    )


def _map(inner: JavaType) -> JavaType:
    return JavaType(
        f"java.util.Map<String, {inner.name}>",
        {"type": "map", "values": inner.avro},
        st.dictionaries(_TEXT, inner.values, max_size=3).map(lambda found: [[*pair] for pair in found.items()]),
        lambda pairs: [(key, inner.cell(value)) for key, value in pairs],
        declarations=inner.declarations,
    )


def _pairs_of(draw: st.DrawFn, naming: _Naming) -> Callable[[JavaType], JavaType]:
    numbers = [each for each in SINGLE_TYPES if each.name in ("Integer", "Long")]
    key = draw(st.sampled_from([*numbers, _enum(naming)]))

    def made(inner: JavaType) -> JavaType:
        fields = [{"name": "key", "type": key.avro}, {"name": "value", "type": inner.avro}]
        pair = {"type": "record", "name": naming.next("Pair"), "namespace": "org.apache.avro.reflect", "fields": fields}
        values = st.dictionaries(key.values, inner.values, max_size=3)
        return JavaType(
            f"java.util.Map<{key.name}, {inner.name}>",
            {"type": "array", "items": pair, "java-class": "java.util.Map"},
            values.map(lambda found: [[*entry] for entry in found.items()]),
            lambda pairs: [{"key": key.cell(name), "value": inner.cell(value)} for name, value in pairs],
            declarations=key.declarations + inner.declarations,
        )

    return made
