"""Command groups that import their commands on first use, so that ``--help`` starts fast."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import click


class LazyCommand(NamedTuple):
    """Location of a command (``module:attribute``), and its line in the list of commands."""

    target: str
    summary: str
    section: str = "Commands"
    """Heading in the list of commands."""


class LazyGroup(click.Group):
    """Group with a table of commands that are not imported yet.

    ``otherwise`` finds commands that the help does not list.
    """

    def __init__(
        self,
        *args: Any,
        lazy_commands: Mapping[str, LazyCommand],
        otherwise: Callable[[str], click.Command | None] = lambda name: None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy_commands = dict(lazy_commands)
        self._otherwise = otherwise

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._lazy_commands.get(cmd_name)
        if entry is None:
            return self._otherwise(cmd_name)
        module, _, attribute = entry.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            entry = self._lazy_commands[name]
            sections.setdefault(entry.section, []).append((name, entry.summary))
        for section in dict.fromkeys(entry.section for entry in self._lazy_commands.values()):
            with formatter.section(section):
                formatter.write_dl(sections[section])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        check_name(self, ctx, args[0], self._lazy_commands)
        return super().resolve_command(ctx, args)


def check_name(group: click.Group, ctx: click.Context, name: str, names: Iterable[str]) -> None:
    """Refuse a name that is not a command of the group. The error suggests the nearest one."""
    if group.get_command(ctx, name) is None and name[:1].isalnum() and not ctx.resilient_parsing:
        nearest = nearest_name(name, names)
        ctx.fail(f"No such command {name!r}." + (f" Did you mean {nearest!r}?" if nearest else ""))


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name nearest to a misspelled one, ignoring case."""
    import difflib  # imported here: most names are right

    by_folded = {name.lower(): name for name in names}
    matches = difflib.get_close_matches(name.lower(), by_folded, n=1)
    return by_folded[matches[0]] if matches else None
