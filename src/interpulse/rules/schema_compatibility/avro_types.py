"""Avro definitions as trees of types, parsed with fastavro.

fastavro resolves names and namespaces. This module converts its result to nodes. It also refuses what fastavro accepts
but Avro for Java, and with it Apache Pulsar, refuses: invalid names, repeated fields, unions within unions. Names may
contain ``$``, as those of nested Java classes do.

fastavro ignores defaults of fields, logical types and symbols of enums. Java checks a default when it needs one (see
`has_usable_default`), ignores a logical type that does not match, and accepts any letters in a symbol.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias

from interpulse.model.errors import InvalidSchemaDefinition

_PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAME: Final = re.compile(r"(?:[^\W\d]|\$)(?:\w|\$)*")
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})
_DEPTH_MAX: Final = 100  # resolving two types takes a few frames per level, and Python ends at 1000
_DEFAULT: Final = "interpulse.default"
_SYMBOLS: Final = "interpulse.symbols"
_HIDDEN: Final = {"logicalType": "interpulse.logicalType"}
_HIDDEN_IN_ENUM: Final = {"symbols": _SYMBOLS, "default": _DEFAULT}
_SIZE_MAX: Final = 2**31 - 1
_JAVA_NUMBER: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)
"""Pattern of a text that Java parses as a double, without hexadecimal numbers."""

_Known: TypeAlias = dict[tuple[int, "AvroType"], bool]


@dataclass(slots=True, eq=False)
class AvroField:
    """Field of a record."""

    name: str
    type: AvroType
    has_default: bool = False
    aliases: tuple[str, ...] = ()
    default: Any = None
    """Default as JSON from the definition. It need not be a value of the type."""


@dataclass(slots=True, eq=False)
class AvroType:
    """Type in a definition. It equals only itself, because a record may contain itself.

    ``kind`` is Avro's name for it. ``parts`` are the branches of a union, or the element type of an array or map.
    ``logical`` has ``logicalType``, ``precision`` and ``scale`` from the definition, matching or not.
    """

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: list[AvroField] = field(default_factory=list)
    parts: list[AvroType] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    symbol_default: str | None = None
    size: int = 0
    logical: Mapping[str, Any] = field(default_factory=dict)

    @property
    def short_name(self) -> str:
        """Name without its namespace."""
        return self.name.rpartition(".")[2]


def parse_avro(definition: bytes) -> AvroType:
    """Parse a definition. Raise InvalidSchemaDefinition with the problem."""
    return _Tree().build(_parse(definition), depth=0)


def avro_identity(definition: bytes) -> object:
    """Return a value that is equal for definitions that Avro considers equal.

    It omits docs, aliases and enum defaults.
    """
    return json.dumps(_identity(_parse(definition)), sort_keys=True)


def _parse(definition: bytes) -> Any:
    # Imported here: the package takes nearly four megabytes, needed only with a schema.
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType

    try:
        body = json.loads(definition.decode(), parse_constant=_no_json)
        parsed = fastavro.parse_schema(_with_hidden_keys(body), _write_hint=False)
    except UnknownType as error:
        name = error.name["type"] if isinstance(error.name, dict) else error.name
        raise _invalid(f"the type {name} is not defined") from None
    except RecursionError:
        raise _invalid("it is nested too deeply") from None
    except KeyError as error:
        raise _invalid(f"a type lacks {error}") from None
    except (SchemaParseException, ValueError, TypeError, AttributeError) as error:
        # fastavro raises arbitrary errors for a wrong structure, such as a number in place of a type.
        raise _invalid(str(error)) from None
    return parsed


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _with_hidden_keys(schema: Any) -> Any:
    """Return the definition with keys renamed that fastavro must pass on unchecked."""
    if isinstance(schema, list):
        return [_with_hidden_keys(branch) for branch in schema]
    if isinstance(schema, str):
        return schema
    if not isinstance(schema, dict):
        raise ValueError(f"a type is a name, an object or a list, not {json.dumps(schema)[:80]}")
    if "type" in schema and not isinstance(schema["type"], str):
        raise ValueError(f"the word for a type is a string, not {json.dumps(schema['type'])[:80]}")
    if schema.get("type") in ("record", "error") and not isinstance(schema.get("fields"), list):
        raise ValueError(f"the record {schema.get('name')} has no list of fields")
    hidden = _HIDDEN | (_HIDDEN_IN_ENUM if schema.get("type") == "enum" else {})
    shown = {hidden.get(key, key): value for key, value in schema.items()}
    if _SYMBOLS in shown:
        shown["symbols"] = []
    for key in ("items", "values"):
        if key in shown:
            shown[key] = _with_hidden_keys(shown[key])
    if isinstance(shown.get("fields"), list):
        shown["fields"] = [_field_with_hidden_keys(field) for field in shown["fields"]]
    return shown


def _field_with_hidden_keys(field: Any) -> Any:
    if not isinstance(field, dict) or "type" not in field:
        raise ValueError(f"a field is an object with a name and a type, not {json.dumps(field)[:80]}")
    shown = {(_DEFAULT if key == "default" else key): value for key, value in field.items()}
    shown["type"] = _with_hidden_keys(shown["type"])
    return shown


def _identity(parsed: Any) -> Any:
    if isinstance(parsed, list):
        return [_identity(branch) for branch in parsed]
    if not isinstance(parsed, dict):
        return parsed
    unseen = {"doc", "aliases"} | ({_DEFAULT} if parsed["type"] == "enum" else set())
    shown = {key: value for key, value in parsed.items() if key not in unseen}
    if shown.keys() == {"type"}:
        return shown["type"]
    for key in ("items", "values"):
        if key in shown:
            shown[key] = _identity(shown[key])
    if "fields" in shown:
        shown["fields"] = [_field_identity(field) for field in shown["fields"]]
    return shown


def _field_identity(field: Mapping[str, Any]) -> Any:
    unseen = {"doc", "aliases"} | ({"order"} if field.get("order") == "ascending" else set())
    return {key: value for key, value in field.items() if key not in unseen} | {"type": _identity(field["type"])}


class _Tree:
    """Builder of the nodes of one definition. A name refers to the node built for it."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def build(self, parsed: Any, *, depth: int) -> AvroType:
        if depth > _DEPTH_MAX:
            raise _invalid(f"it is nested deeper than {_DEPTH_MAX} levels")
        if isinstance(parsed, list):
            return self._union(parsed, depth)
        if isinstance(parsed, str):
            return self._named[parsed] if parsed in self._named else AvroType(parsed)
        kind = parsed["type"]
        if kind in _PRIMITIVES:
            return AvroType(kind, logical=_logical(parsed))
        if kind in ("array", "map"):
            return AvroType(kind, parts=[self.build(parsed["items" if kind == "array" else "values"], depth=depth + 1)])
        return self._of_a_name(parsed, depth)

    def _union(self, parsed: Sequence[Any], depth: int) -> AvroType:
        branches = [self.build(branch, depth=depth + 1) for branch in parsed]
        seen: set[str] = set()
        for branch in branches:
            if branch.kind == "union":
                raise _invalid("a union holds a union")
            if (branch.name or branch.kind) in seen:
                raise _invalid(f"a union holds {branch.name or branch.kind} twice")
            seen.add(branch.name or branch.kind)
        return AvroType("union", parts=branches)

    def _of_a_name(self, parsed: Mapping[str, Any], depth: int) -> AvroType:
        kind = "record" if parsed["type"] == "error" else parsed["type"]
        name = _checked_name(parsed["name"])
        if name in _PRIMITIVES:
            raise _invalid(f"a {kind} cannot have the name {name}")
        node = AvroType(kind, name, _aliases(parsed, name), logical=_logical(parsed))
        if kind == "enum" and isinstance(parsed.get(_DEFAULT), str):
            node.symbol_default = parsed[_DEFAULT]
        self._named[name] = node
        if kind == "record":
            self._add_fields(node, parsed, depth)
        elif kind == "enum":
            node.symbols = _checked_symbols(name, parsed)
        else:
            node.size = _checked_size(name, parsed["size"])
        return node

    def _add_fields(self, record: AvroType, parsed: Mapping[str, Any], depth: int) -> None:
        names: set[str] = set()
        for definition in parsed["fields"]:
            name = definition["name"]
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise _invalid(f"{name!r} cannot be the name of a field")
            if name in names:
                raise _invalid(f"the record {record.name} has two fields {name}")
            names.add(name)
            self._add_field(record, definition, depth)

    def _add_field(self, record: AvroType, field: Mapping[str, Any], depth: int) -> None:
        name, order = field["name"], field.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise _invalid(f"the field {name} has the order {order!r}; known are {', '.join(sorted(_ORDERS))}")
        kind = self.build(field["type"], depth=depth + 1)
        default = field.get(_DEFAULT)
        if kind.kind in ("float", "double") and isinstance(default, str):
            default = _number_of_text(default, name, kind.kind)
        record.fields.append(
            AvroField(name, kind, _DEFAULT in field, _names("aliases", field.get("aliases", [])), default)
        )


def _number_of_text(text: str, field_name: str, kind: str) -> float:
    """Parse a default that is a text instead of a number, as Java does."""
    if not _JAVA_NUMBER.fullmatch(text.strip()):
        raise _invalid(f"the default {json.dumps(text)[:80]} of the field {field_name} is no {kind}")
    return float(text.strip().rstrip("fFdD"))


def _checked_name(name: str) -> str:
    if not all(_NAME.fullmatch(part) for part in name.split(".")):
        raise _invalid(f"{name!r} cannot be a name")
    return name


def _checked_size(name: str, size: Any) -> int:
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _SIZE_MAX:
        raise _invalid(f"the size of {name} is an integer from 0 to {_SIZE_MAX}, not {size!r}")
    return size


def _checked_symbols(name: str, parsed: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the symbols of an enum. A text as default must be one of them; any other default is ignored."""
    symbols = _names(f"the symbols of {name}", parsed[_SYMBOLS])
    for symbol in symbols:
        if not _NAME.fullmatch(symbol):
            raise _invalid(f"{symbol!r} cannot be a symbol of {name}")
    if len(set(symbols)) != len(symbols):
        raise _invalid(f"a symbol of {name} stands there twice")
    default = parsed.get(_DEFAULT)
    if isinstance(default, str) and default not in symbols:
        raise _invalid(f"the default {json.dumps(default)[:80]} of {name} is none of its symbols")
    return symbols


def _logical(parsed: Mapping[str, Any]) -> Mapping[str, Any]:
    logical = _HIDDEN["logicalType"]
    if logical not in parsed:
        return {}
    return {"logicalType": parsed[logical], **{key: parsed[key] for key in ("precision", "scale") if key in parsed}}


def _aliases(parsed: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return full names. An alias without a namespace is in that of the type."""
    namespace = name.rpartition(".")[0]
    aliases = _names("aliases", parsed.get("aliases", []))
    return tuple(_checked_name(alias if "." in alias or not namespace else f"{namespace}.{alias}") for alias in aliases)


def _names(subject: str, value: Any) -> tuple[str, ...]:
    if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise _invalid(f"{subject} are a list of names, not {json.dumps(value)[:80]}")
    return tuple(value)


def has_usable_default(field: AvroField) -> bool:
    """Return True if Java can encode the default of a field, which it does when the writer lacks the field.

    Java is lenient: it accepts any number for an int, anything but an object or array for an empty array or map, and
    the items of an object or array for those of an array. A union takes the first branch that matches.
    """
    return field.has_default and _fits(field.default, field.type, {})


def _fits(value: Any, kind: AvroType, cached: _Known) -> bool:
    """Return True if a default matches a type. ``cached`` caches results: branches of nested unions repeat."""
    key = (id(value), kind)
    if key not in cached:
        cached[key] = False  # ends the recursion of a default that contains itself
        cached[key] = _is_writable(value, kind, cached)
    return cached[key]


def _is_writable(value: Any, kind: AvroType, cached: _Known) -> bool:
    match kind.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long" | "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            return all(_fits(item, kind.parts[0], cached) for item in items)
        case "map":
            items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            return not (isinstance(value, list) and items) and all(_fits(item, kind.parts[0], cached) for item in items)
        case "union":
            return _union_is_writable(value, kind, cached)
        case "record":
            return isinstance(value, dict) and all(_fits_field(value, field, cached) for field in kind.fields)
        case "enum":
            return value in kind.symbols
        case _:
            return isinstance(value, str)


def _union_is_writable(value: Any, union: AvroType, cached: _Known) -> bool:
    for branch in union.parts:
        fits = _fits(value, branch, cached)
        if fits or branch.kind == "enum":  # Java fails at an enum without the symbol
            return fits
    return False


def _fits_field(record: Mapping[str, Any], field: AvroField, cached: _Known) -> bool:
    if field.name in record:
        return _fits(record[field.name], field.type, cached)
    return field.has_default and _fits(field.default, field.type, cached)


def _invalid(reason: str) -> InvalidSchemaDefinition:
    return InvalidSchemaDefinition(f"Invalid Avro definition: {reason}")
