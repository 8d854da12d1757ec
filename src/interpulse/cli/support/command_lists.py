"""Commands about one topic or one namespace, which their modules collect in lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from interpulse.cli.support.params import NAMESPACE, TOPIC
from interpulse.cli.support.running import admin_command

Register = Callable[[Callable[..., Any]], click.Command]


def namespace_command(commands: list[click.Command], name: str) -> Register:
    """Make a command whose first argument is the namespace, and add it to ``commands``."""
    return _command(commands, name, click.argument("namespace", type=NAMESPACE))


def topic_command(commands: list[click.Command], name: str) -> Register:
    """Make a command whose first argument is the topic, and add it to ``commands``."""
    return _command(commands, name, click.argument("topic", type=TOPIC))


def _command(commands: list[click.Command], name: str, target: Callable[..., Any]) -> Register:
    def register(callback: Callable[..., Any]) -> click.Command:
        command = click.command(name)(target(admin_command(callback)))
        commands.append(command)
        return command

    return register
