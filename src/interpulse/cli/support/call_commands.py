"""Commands of the administration that are one call of the admin client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.support.params import NAMESPACE, PAIRS, TOPIC, joined_pairs
from interpulse.cli.support.running import admin_command
from interpulse.terminal.option_groups import option_group
from interpulse.terminal.output import print_json

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Register = Callable[[Callable[..., Any]], click.Command]

namespace_argument = click.argument("namespace", type=NAMESPACE)
topic_argument = click.argument("topic", type=TOPIC)


def command(name: str, about: str, run: Callable[..., Awaitable[None]], *decorators: Decorator) -> click.Command:
    """Return a command that runs a coroutine function. Its options have the order of the decorators."""
    return click.command(name, help=about)(option_group(*decorators)(admin_command(run)))


def call_command(
    register: Callable[[click.Command], object],
    area: str,
    target: Decorator | None,
    name: str,
    method: str,
    about: str,
    *options: Decorator,
    show: Callable[[Any], None] | None = None,
) -> None:
    """Register a command that calls a method of an area of the admin client, and shows the answer.

    The method gets the values of ``target``, the first argument, and of the options by their names.
    """

    async def run(admin: AdminClient, /, **values: Any) -> None:
        answer = await getattr(getattr(admin, area), method)(**values)
        if show is not None:
            show(answer)

    register(command(name, about, run, *((target,) if target else ()), *options))


def namespace_command(commands: list[click.Command], name: str) -> Register:
    """Make a command of a coroutine function, with the namespace as first argument, and add it to ``commands``."""
    return _register(commands, name, namespace_argument)


def topic_command(commands: list[click.Command], name: str) -> Register:
    """Make a command of a coroutine function, with the topic as first argument, and add it to ``commands``."""
    return _register(commands, name, topic_argument)


def _register(commands: list[click.Command], name: str, target: Decorator) -> Register:
    def register(callback: Callable[..., Any]) -> click.Command:
        made = click.command(name)(target(admin_command(callback)))
        commands.append(made)
        return made

    return register


def pairs_option(*names: str, **attributes: Any) -> Decorator:
    """Return an option with pairs ``a=b,c=d``, which can be given several times."""

    def join(context: click.Context, option: click.Parameter, parts: tuple[dict[str, str], ...]) -> dict[str, str]:
        return joined_pairs(parts)

    return click.option(*names, type=PAIRS, multiple=True, callback=join, **attributes)


def print_record(value: Any) -> None:
    """Print a value of the model as its JSON."""
    print_json(value.to_json())


def print_records(values: dict[str, Any]) -> None:
    """Print values of the model by their names, as their JSON."""
    print_json({name: value.to_json() for name, value in values.items()})
