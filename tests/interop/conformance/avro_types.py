"""Avro types and values as hypothesis draws them, and later definitions of the same types.

A type is Avro's JSON with every named type spelled out wherever it stands; ``rendered`` makes a definition of it.
Values have the JSON of ``SchemaConformance.java``.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

Draw: TypeAlias = Callable[..., Any]
Type: TypeAlias = Any

LEAVES: Final[list[Type]] = [
    *("boolean", "int", "long", "float", "double", "bytes", "string"),
    {"type": "string", "avro.java.string": "String"},
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
    {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2},
]
INTS: Final = st.integers(-(2**31), 2**31 - 1)
LONGS: Final = st.integers(-(2**63), 2**63 - 1) | st.integers(-1000, 1000)
DAYS: Final = st.integers(-719_162, 2_932_896)
MICROS: Final = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
DEPTH: Final = 3


@dataclass
class _Names:
    """Names of one definition; ``known`` has the named types that are complete, for use in another place."""

    numbers: Iterator[int] = field(default_factory=itertools.count)
    known: list[Type] = field(default_factory=list)

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers)}"


def kind_of(kind: Type) -> str:
    if isinstance(kind, list):
        return "union"
    return str(kind["type"]) if isinstance(kind, dict) else str(kind)


def identity(kind: Type) -> str:
    """What no two branches of a union have in common."""
    return str(kind["name"]) if isinstance(kind, dict) and "name" in kind else kind_of(kind)


# ---- Types


@st.composite
def records(draw: Draw) -> Type:
    names = _Names()
    record = draw(_records(names, DEPTH))
    namespace = draw(st.sampled_from(["", "a.b"]))
    return {**record, "namespace": namespace} if namespace else record


@st.composite
def _types(draw: Draw, names: _Names, depth: int) -> Type:
    makers = {
        "leaf": lambda: st.sampled_from(LEAVES),
        "known": lambda: st.sampled_from(names.known) if names.known else st.sampled_from(LEAVES),
        "enum": lambda: _enums(names),
        "fixed": lambda: _fixed(names),
        "union": lambda: _unions(names, depth),
        "array": lambda: _types(names, depth - 1).map(_array_of),
        "map": lambda: _types(names, depth - 1).map(lambda item: {"type": "map", "values": item}),
        "record": lambda: _records(names, depth - 1),
    }
    choices = [*makers, "leaf", "leaf", "union"] if depth > 0 else ["leaf", "leaf", "leaf", "known", "enum", "fixed"]
    return draw(makers[draw(st.sampled_from(choices))]())


@st.composite
def _records(draw: Draw, names: _Names, depth: int) -> Type:
    name = names.fresh("R")
    fields = [{"name": names.fresh("f"), "type": draw(_types(names, depth))} for _ in range(draw(st.integers(1, 4)))]
    for item in fields:
        if draw(st.integers(0, 2)) == 0:
            item["default"] = spelled(item["type"], draw(values(item["type"])))
    record = {"type": "record", "name": name, "fields": fields}
    names.known.append(record)
    return record


def _array_of(item: Type) -> Type:
    """Arrays of plain doubles are left out: Java's generic reader of Avro 1.12.0 keeps them as floats."""
    return {"type": "array", "items": ["double"] if item == "double" else item}


@st.composite
def _enums(draw: Draw, names: _Names) -> Type:
    prefix = draw(st.sampled_from(["E", "c.E"]))
    kind = {"type": "enum", "name": names.fresh(prefix), "symbols": ["A", "B", "C"][: draw(st.integers(1, 3))]}
    names.known.append(kind)
    return kind


@st.composite
def _fixed(draw: Draw, names: _Names) -> Type:
    kind = {"type": "fixed", "name": names.fresh("F"), "size": draw(st.integers(1, 9))}
    if draw(st.booleans()):
        # Of 9 bytes at most 21 digits: a greater precision is no logical type, and neither is the scale.
        kind |= {"logicalType": "decimal", "precision": draw(st.integers(1, 12)), "scale": draw(st.integers(0, 4))}
    names.known.append(kind)
    return kind


@st.composite
def _unions(draw: Draw, names: _Names, depth: int) -> Type:
    members = [draw(_types(names, depth - 1)) for _ in range(draw(st.integers(1, 4)))]
    return as_union(draw(st.permutations(["null", *members] if draw(st.booleans()) else members)))


def as_union(branches: list[Type]) -> list[Type]:
    """The same without unions in it, and without what a union cannot hold twice."""
    flat = [branch for kind in branches for branch in (kind if isinstance(kind, list) else [kind])]
    return list({identity(branch): branch for branch in flat}.values())


def with_one_unit(kind: Type) -> Type:
    """The same with times in microseconds and decimals of two digits behind the point.

    Where a later definition has another unit the data source keeps the moment, and Java its number.
    """
    if isinstance(kind, list):
        return [with_one_unit(branch) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    shown = {key: with_one_unit(part) if key in ("items", "values") else part for key, part in kind.items()}
    if "logicalType" in shown and "timestamp" in shown["logicalType"]:
        shown["logicalType"] = shown["logicalType"].replace("millis", "micros")
    if "scale" in shown:
        shown["scale"] = 2
    if "fields" in shown:
        shown["fields"] = [{**item, "type": with_one_unit(item["type"])} for item in shown["fields"]]
    return shown


def without_defaults(kind: Type) -> Type:
    """The same without defaults of fields: some of those that are drawn are taken by Pulsar's parser alone."""
    if isinstance(kind, list):
        return [without_defaults(branch) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    shown = {key: without_defaults(part) if key in ("items", "values") else part for key, part in kind.items()}
    if "fields" in shown:
        shown["fields"] = [
            {key: without_defaults(part) if key == "type" else part for key, part in item.items() if key != "default"}
            for item in shown["fields"]
        ]
    return shown


def rendered(kind: Type, known: set[str] | None = None) -> Type:
    """The definition: a named type stands for itself after its first place."""
    names = set() if known is None else known
    if isinstance(kind, list):
        return [rendered(branch, names) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    if "name" in kind:
        if kind["name"] in names:
            return kind["name"]
        names.add(kind["name"])
    shown = dict(kind)
    for key in ("items", "values"):
        if key in shown:
            shown[key] = rendered(shown[key], names)
    if "fields" in shown:
        shown["fields"] = [{**item, "type": rendered(item["type"], names)} for item in shown["fields"]]
    return shown


# ---- Values


@st.composite
def values(draw: Draw, kind: Type) -> Any:
    match kind_of(kind):
        case "union":
            index = draw(st.integers(0, len(kind) - 1))
            return None if kind[index] == "null" else {str(index): draw(values(kind[index]))}
        case "record":
            return {item["name"]: draw(values(item["type"])) for item in kind["fields"]}
        case "array":
            return draw(st.lists(values(kind["items"]), max_size=3))
        case "map":
            entries = draw(st.dictionaries(st.text(max_size=3), values(kind["values"]), max_size=2))
            return [[key, value] for key, value in entries.items()]
        case "enum":
            return draw(st.sampled_from(kind["symbols"]))
        case "null":
            return None
        case _:
            return draw(_leaf_values(kind))


def _leaf_values(kind: Type) -> st.SearchStrategy[Any]:
    logical = kind.get("logicalType", "") if isinstance(kind, dict) else ""
    if logical == "date":
        return DAYS
    if "timestamp" in logical:
        return MICROS if logical.endswith("micros") else MICROS.map(lambda micros: micros // 1000)
    if logical == "decimal":
        return _decimals(kind)
    if kind_of(kind) == "fixed":
        return st.binary(min_size=kind["size"], max_size=kind["size"]).map(lambda raw: raw.decode("latin-1"))
    return _PLAIN[kind_of(kind)]


_PLAIN: Final[dict[str, st.SearchStrategy[Any]]] = {
    "boolean": st.booleans(),
    "int": INTS,
    "long": LONGS,
    "float": st.floats(width=32, allow_nan=False).map(lambda number: bits(number, "f")),
    "double": (st.floats(allow_nan=False) | st.just(float("nan"))).map(lambda number: bits(number, "d")),
    "string": st.text(max_size=4),
    "bytes": st.binary(max_size=4).map(lambda raw: raw.decode("latin-1")),
}


def _decimals(kind: Type) -> st.SearchStrategy[str]:
    if kind_of(kind) == "fixed":
        return _small_numbers(kind["size"], kind["precision"])
    largest = 10 ** kind["precision"] - 1
    return st.integers(-largest, largest).map(_stored)


def _small_numbers(size: int, precision: int) -> st.SearchStrategy[str]:
    largest = min(10**precision, 1 << 8 * size - 1) - 1
    return st.integers(-largest, largest).map(
        lambda number: number.to_bytes(size, "big", signed=True).decode("latin-1")
    )


def _stored(number: int) -> str:
    bits_used = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits_used // 8 + 1, "big", signed=True).decode("latin-1")


def bits(number: float, layout: str) -> int:
    return int(struct.unpack(">i" if layout == "f" else ">q", struct.pack(f">{layout}", number))[0])


def number_of(value: int, layout: str) -> float:
    return float(struct.unpack(f">{layout}", struct.pack(">i" if layout == "f" else ">q", value))[0])


def spelled(kind: Type, value: Any) -> Any:
    """The value as a default in a definition; numbers that JSON does not have are 0."""
    match kind_of(kind):
        case "union":
            return None if value is None else spelled(kind[int(next(iter(value)))], next(iter(value.values())))
        case "record":
            given = {item["name"]: spelled(item["type"], value[item["name"]]) for item in kind["fields"]}
            lacking = {item["name"] for item in kind["fields"] if "default" in item}
            return {name: content for name, content in given.items() if name not in lacking}
        case "array":
            return [spelled(kind["items"], item) for item in value]
        case "map":
            return {key: spelled(kind["values"], item) for key, item in value}
        case "float" | "double":
            number = number_of(value, "f" if kind_of(kind) == "float" else "d")
            return number if abs(number) < float("inf") else 0
        case _:
            return value


# ---- Later definitions


_PROMOTED: Final[dict[str, list[Any]]] = {
    "int": ["long", "float", "double", {"type": "long", "logicalType": "timestamp-millis"}],
    "long": ["float", "double"],
    "float": ["double"],
    "string": ["bytes"],
    "bytes": ["string"],
}


@st.composite
def evolved(draw: Draw, kind: Type) -> Type:
    """A later definition of a type, mostly one that can read it."""
    return draw(_evolved(kind, {}, _Names(itertools.count(1000))))


def _rarely(draw: Draw, often: int = 8) -> bool:
    return bool(draw(st.integers(0, often)) == often)


@st.composite
def _evolved(draw: Draw, kind: Type, done: dict[str, Type], names: _Names) -> Type:
    name = kind.get("name") if isinstance(kind, dict) else None
    if name in done:
        return done[name]
    match kind_of(kind):
        case "union":
            later = draw(_evolved_union(kind, done, names))
        case "record":
            later = draw(_evolved_record(kind, done, names))
        case "array":
            later = _array_of(draw(_evolved(kind["items"], done, names)))
        case "map":
            later = {"type": "map", "values": draw(_evolved(kind["values"], done, names))}
        case "enum":
            later = draw(_renamed(_with_other_symbols(draw, kind), names))
        case "fixed":
            later = draw(_renamed({**kind, "size": kind["size"] + 1} if _rarely(draw, 15) else kind, names))
        case _:
            promoted = _PROMOTED.get(kind_of(kind), []) if not isinstance(kind, dict) else []
            later = draw(st.sampled_from(promoted)) if promoted and _rarely(draw, 2) else kind
    if name is not None:
        done[name] = later
    return later


@st.composite
def _renamed(draw: Draw, kind: Type, names: _Names) -> Type:
    if not _rarely(draw, 2):
        return kind
    namespace = kind["name"].rpartition(".")[0]
    later = {**kind, "name": names.fresh(f"{namespace}.N" if namespace else "N")}
    return {**later, "aliases": [kind["name"]]} if not _rarely(draw, 3) else later


def _with_other_symbols(draw: Draw, kind: Type) -> Type:
    symbols = draw(st.permutations([*kind["symbols"], "Z"]))[: draw(st.integers(1, 4))]
    later = {**kind, "symbols": symbols}
    return {**later, "default": draw(st.sampled_from(symbols))} if draw(st.booleans()) else later


@st.composite
def _evolved_record(draw: Draw, kind: Type, done: dict[str, Type], names: _Names) -> Type:
    fields = []
    for item in kind["fields"]:
        if _rarely(draw):
            continue
        later = {"name": item["name"], "type": draw(_rewrapped(draw(_evolved(item["type"], done, names))))}
        if _rarely(draw, 5):
            later |= {"name": names.fresh("g"), "aliases": [item["name"]]}
        fields.append(later)
    for _ in range(draw(st.integers(0, 2))):
        added = draw(_types(_Names(names.numbers), 2))
        fields.append({"name": names.fresh("h"), "type": added, "default": spelled(added, draw(values(added)))})
    if not fields or _rarely(draw, 30):
        fields.append({"name": names.fresh("h"), "type": "int"} | ({} if fields else {"default": 1}))
    later = {"type": "record", "name": kind["name"], "fields": draw(st.permutations(fields))}
    if "namespace" in kind and not _rarely(draw, 3):
        later["namespace"] = kind["namespace"]
    return draw(_renamed(later, names))


@st.composite
def _rewrapped(draw: Draw, kind: Type) -> Type:
    if not _rarely(draw, 3):
        return kind
    if isinstance(kind, list) and draw(st.booleans()):
        return draw(st.sampled_from(kind))
    return as_union(draw(st.permutations(["null", draw(st.sampled_from(LEAVES)), kind])))


@st.composite
def _evolved_union(draw: Draw, kind: Type, done: dict[str, Type], names: _Names) -> Type:
    branches = [draw(_evolved(branch, done, names)) for branch in kind]
    if _rarely(draw, 3):
        branches.append(draw(st.sampled_from(LEAVES)))
    if _rarely(draw, 3):
        branches = draw(st.permutations(branches))
    return as_union(branches[1:] if len(branches) > 1 and _rarely(draw) else branches)
