"""Commands that are one call: each names a method, and its options are the arguments of that method."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click
import pytest

from interpulse.cli.admin.admin import admin
from interpulse.cli.support.call_commands import pairs_option, print_records
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import FailureDomain


def calls() -> Iterator[tuple[str, click.Command, str, str]]:
    """Yield the commands with the area and the method that they call."""
    context = click.Context(admin)
    for group_name in admin.list_commands(context):
        group = admin.get_command(context, group_name)
        assert isinstance(group, click.Group)
        for name, command in group.commands.items():
            run: Any = inspect.unwrap(command.callback) if command.callback else None
            if run.__module__ == "interpulse.cli.support.call_commands":
                variables = inspect.getclosurevars(run).nonlocals
                yield f"{group_name} {name}", command, variables["area"], variables["method"]


CALLS = list(calls())


def test_many_commands_are_one_call() -> None:
    assert len(CALLS) > 70


@pytest.mark.parametrize(("command", "area", "method"), [pytest.param(*call[1:], id=call[0]) for call in CALLS])
def test_options_are_the_arguments_of_the_method(command: click.Command, area: str, method: str) -> None:
    names = [param.name for param in command.params if param.expose_value and param.name]
    inspect.signature(getattr(getattr(AdminClient("http://x"), area), method)).bind(**dict.fromkeys(names))


def test_pairs_given_several_times_are_joined() -> None:
    @click.command()
    @pairs_option("-p", "pairs")
    def command(pairs: dict[str, str]) -> None:
        assert pairs == {"a": "1", "b": "3", "c": "4"}

    command.main(["-p", "a=1,b=2", "-p", "b=3,c=4"], standalone_mode=False)


def test_records_are_printed_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_records({"d": FailureDomain(("b:1",))})
    assert capsys.readouterr().out == '{\n  "d" : {\n    "brokers" : [ "b:1" ]\n  }\n}\n'
