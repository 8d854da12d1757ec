"""What an option of ``format("pulsar")`` is, and how those of a query are read from the words given to Spark.

Spark lower-cases keys, so they are looked up without case. A key that is not known is refused with the nearest known
ones: a misspelt option that is silently ignored is the worst kind of default. All problems are reported together.
The options themselves stand in ``connection_options.py``, ``reading/read_options.py`` and ``writing/write_options.py``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Flag, auto
from typing import Any, NamedTuple, TypeVar

from interpulse.model.ids import LATEST
from interpulse.spark.options.replaced_options import replacement_of

__all__ = [
    "Option",
    "OptionError",
    "Purpose",
    "build_options",
    "documented_options",
    "option",
    "option_group",
    "read_values",
]

_RESERVED = frozenset({"path", "checkpointlocation", "queryname", "provider", "owner"})
_OF_TABLES = "option."
"""What Spark adds of its own: for streams, and of a table that ``CREATE TABLE .. USING`` makes."""

_NO_OPTIONS = (
    "the query has no options at all. Spark hands those of CREATE TABLE to no read and no write: use CREATE TEMPORARY "
    "VIEW .. USING pulsar OPTIONS (..), or SELECT .. FROM table WITH ('service.url' = '..', 'topic' = '..')"
)


class OptionError(ValueError):
    """One or several options cannot be used; the message lists every problem."""


class Purpose(Flag):
    """What a query does with the source."""

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
    """One option: how it is called, how its value is read, where it applies, what it means.

    ``refusal`` says what speaks against a value under one of the names, None if nothing does.
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
    """A dataclass field that one option fills."""
    made = Option(name, read, default, aliases, purpose, text)
    return field(default=default, metadata={"options": {"": made}})


def option_group(make: Callable[..., Any], options: Mapping[str, Option]) -> Any:
    """A dataclass field that several options fill: ``make`` gets those that were given, by the names in ``options``."""
    return field(default_factory=make, metadata={"options": options, "make": make})


class _OptionSlot(NamedTuple):
    """Where the value of an option goes: into a field, or for a group into an argument of what makes its value."""

    field: str
    argument: str
    option: Option


def _option_slots(cls: type[Any]) -> Iterator[_OptionSlot]:
    for item in fields(cls):
        for argument, known in item.metadata["options"].items():
            yield _OptionSlot(item.name, argument, known)


def read_values(cls: type[Any], mapping: Mapping[str, str], purpose: Purpose, problems: list[str]) -> dict[str, Any]:
    """The values given for fields of ``cls``; what cannot be used is added to ``problems``."""
    known = {key.lower(): slot for slot in _option_slots(cls) for key in (slot.option.name, *slot.option.aliases)}
    values: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    if not mapping:
        problems.append(_NO_OPTIONS)
    given_as: dict[str, tuple[str, str]] = {}
    for key, text in mapping.items():
        if key.lower() in _RESERVED or key.lower().startswith(_OF_TABLES):
            continue
        slot = known.get(key.lower())
        if slot is None:
            problems.append(f"unknown option {key!r}{_instead(key, known)}")
        elif (objection := _objection(slot.option, key, text, purpose)) is not None:
            problems.append(objection)
        elif _is_first(slot.option, key, text, given_as, problems):
            into = groups.setdefault(slot.field, {}) if slot.argument else values
            _read_one(slot, text, into, problems)
    for item in fields(cls):
        if item.name in groups:
            try:
                values[item.name] = item.metadata["make"](**groups[item.name])
            except ValueError as error:
                problems.append(str(error))
    return values


def _objection(found: Option, key: str, text: str, purpose: Purpose) -> str | None:
    if not found.purpose & purpose:
        return f"option {found.name} does not apply to {_purpose_text(purpose)}"
    refusal = found.refusal(key, text)
    return None if refusal is None else f"option {key}: {refusal}"


def _is_first(found: Option, key: str, text: str, given_as: dict[str, tuple[str, str]], problems: list[str]) -> bool:
    """Whether the option was not yet given by another of its names; with another value that is a problem."""
    earlier = given_as.setdefault(found.name, (key, text))
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
    """The options as one value, or one error with all the problems found."""
    if "service_url" not in values and not any("service.url" in problem for problem in problems):
        problems.append("option service.url is required")
    if problems:
        raise OptionError("; ".join(problems))
    return cls(**values)


def documented_options(**classes: type[Any]) -> list[tuple[str, str, str, str, str]]:
    """Name, aliases, where it applies, default and text of every option, for the reference page.

    The classes are given by what they are for: ``read=ReadOptions``.
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
