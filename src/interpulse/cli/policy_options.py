"""What the commands about policies of namespaces have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from interpulse.cli.params import NAMESPACE
from interpulse.cli.running import admin_command

__all__ = ["namespace_command", "one_of", "switch"]


def namespace_command(commands: list[click.Command], name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command whose first argument is the namespace; it is added to ``commands``."""

    def register(callback: Callable[..., Any]) -> click.Command:
        with_namespace = click.argument("namespace", type=NAMESPACE)(admin_command(callback))
        command = click.command(name)(with_namespace)
        commands.append(command)
        return command

    return register


def switch(subject: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The pair ``--enable``/``--disable``, of which exactly one must be given."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option("-d", "--disable", is_flag=True, help=f"Disable {subject}.")(command)
        return click.option("-e", "--enable", is_flag=True, help=f"Enable {subject}.")(command)

    return add


def one_of(enable: bool, disable: bool) -> bool:
    """What the pair says; raises UsageError unless exactly one is given."""
    if enable == disable:
        raise click.UsageError("Need to specify either --enable or --disable")
    return enable
