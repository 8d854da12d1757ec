"""Cases by hand: each row of Avro's resolution rules, and where its validators leave them."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from tests.schema_pairs.cases import Case, Schema, array, avro, enum, fixed, fld, mapping, pair, record

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
B = record(fld("int", "b"), name="B")
C = record(fld("int", "b"), fld("int", "c"), name="C")

# name: (old type of the field f, its new type); each is asked both ways, BACKWARD and FORWARD
FIELDS: dict[str, tuple[Any, Any]] = {
    "string-java": ("string", {"type": "string", "avro.java.string": "String"}),
    "logical": ("int", {"type": "int", "logicalType": "date"}),
    "decimal": ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "bytes"),
    "nullable": ("int", ["null", "int"]),
    "nullable-swapped": (["null", "int"], ["int", "null"]),
    "nullable-promoted": ("int", ["null", "long"]),
    "union-promoted": (["null", "int"], ["null", "long"]),
    "union-int-float": ("int", ["null", "float"]),
    "union-long-float": ("long", ["null", "float"]),
    "union-float-double": ("float", ["null", "double"]),
    "union-string-bytes": ("string", ["null", "bytes"]),
    "union-shrunk": (["null", "int", "string"], ["null", "int"]),
    "union-of-one": ("int", ["int"]),
    "union-empty": ([], "int"),
    "union-none-fits": ("boolean", ["null", "int"]),
    "array-items": (array("int"), array("long")),
    "array-nullable": (array("int"), array(["null", "int"])),
    "array-mismatch": (array("int"), array("string")),
    "array-in-union": (array("int"), ["null", array("long")]),
    "array-in-union-mismatch": (array("int"), ["null", array("string")]),
    "map-values": (mapping("int"), mapping("double")),
    "map-mismatch": (mapping("int"), mapping("boolean")),
    "map-array": (mapping("int"), array("int")),
    "enum-added": (enum("P"), enum("P", "Q")),
    "enum-replaced": (enum("P"), enum("Q")),
    "enum-default": (enum("P", "Q"), enum("P", default="P")),
    "enum-renamed": (enum("P"), enum("P", name="E2")),
    "enum-other-namespace": (enum("P"), enum("P", name="n.E")),
    "enum-string": (enum("P"), "string"),
    "enum-alias": (enum("P"), enum("P", name="E2", aliases=["E"])),
    "enum-in-union": (enum("P"), ["null", enum("P", "Q")]),
    "enum-in-union-renamed": (enum("P"), ["null", enum("P", name="E2")]),
    "enum-in-union-other-namespace": (enum("P"), ["null", enum("P", name="n.E")]),
    "enum-in-unions-other-symbols": (["null", enum("P")], ["null", enum("Q", name="n.E")]),
    "enum-in-unions-alike": (["null", enum("P")], ["null", enum("P", name="n.E")]),
    "fixed-size": (fixed(4), fixed(8)),
    "fixed-same": (fixed(4), fixed(4, doc="four")),
    "fixed-renamed": (fixed(4), fixed(4, name="X2")),
    "fixed-other-namespace": (fixed(4), fixed(4, name="n.X")),
    "fixed-alias": (fixed(4), fixed(4, name="X2", aliases=["X"])),
    "fixed-bytes": (fixed(4), "bytes"),
    "fixed-in-union-other-namespace": (fixed(4), ["null", fixed(4, name="n.X")]),
    "fixed-in-unions-alike": (["null", fixed(4)], ["null", fixed(4, name="n.X")]),
    "nested-renamed": (B, {**B, "name": "B2"}),
    "nested-added": (B, {**C, "name": "B"}),
    "nested-added-default": (B, record(fld("int", "b"), fld("int", "c", default=1), name="B")),
    "nested-map": (B, mapping("int")),
    "record-in-union-by-name": (B, [C, B]),
    "record-in-union-by-structure": ({**B, "name": "Z"}, ["null", {**B, "name": "Y"}]),
    "record-in-union-second-fits": ({**B, "name": "Z"}, [C, {**B, "name": "Y"}]),
    "record-in-union-short-name-wins": (
        record(fld("int", "b"), name="n.Z"),
        [record(name="Y"), record(fld("int", "b"), name="m.Z")],
    ),
    "record-in-union-none-fits": ({**B, "name": "Z"}, ["null", C]),
    "record-in-union-fails-deeper": (
        record(fld(array("int"), "b"), name="Z"),
        [record(fld(array("string"), "b"), name="Y"), record(fld(array("int"), "b"), name="X")],
    ),
    "record-in-union-fails-at-once": (
        record(fld("int", "b"), name="Z"),
        [record(fld("string", "b"), name="Y"), record(fld("int", "b"), name="X")],
    ),
    "records-in-unions": (["null", B], ["null", {**B, "name": "B2"}]),
    "records-in-unions-swapped": ([B, "null"], ["null", B]),
    "records-in-unions-grown": (["null", B], ["null", {**C, "name": "B"}]),
    "recursive": (["null", "A"], ["null", "A", "int"]),
    "recursive-not-any-more": (["null", "A"], ["null", "int"]),
    "recursive-list": (array("A"), array(["null", "A"])),
    "default-of-union-second": (["null", "int"], ["int", "null"]),
}

# name: (old definition, new definition)
WHOLE: dict[str, tuple[Any, Any]] = {
    "root-renamed": (record(fld("int")), record(fld("int"), name="Q")),
    "root-other-namespace": (record(fld("int")), record(fld("int"), namespace="n.m")),
    "root-java-nested": (record(fld("int"), name="n.Outer$A"), record(fld("int"), fld("int", "g"), name="n.Outer$A")),
    "root-error": (record(fld("int")), record(fld("int"), fld("int", "g"), type="error")),
    "field-added": (record(fld("int")), record(fld("int"), fld("int", "g"))),
    "field-added-default": (record(fld("int")), record(fld("int"), fld("int", "g", default=7))),
    "field-added-null": (record(fld("int")), record(fld("int"), fld(["null", "int"], "g", default=None))),
    "field-added-nullable": (record(fld("int")), record(fld("int"), fld(["null", "int"], "g"))),
    "field-added-second-branch": (record(fld("int")), record(fld("int"), fld(["null", "int"], "g", default=3))),
    "field-added-record-default": (
        record(fld("int")),
        record(fld("int"), fld(record(fld("int", "x", default=1), fld("int", "y"), name="D"), "g", default={"y": 2})),
    ),
    "field-added-enum-default": (record(fld("int")), record(fld("int"), fld(enum("P"), "g", default="P"))),
    "field-added-array-default": (record(fld("int")), record(fld("int"), fld(array("int"), "g", default=[1]))),
    "field-added-map-default": (record(fld("int")), record(fld("int"), fld(mapping("int"), "g", default={"a": 1}))),
    "field-added-bytes-default": (record(fld("int")), record(fld("int"), fld("bytes", "g", default="\u00ff"))),
    "field-added-fixed-default": (record(fld("int")), record(fld("int"), fld(fixed(1), "g", default="\u00ff"))),
    "field-added-double-default": (record(fld("int")), record(fld("int"), fld("double", "g", default=1))),
    "field-added-float-object": (record(fld("int")), record(fld("int"), fld({"type": "float"}, "g", default=0))),
    "field-added-wrong-default": (record(fld("int")), record(fld("int"), fld("int", "g", default="x"))),
    "field-added-wrong-null": (record(fld("int")), record(fld("int"), fld("int", "g", default=None))),
    "field-added-wrong-items": (record(fld("int")), record(fld("int"), fld(array("int"), "g", default=["x"]))),
    "field-wrong-default-known": (record(fld("int")), record(fld("int", default="x"))),
    "field-removed": (record(fld("int"), fld("int", "g")), record(fld("int"))),
    "field-removed-default": (record(fld("int"), fld("int", "g", default=1)), record(fld("int"))),
    "field-reordered": (record(fld("int"), fld("string", "g")), record(fld("string", "g"), fld("int"))),
    "field-renamed": (record(fld("int")), record(fld("int", "g"))),
    "field-renamed-alias": (record(fld("int")), record(fld("int", "g", aliases=["f"]))),
    "field-renamed-alias-other-record": (record(fld("int")), record(fld("int", "g", aliases=["f"]), name="Q")),
    "field-renamed-alias-record-alias": (
        record(fld("int")),
        record(fld("int", "g", aliases=["f"]), name="Q", aliases=["A"]),
    ),
    "field-renamed-alias-type": (record(fld("int")), record(fld("string", "g", aliases=["f"]))),
    "field-alias-conflict": (record(fld("int"), fld("int", "g")), record(fld("int", "g", aliases=["f"]))),
    "record-alias-in-namespace": (
        record(fld([record(fld("int", "b"), name="n.B"), "null"]), name="n.A"),
        record(fld([record(fld("long", "b"), name="n.B2", aliases=["B"]), "null"]), name="n.A"),
    ),
    "default-added": (record(fld("int")), record(fld("int", default=1))),
    "doc-only": (record(fld("int")), record(fld("int"), doc="what it is")),
    "order-only": (record(fld("int")), record(fld("int", order="descending"))),
    "property-only": (record(fld("int")), record(fld("int"), owner="us")),
    "empty-record": (record(), record(fld("int", default=1))),
    "record-enum": (record(fld("int")), enum("P")),
    "record-primitive": (record(fld("int")), "int"),
    "int-long": ("int", "long"),
    "array-root": (array("int"), array("long")),
    "mutual": (
        record(fld(["null", record(fld(["null", "A"], "a"), name="B")])),
        record(fld(["null", record(fld(["null", "A"], "a"), fld("int", "x", default=0), name="B")])),
    ),
    "mutual-broken": (
        record(fld(["null", record(fld(["null", "A"], "a"), name="B")])),
        record(fld(["null", record(fld(["null", "A"], "a"), fld("int", "x"), name="B")])),
    ),
    "same-name-twice-used": (
        record(fld(B), fld("B", "g")),
        record(fld({**C, "name": "B"}), fld("B", "g")),
    ),
}
# Defaults of a field that is not written, of all types: values that fit, and others that Java takes or stumbles over.
DEFAULTS: dict[str, tuple[Any, list[Any]]] = {
    "null": ("null", [None, 0]),
    "boolean": ("boolean", [True, "false", 0, None]),
    "int": ("int", [1.5, 2**31, True, "0", None]),
    "long": ("long", [1.0, 2**63, "0", None]),
    "float": ("float", ["0", "x", True, None]),
    "double": ("double", [" 1e3 ", "NaN", "0x1", "1 2", False, None]),
    "bytes": ("bytes", ["\u0100", 0, None]),
    "string": ("string", ["null", 0, [], None]),
    "enum": (enum("P", default="P"), ["Q", 0, None]),
    "fixed": (fixed(1), ["", "long", 0, None]),
    "array": (array("int"), [None, "x", {}, {"k": 1}, [1, "x"], {"k": "x"}]),
    "map": (mapping("int"), [None, "x", [], [1], {"k": "x"}]),
    "record": (C, [{}, [], "x", None, {"b": 1}, {"b": 1, "c": "x"}, {"b": 1, "c": 2, "d": "x"}]),
    "record-with-default": (record(fld("int", "b", default="x"), name="B"), [{}, {"b": 1}]),
    "union": (["null", "int"], ["null", "0", 1.5, True]),
    "union-without-branches": ([], [None]),
    "union-with-enum-first": ([enum("P"), "string", "null"], ["P", "Q", None]),
    "union-with-array": (["null", array("int")], ["x", ["x"], {"k": 1}]),
    "array-of-unions": (array(["null", "int"]), [[None, 1], ["x"]]),
}
GROWING = [
    record(fld("int", "a")),
    record(fld("int", "a"), fld("int", "b", default=1)),
    record(fld("int", "a"), fld("int", "b")),
]


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _promotions()
    for name, (old, new) in FIELDS.items():
        for way, (one, other) in (("", (old, new)), ("-back", (new, old))):
            yield Case(f"{name}{way}", (avro(record(fld(one))),), avro(record(fld(other))))
    for name, (old, new) in WHOLE.items():
        yield Case(name, (avro(old),), avro(new))
        yield Case(f"{name}-json", (avro(old, "JSON"),), avro(new, "JSON"))
    yield from _defaults()
    yield from _histories()
    yield from _other_types()
    yield from _key_values()
    yield from _protobuf_natives()


def _promotions() -> Iterator[Case]:
    for old, new in itertools.permutations(PRIMITIVES, 2):
        yield Case(f"promote-{old}-{new}", (avro(record(fld(old))),), avro(record(fld(new))))


def _defaults() -> Iterator[Case]:
    old = avro(record(fld("int")))
    for name, (kind, values) in DEFAULTS.items():
        for number, value in enumerate(values):
            new = avro(record(fld("int"), fld(kind, "g", default=value)))
            yield Case(f"default-of-{name}-{number}", (old,), new)
            if name not in ("float", "double"):  # some of their texts are refused at once
                yield Case(f"default-of-{name}-{number}-dropped", (new,), old)


def _histories() -> Iterator[Case]:
    for order in itertools.permutations(range(3)):
        *old, new = (avro(GROWING[index]) for index in order)
        yield Case(f"history-{''.join(map(str, order))}", tuple(old), new)
    mixed = (Schema("STRING", ""), avro(GROWING[0]))
    yield Case("history-of-types", mixed, avro(GROWING[1]))
    yield Case("history-empty", (), avro(GROWING[0]))


def _other_types() -> Iterator[Case]:
    text, number, proto = Schema("STRING", ""), Schema("INT32", ""), avro(GROWING[0], "PROTOBUF")
    yield Case("protobuf-grown", (proto,), avro(GROWING[2], "PROTOBUF"))
    yield Case("protobuf-retyped", (proto,), avro(record(fld("string", "a")), "PROTOBUF"))
    yield Case("string-same", (text,), text)
    yield Case("string-null", (text,), Schema("STRING", "null"))
    yield Case("string-int", (text,), number)
    yield Case("avro-json", (avro(GROWING[0]),), avro(GROWING[0], "JSON"))
    yield Case("avro-string", (avro(GROWING[0]),), text)
    yield Case("avro-broken", (avro(GROWING[0]),), Schema("AVRO", "{"))
    yield Case("avro-union-root", (avro(GROWING[0]),), avro(["null", "int"]))
    yield Case("json-union-root", (avro(["null", "int"], "JSON"),), avro(["null", "int", "string"], "JSON"))
    yield Case("int-with-text", (number,), Schema("INT32", "x"))


def _key_values() -> Iterator[Case]:
    text, one, grown, wide = Schema("STRING", ""), avro(GROWING[0]), avro(GROWING[1]), avro(GROWING[2])
    pairs = {
        "value-grown": (pair(text, one), pair(text, grown)),
        "value-broken": (pair(text, one), pair(text, wide)),
        "key-grown": (pair(one, text), pair(grown, text)),
        "key-broken": (pair(one, text), pair(wide, text)),
        "both-broken": (pair(one, one), pair(wide, wide)),
        "type-of-key": (pair(text, one), pair(one, one)),
        "type-of-value": (pair(text, one), pair(text, avro(GROWING[0], "JSON"))),
        "encoding": (pair(text, one), pair(text, grown, "SEPARATED")),
        "encoding-alone": (pair(text, one), pair(text, one, "SEPARATED")),
        "same": (pair(text, one), pair(text, one)),
        "texts": (pair(text, text), pair(text, text, "SEPARATED")),
        "value-invalid": (pair(text, one), pair(text, avro("nope"))),
    }
    for name, (old, new) in pairs.items():
        yield Case(f"key-value-{name}", (old,), new)


def _protobuf_natives() -> Iterator[Case]:
    plain, grown = _native("n.M", {"M": ["a"]}), _native("n.M", {"M": ["a", "b"]})
    yield Case("native-grown", (plain,), grown)
    yield Case("native-emptied", (grown,), _native("n.M", {"M": []}))
    yield Case("native-renamed", (plain,), _native("n.N", {"N": ["a"]}))
    yield Case("native-other-root", (_native("n.M", {"M": ["a"], "N": []}),), _native("n.N", {"M": ["a"], "N": []}))
    yield Case("native-no-such-root", (plain,), _native("n.Nope", {"M": ["a"]}))
    yield Case("native-no-json", (plain,), Schema("PROTOBUF_NATIVE", "x"))
    yield Case("native-no-files", (plain,), Schema("PROTOBUF_NATIVE", json.dumps({"rootMessageTypeName": "n.M"})))


def _native(root: str, messages: dict[str, list[str]]) -> Schema:
    file = FileDescriptorProto(name="m.proto", package="n", syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields, start=1):
            message.field.add(
                name=field,
                number=number,
                type=FieldDescriptorProto.TYPE_STRING,
                label=FieldDescriptorProto.LABEL_OPTIONAL,
            )
    files = base64.b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode()
    body = {"fileDescriptorSet": files, "rootMessageTypeName": root, "rootFileDescriptorName": "m.proto"}
    return Schema("PROTOBUF_NATIVE", json.dumps(body))
