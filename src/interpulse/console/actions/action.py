"""Actions: calls of the admin API with their equivalent commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from interpulse.model.errors import InvalidRequest

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AdminCall:
    """The call of the admin API."""

    method: str
    path: str
    body: Any = None


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
    call: Callable[[Values], AdminCall]
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

    def values(self, given: Values) -> dict[str, str]:
        """Return the values of the fields. Raise InvalidRequest for a value that is not among the choices."""
        found = {item.name: given.get(item.name, "") for item in self.fields}
        for item in self.fields:
            if item.choices and found[item.name] and found[item.name] not in item.choices:
                raise InvalidRequest(f"{item.name} must be one of {', '.join(item.choices)}")
        return found

    def missing(self, values: Values) -> list[Field]:
        return [item for item in self.fields if not item.optional and not values[item.name]]

    def command_line(self, values: Values) -> str:
        """Return the command for a shell."""
        return shlex.join(("interpulse-admin", *self.command(values)))
