"""Settings of programs: fields of one frozen dataclass per program, read from text and written as text.

A setting has Pulsar's key if there is one: the camelCase form of the field's name, unless declared otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from math import inf
from typing import Any, Final, ParamSpec, TypeVar

from interpulse.model.numbers import INT_MAX

P = ParamSpec("P")
Number = TypeVar("Number", int, float)

_HIDDEN: Final = "*****"


class ConfigError(Exception):
    """Invalid settings. ``problems`` has one sentence per problem."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


@dataclass(frozen=True, eq=False, repr=False)
class Setting:
    """Declaration of a setting. The type of its default is the type of its values."""

    default: Any
    text: str
    """Description: one line, with the unit."""
    _: KW_ONLY
    dynamic: bool = False
    """True if it may change while the program runs."""
    least: int | None = None
    most: int | None = None
    """Maximum value. None: the largest integer of 32 bits."""
    choices: tuple[str, ...] = ()
    several: bool = False
    """True if a value is any number of the choices, separated by commas."""
    secret: bool = False
    """True if its value is never shown."""
    cluster: bool = False
    """True if it has an effect only in a broker of a cluster."""
    can_be_off: bool = False
    """True if an empty value is None, not the default."""
    key: str = ""
    name: str = ""
    """Field of the dataclass. `settings_of` sets it, and the key if that follows from the name."""

    def read(self, text: str) -> Any:
        """Parse a value. Raise ValueError with the allowed values."""
        if not text and self.can_be_off:
            return None
        if isinstance(self.default, bool):
            return _boolean(text)
        if isinstance(self.default, float):
            return self._bounded(float(_matched(r"[0-9]{1,10}(\.[0-9]{1,10})?", text, "a number")))
        if isinstance(self.default, int | None):
            return self._bounded(int(_matched("[+-]?[0-9]{1,20}", text, "an integer")), self.most or INT_MAX)
        if self.several:
            return _several(text, self.choices)
        if self.choices and text not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        return text

    def _bounded(self, number: Number, most: float = inf) -> Number:
        if self.least is not None and number < self.least:
            raise ValueError(f"must be at least {self.least}")
        if number > most:
            raise ValueError(f"must be at most {most}")
        return number


def _as_field(declare: Callable[P, Setting]) -> Callable[P, Any]:
    def declared(*args: P.args, **kwargs: P.kwargs) -> Any:
        made = declare(*args, **kwargs)
        return field(default=made.default, metadata={"setting": made})

    return declared


setting = _as_field(Setting)
"""Declare a field of a dataclass with its setting; see `Setting`."""


def settings_of(config: type[Any]) -> dict[str, Setting]:
    """Return the settings of a program by key: its own first, then those shared with other programs."""
    own = {name: place for place, name in enumerate(config.__annotations__)}
    settings = (
        replace(item.metadata["setting"], name=item.name, key=item.metadata["setting"].key or _key(item.name))
        for item in sorted(fields(config), key=lambda item: own.get(item.name, len(own)))
    )
    return {item.key: item for item in settings}


def _key(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("MB" if part == "mb" else part.capitalize() for part in rest)


def parsed(
    settings: Mapping[str, Setting], texts: Iterable[tuple[str, str]], origin: str, problems: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield field and value of each key and text. All keys must be known. Invalid values are added to ``problems``."""
    for key, text in texts:
        try:
            yield settings[key].name, settings[key].read(text)
        except ValueError as error:
            problems.append(f"{origin}{key}={text}: {error}")


def shown(config: Any, settings: Mapping[str, Setting]) -> dict[str, str]:
    """Return all settings by key, with values as in a file. Secrets that are set are hidden."""
    texts = {key: as_text(getattr(config, item.name)) for key, item in settings.items()}
    return {key: _HIDDEN if text and settings[key].secret else text for key, text in texts.items()}


def _several(text: str, choices: tuple[str, ...]) -> str:
    """Return the listed choices in their declared order. Brackets are allowed, as Pulsar prints them."""
    listed = {word.strip() for word in text.strip("[]").split(",")}
    if not listed <= set(choices):
        raise ValueError(f"must be some of {', '.join(choices)}, with commas between them")
    return ",".join(choice for choice in choices if choice in listed)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _matched(pattern: str, text: str, words: str) -> str:
    if not re.fullmatch(pattern, text, re.ASCII):
        raise ValueError(f"must be {words}")
    return text


def as_text(value: Any) -> str:
    """Return a value in its form in a settings file."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def nearest(key: str, keys: Iterable[str]) -> str | None:
    """Return the key most similar to an unknown one, if there is one."""
    from difflib import get_close_matches  # only errors need it

    return next(iter(get_close_matches(key, list(keys), n=1)), None)


def words(text: str) -> list[str]:
    """Return the names in a comma-separated setting."""
    return [word.strip() for word in text.split(",") if word.strip()]
