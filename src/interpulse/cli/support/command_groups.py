"""Groups of commands: their help, and the answers to unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from interpulse.cli.support.pulsar_admin_tree import ABSENT_GROUPS, TREE, refusal
from interpulse.cli.support.running import NOT_OFFERED, CommandFailed
from interpulse.terminal.lazy import check_name

_POLICY = re.compile(r"(set|get|remove)-(.+)")
_NAMES_MAX: Final = 26  # columns; a longer name has its sentence on the next line
_SENTENCE_MAX: Final = 400
_NO_SECTIONS: Final[Mapping[str, str]] = {}


def _unoffered(group: str, command: str | None = None) -> click.Command:
    """Return a command of pulsar-admin that is not offered. It takes any arguments and prints the refusal."""

    def refuse(arguments: tuple[str, ...]) -> None:
        raise CommandFailed(refusal(group, command), NOT_OFFERED)

    return click.Command(
        command or group,
        callback=refuse,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        add_help_option=False,
        hidden=True,
    )


class CommandGroup(click.Group):
    """A group of the administration. Its help has a full sentence for each command, and one line for each policy.

    ``sections`` lists names of commands under headings, in the order of the help; all other commands follow.
    """

    def __init__(self, *args: Any, sections: Mapping[str, str] = _NO_SECTIONS, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = {heading: names.split() for heading, names in sections.items()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in TREE.get(self.name or "", ()):
            return _unoffered(self.name or "", cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        check_name(self, ctx, args[0], (*self.commands, *TREE.get(self.name or "", ())))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        placed = {name for names in self.sections.values() for name in names}
        policies = _policies({name: command for name, command in self.commands.items() if name not in placed})
        single = {name: command for name, command in self.commands.items() if name not in {*policies, *placed}}
        for heading, names in self.sections.items():
            _write(formatter, heading, ((name, _sentence(self.commands[name])) for name in names))
        _write(formatter, "Commands", ((name, _sentence(single[name])) for name in sorted(single)))
        _write(formatter, "Policies (put one of the words in front)", _policy_rows(self.commands, policies))


def _policies(commands: Mapping[str, click.Command]) -> dict[str, str]:
    """Return the commands that set, get or remove the same policy, by its name; single commands are left out."""
    things: dict[str, list[str]] = {}
    for name in commands:
        if match := _POLICY.fullmatch(name):
            things.setdefault(match.group(2), []).append(name)
    return {name: thing for thing, names in things.items() if len(names) > 1 for name in names}


def _policy_rows(commands: Mapping[str, click.Command], policies: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for thing in sorted(set(policies.values())):
        verbs = [verb for verb in ("set", "get", "remove") if f"{verb}-{thing}" in policies]
        yield f"{'|'.join(verbs)}-{thing}", _sentence(commands[f"{verbs[0]}-{thing}"])


def _sentence(command: click.Command) -> str:
    text = command.get_short_help_str(_SENTENCE_MAX)
    return text if text.endswith(".") else f"{text}."


def _write(formatter: click.HelpFormatter, heading: str, rows: Iterator[tuple[str, str]]) -> None:
    if shown := list(rows):
        with formatter.section(heading):
            formatter.write_dl(shown, col_max=_NAMES_MAX)


def absent_group(name: str) -> click.Command | None:
    """Return the command that stands for a whole group of pulsar-admin, or None if pulsar-admin has no such group."""
    return _unoffered(name) if name in ABSENT_GROUPS else None
