"""Options of ``format("pulsar")``: their declarations, and their values in the options of a query.

Spark lower-cases keys, so letter case does not count. An unknown key is refused with the nearest names: a misspelt
option that is ignored is the worst kind of default. All problems are reported together. The options themselves are in
``connection_options.py``, ``reading/read_options.py`` and ``writing/write_options.py``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Flag, auto
from typing import Any, NamedTuple, TypeVar

from interpulse.model.ids import LATEST
from interpulse.spark.options.replaced_options import replacement_of

_RESERVED = frozenset({"path", "checkpointlocation", "queryname", "provider", "owner"})
_OF_TABLES = "option."
"""Keys that Spark adds: those of streams, and those of a table that ``CREATE TABLE .. USING`` makes."""

_NO_OPTIONS = (
    "the query has no options at all. Spark hands those of CREATE TABLE to no read and no write: use CREATE TEMPORARY "
    "VIEW .. USING pulsar OPTIONS (..), or SELECT .. FROM table WITH ('service.url' = '..', 'topic' = '..')"
)


class OptionError(ValueError):
    """One or several options cannot be used; the message lists every problem."""


class Purpose(Flag):
    """Kinds of queries."""

    BATCH_READ = auto()
    STREAM_READ = auto()
    BATCH_WRITE = auto()
    STREAM_WRITE = auto()
    READ = BATCH_READ | STREAM_READ
    WRITE = BATCH_WRITE | STREAM_WRITE
    ANY = READ | WRITE


def _takes_any(key: str, text: str) -> str | None:
    return None


@dataclass(frozen=True)
class Option:
    """One option: its names, the reader of its value, the queries it applies to, its meaning.

    ``read`` raises ValueError. ``refusal`` gets a key and a value and returns the reason to refuse them, or None.
    """

    name: str
    read: Callable[[str], Any]
    default: Any = MISSING
    aliases: tuple[str, ...] = ()
    purpose: Purpose = Purpose.ANY
    text: str = ""
    refusal: Callable[[str, str], str | None] = _takes_any


def option(
    name: str,
    read: Callable[[str], Any],
    default: Any = MISSING,
    *,
    aliases: tuple[str, ...] = (),
    purpose: Purpose = Purpose.ANY,
    text: str,
) -> Any:
    """Return a dataclass field that one option fills. ``purpose`` limits it within the purposes of its class."""
    made = Option(name, read, default, aliases, purpose, text)
    return field(default=default, metadata={"options": {"": made}, "name": name})


def option_group(make: Callable[..., Any], options: Mapping[str, Option], name: str) -> Any:
    """Return a dataclass field that several options fill: ``make`` gets their values, by the names in ``options``."""
    return field(default_factory=make, metadata={"options": options, "make": make, "name": name})


def option_name(cls: type[Any], field_name: str) -> str:
    """Return the name of the option or group that fills a field, for an error."""
    return str(cls.__dataclass_fields__[field_name].metadata["name"])


class _OptionSlot(NamedTuple):
    """The place of an option's value: a field, or for a group an argument of the function that makes its value."""

    field: str
    argument: str
    option: Option


def _option_slots(cls: type[Any]) -> Iterator[_OptionSlot]:
    for item in fields(cls):
        for argument, known in item.metadata["options"].items():
            yield _OptionSlot(item.name, argument, known)


def read_values(cls: type[Any], mapping: Mapping[str, str], purpose: Purpose, problems: list[str]) -> dict[str, Any]:
    """Return the values of a query's options by the fields of ``cls``. Add unusable options to ``problems``."""
    known = {key.lower(): slot for slot in _option_slots(cls) for key in (slot.option.name, *slot.option.aliases)}
    values: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    if not mapping:
        problems.append(_NO_OPTIONS)
    seen: dict[str, tuple[str, str]] = {}
    for key, text in mapping.items():
        if key.lower() in _RESERVED or key.lower().startswith(_OF_TABLES):
            continue
        slot = known.get(key.lower())
        if slot is None:
            problems.append(f"unknown option {key!r}{_instead(key, known)}")
        elif (objection := _objection(slot.option, key, text, purpose)) is not None:
            problems.append(objection)
        elif _is_first(slot.option, key, text, seen, problems):
            into = groups.setdefault(slot.field, {}) if slot.argument else values
            _read_one(slot, text, into, problems)
    for item in fields(cls):
        if item.name in groups:
            try:
                values[item.name] = item.metadata["make"](**groups[item.name])
            except ValueError as error:
                problems.append(str(error))
    return values


def _objection(option: Option, key: str, text: str, purpose: Purpose) -> str | None:
    if not option.purpose & purpose:
        return f"option {option.name} does not apply to {_purpose_text(purpose)}"
    refusal = option.refusal(key, text)
    return None if refusal is None else f"option {key}: {refusal}"


def _is_first(option: Option, key: str, text: str, seen: dict[str, tuple[str, str]], problems: list[str]) -> bool:
    """Return True for the first of an option's names in a query. Another value under a second name is a problem."""
    earlier = seen.setdefault(option.name, (key, text))
    if earlier[1] != text:
        problems.append(f"options {earlier[0]} and {key} are the same and have different values")
    return earlier[0] == key


def _read_one(slot: _OptionSlot, text: str, values: dict[str, Any], problems: list[str]) -> None:
    try:
        values[slot.argument or slot.field] = slot.option.read(text)
    except Exception as error:  # noqa: BLE001 - every reader's complaint goes into the one list of problems
        problems.append(f"option {slot.option.name}: {error}")


def _instead(key: str, known: Mapping[str, _OptionSlot]) -> str:
    replacement = replacement_of(key)
    return _nearest(key, known) if replacement is None else f": {replacement}"


def _nearest(key: str, known: Mapping[str, _OptionSlot]) -> str:
    close = difflib.get_close_matches(key.lower(), known, n=3, cutoff=0.6)
    names = list(dict.fromkeys(known[name].option.name for name in close))
    return f"; did you mean {' or '.join(names)}?" if names else "; see docs/reference/spark-options.md"


def _purpose_text(purpose: Purpose) -> str:
    return {
        Purpose.BATCH_READ: "batch reads",
        Purpose.STREAM_READ: "streams",
        Purpose.BATCH_WRITE: "batch writes",
        Purpose.STREAM_WRITE: "stream writes",
    }.get(purpose, "this query")


Options = TypeVar("Options")


def build_options(cls: type[Options], values: Mapping[str, Any], problems: list[str]) -> Options:
    """Return the options as one value. Raise OptionError with all problems if there are any."""
    if "service_url" not in values and not any("service.url" in problem for problem in problems):
        problems.append("option service.url is required")
    if problems:
        raise OptionError("; ".join(problems))
    return cls(**values)


def documented_options(**classes: type[Any]) -> list[tuple[str, str, str, str, str]]:
    """Return name, aliases, queries, default and text of every option, for the reference page.

    The keyword of a class names its queries: ``read=ReadOptions``.
    """
    rows: dict[tuple[str, str], tuple[str, str, str, str, str]] = {}
    for where, cls in classes.items():
        for known in (slot.option for slot in _option_slots(cls)):
            applies = {Purpose.STREAM_READ: "stream read", Purpose.BATCH_READ: "batch read"}.get(known.purpose, where)
            place = (known.name, known.text)
            if place in rows:
                applies = f"{rows[place][2]}, {applies}"
            aliases = ", ".join(f"`{alias}`" for alias in known.aliases)
            rows[place] = (known.name, aliases, applies, _default_text(known.default), known.text)
    return list(rows.values())


def _default_text(value: object) -> str:
    if value is MISSING or value is None or value == ():
        return ""
    if value == LATEST:
        return "latest"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
