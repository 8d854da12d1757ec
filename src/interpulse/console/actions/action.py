"""Actions: calls of the admin API with their equivalent commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from interpulse.model.errors import InvalidRequest
from interpulse.model.numbers import INT_MAX
from interpulse.model.operations import AdminRequest

Values = Mapping[str, str]

AGES: Final = {"5m": 300, "1h": 3_600, "6h": 21_600, "1d": 86_400, "7d": 604_800}
"""Ages as pulsar-admin writes them, in seconds."""


@dataclass(frozen=True, slots=True)
class Field:
    """A value that the action needs. The visitor is asked for a value that the page does not set."""

    name: str
    label: str
    choices: tuple[str, ...] = ()
    """The allowed values; empty for any text."""

    optional: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """One action. Functions get every field; an omitted optional one is empty."""

    name: str
    title: str
    effect: str
    """The effect in one sentence, with its limits."""

    fields: tuple[Field, ...]
    call: Callable[[Values], AdminRequest]
    """Raises InvalidTopicName or InvalidRequest for values that name nothing."""

    command: Callable[[Values], tuple[str, ...]]
    """The words behind ``interpulse-admin``."""

    back: Callable[[Values], str]
    """The address to go to afterwards."""

    done: str = "Done."
    ours_only: bool = False
    """A real Pulsar would take the call for another one."""

    dangerous: bool = False
    """True if something is lost for good."""

    def values(self, form: Values) -> dict[str, str]:
        """Return the values of the fields. Raise InvalidRequest for a value that is not among the choices."""
        values = {item.name: form.get(item.name, "") for item in self.fields}
        for item in self.fields:
            if item.choices and values[item.name] and values[item.name] not in item.choices:
                raise InvalidRequest(f"{item.name} must be one of {', '.join(item.choices)}")
        return values

    def missing(self, values: Values) -> list[Field]:
        return [item for item in self.fields if not item.optional and not values[item.name]]

    def command_line(self, values: Values) -> str:
        """Return the command for a shell."""
        return shlex.join(("interpulse-admin", *self.command(values)))


def count_of(values: Values, name: str) -> int:
    """Return an integer of 1 or more. Raise InvalidRequest."""
    text = values[name]
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(INT_MAX)) and 1 <= int(text) <= INT_MAX):
        raise InvalidRequest(f"{name} must be an integer from 1 to {INT_MAX}, not {text[:100]!r}")
    return int(text)
