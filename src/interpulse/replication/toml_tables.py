"""Tables of a TOML file, checked against the fields of dataclasses.

Unknown tables and keys are refused with the nearest known ones. All problems are collected, to be reported together.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, TypeVar

from interpulse.client.transport.web_urls import parse_web_urls
from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import NamespaceName, TopicName
from interpulse.replication.setting_values import parse_duration_ms, parse_pattern, parse_service_url, parse_size

T = TypeVar("T")


def load_tables(path: str, parse: Callable[[Mapping[str, Any]], T], failure: type[ValueError]) -> T:
    """Read a file and parse its tables. Raise ``failure`` that names the file; ``parse`` raises it without the name."""
    try:
        body = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise failure(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise failure(f"{path}: not TOML: {error}") from None
    try:
        return parse(body)
    except failure as error:
        raise failure(f"{path}: {error}") from None


def one_of(*words: str) -> Callable[[str], None]:
    """Return a check that refuses other words."""

    def check(word: str) -> None:
        if word not in words:
            raise ValueError(f"{word!r} is not one of {', '.join(words)}")

    return check


_STRINGS: Final[Mapping[str, Callable[[str], object]]] = {
    "admin_url": parse_web_urls,
    "exclude": parse_pattern,
    "include": parse_pattern,
    "namespace": NamespaceName.parse,
    "service_url": parse_service_url,
}
"""Checks of strings that are used as written; they refuse unusable ones."""
_LISTS: Final[Mapping[str, Callable[[str], str]]] = {
    "namespaces": lambda item: str(NamespaceName.parse(item)),
    "topics": lambda item: str(TopicName.parse(item).base),
}


@dataclass
class TableReader:
    """Reader of the tables of one file. ``problems`` has all that were found so far, in order.

    ``strings`` are further checks of strings by key, ``kinds`` readers of values by the annotation of their field,
    and ``may_be_zero`` the keys of numbers that need not be positive.
    """

    strings: Mapping[str, Callable[[str], object]] = field(default_factory=dict)
    kinds: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    may_be_zero: Collection[str] = ()
    problems: list[str] = field(default_factory=list)

    def table(self, body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Return a table of the file; an empty one if it is absent."""
        table = body.get(name, {})
        if not isinstance(table, Mapping):
            self.problems.append(f"{name} must be a table: [{name}]")
            return {}
        return table

    def section(self, cls: type[Any], table: Mapping[str, Any], name: str) -> Any:
        """Return the dataclass of a table; None if a required key is absent or unusable."""
        values = self.values({item.name: str(item.type) for item in fields(cls)}, table, name)
        needed = [item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING]
        if absent := [key for key in needed if key not in table]:
            self.problems.append(f"[{name}] needs {', '.join(absent)}")
        return cls(**values) if set(needed) <= set(values) else None

    def values(self, kinds: Mapping[str, str], table: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return the valid values of a table. ``kinds`` are the annotations of their fields."""
        self.refuse_unknown(table, kinds, f"key of [{name}]")
        values: dict[str, Any] = {}
        for key in filter(kinds.__contains__, table):
            try:
                values[key] = self._value(kinds[key], key, table[key])
            except (ValueError, InvalidTopicName) as error:
                self.problems.append(f"[{name}] {key}: {error}")
        return values

    def refuse_unknown(self, table: Mapping[str, Any], names: Collection[str], what: str) -> None:
        """Note the keys of a table that are not among ``names``. ``what`` says what they are."""
        for key in table:
            if key not in names:
                close = difflib.get_close_matches(key, sorted(names), n=2)
                hint = f"; did you mean {' or '.join(close)}?" if close else f"; there are {', '.join(sorted(names))}"
                self.problems.append(f"unknown {what} {key!r}{hint}")

    def _value(self, kind: str, key: str, value: Any) -> Any:
        """Check one value against the annotation of its field."""
        if kind in self.kinds:
            return self.kinds[kind](value)
        if kind in ("int", "int | None"):
            return self._number(key, value)
        if kind == "bool":
            if not isinstance(value, bool):
                raise ValueError(f"{value!r} is neither true nor false")
            return value
        if kind.startswith("tuple"):
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise ValueError("must be a list of strings")
            return tuple(map(_LISTS.get(key, str), value))
        if kind.startswith("Mapping"):
            if not isinstance(value, Mapping):
                raise ValueError("must be a table")
            return {name: str(item) for name, item in value.items()}
        if not isinstance(value, str) or not value:
            raise ValueError("must be a string")
        (self.strings.get(key) or _STRINGS.get(key, str))(value)
        return value

    def _number(self, key: str, value: Any) -> int:
        if isinstance(value, str):
            value = parse_duration_ms(value) if key.endswith("_ms") else parse_size(value)
        least = 0 if key in self.may_be_zero else 1
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"{value!r} is not a positive number")
        return value
