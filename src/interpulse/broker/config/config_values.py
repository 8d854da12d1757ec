"""A setting: its field, and its value read from text and written as text."""

from __future__ import annotations

import re
from dataclasses import Field, field
from typing import Any

from interpulse.model.numbers import INT_MAX

__all__ = ["ConfigError", "as_text", "read_value", "setting"]


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
) -> Any:
    """A field with its one-line description, its bounds, and whether it may change while the broker runs.

    ``several``: any of the choices, with commas between them. ``secret``: never shown. ``cluster``: only a broker whose
    stores are those of a cluster acts on it.
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
        },
    )


def read_value(item: Field[Any], text: str) -> Any:
    """Read one value by the type of its default; raises ValueError that says what is allowed."""
    if isinstance(item.default, bool):
        return _boolean(text)
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


def as_text(value: Any) -> str:
    """A value as it stands in ``broker.conf``."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
