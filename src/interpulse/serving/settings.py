"""A setting: a field of the frozen dataclass that holds all settings of a program.

Its key is the camelCase form of the field name, Pulsar's own key wherever Pulsar has one. Values are read from text and
written as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, field, fields
from typing import Any, Final

from interpulse.model.numbers import INT_MAX

__all__ = ["ConfigError", "as_text", "keyed_fields", "parsed", "read_value", "setting", "shown", "words"]

_HIDDEN: Final = "*****"


class ConfigError(Exception):
    """The settings cannot be used; ``problems`` has one sentence for each thing that is wrong."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


def setting(
    default: Any,
    text: str,
    *,
    dynamic: bool = False,
    least: int | None = None,
    most: int | None = None,
    choices: tuple[str, ...] = (),
    several: bool = False,
    secret: bool = False,
    cluster: bool = False,
    can_be_off: bool = False,
    key: str = "",
) -> Any:
    """A field with its one-line description, its bounds, and whether it may change while the program runs.

    ``several``: any of the choices, with commas between them. ``secret``: never shown. ``cluster``: only a broker whose
    stores are those of a cluster acts on it. ``can_be_off``: a value left empty is None, not the default. ``key``:
    Pulsar's key, where it is not the camelCase form of the name.
    """
    return field(
        default=default,
        metadata={
            "text": text,
            "dynamic": dynamic,
            "least": least,
            "most": most,
            "choices": choices,
            "several": several,
            "secret": secret,
            "cluster": cluster,
            "can_be_off": can_be_off,
            "key": key,
        },
    )


def keyed_fields(config: type[Any]) -> dict[str, Field[Any]]:
    """Every key of a program and the field it sets: its own first, then those that it shares with others."""
    own = {name: place for place, name in enumerate(config.__annotations__)}
    items = sorted(fields(config), key=lambda item: own.get(item.name, len(own)))
    return {item.metadata["key"] or _key(item.name): item for item in items}


def _key(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("MB" if part == "mb" else part.capitalize() for part in rest)


def parsed(
    fields_by_key: Mapping[str, Field[Any]], given: Iterable[tuple[str, str]], origin: str, problems: list[str]
) -> Iterator[tuple[str, Any]]:
    """The field and the value of every setting, all of whose keys are known; what cannot be is a problem."""
    for key, text in given:
        try:
            yield fields_by_key[key].name, read_value(fields_by_key[key], text)
        except ValueError as error:
            problems.append(f"{origin}{key}={text}: {error}")


def shown(config: Any, fields_by_key: Mapping[str, Field[Any]]) -> dict[str, str]:
    """All settings by key, every value as it would stand in the file; secrets that are set are hidden."""
    values = {key: (item, as_text(getattr(config, item.name))) for key, item in fields_by_key.items()}
    return {key: _HIDDEN if text and item.metadata["secret"] else text for key, (item, text) in values.items()}


def read_value(item: Field[Any], text: str) -> Any:
    """Read one value by the type of its default; raises ValueError that says what is allowed."""
    if not text and item.metadata["can_be_off"]:
        return None
    if isinstance(item.default, bool):
        return _boolean(text)
    if isinstance(item.default, float):
        return _number(text, item.metadata["least"])
    if isinstance(item.default, int | None):
        return _integer(text, item.metadata["least"], item.metadata["most"])
    choices = item.metadata["choices"]
    if item.metadata["several"]:
        return _several(text, choices)
    if choices and text not in choices:
        raise ValueError(f"must be one of {', '.join(choices)}")
    return text


def _several(text: str, choices: tuple[str, ...]) -> str:
    """Those listed, in the order of the choices; brackets around them are allowed, as Pulsar prints them."""
    listed = {each.strip() for each in text.strip("[]").split(",")}
    if not listed <= set(choices):
        raise ValueError(f"must be some of {', '.join(choices)}, with commas between them")
    return ",".join(each for each in choices if each in listed)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _integer(text: str, least: int | None, most: int | None) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text, re.ASCII):
        raise ValueError("must be an integer")
    number = int(text)
    if least is not None and number < least:
        raise ValueError(f"must be at least {least}")
    if number > (most or INT_MAX):
        raise ValueError(f"must be at most {most or INT_MAX}")
    return number


def _number(text: str, least: int | None) -> float:
    if not re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,10})?", text, re.ASCII):
        raise ValueError("must be a number")
    if least is not None and float(text) < least:
        raise ValueError(f"must be at least {least}")
    return float(text)


def as_text(value: Any) -> str:
    """A value as it stands in a file of settings."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def words(text: str) -> list[str]:
    """A setting that lists names, with commas between them."""
    return [word.strip() for word in text.split(",") if word.strip()]
