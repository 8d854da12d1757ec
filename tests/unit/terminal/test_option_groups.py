"""Options declared in one line each."""

from __future__ import annotations

import click
from click.testing import CliRunner

from interpulse.terminal.option_groups import flag, option, option_group


@click.command()
@option_group(
    option("-a --amount", "The amount.", int, 5),
    option("--limit limit_max", "The limit; 0 = none.", int, 0),
    option("--mode", "The mode.", default="fast", shown=False),
    flag("-q --quiet", "Say nothing."),
)
def command(**values: object) -> None:
    click.echo(sorted(values.items()))


def test_option_has_its_default_and_its_parameter() -> None:
    result = CliRunner().invoke(command, ["-q", "--limit", "7"])
    assert result.output == "[('amount', 5), ('limit_max', 7), ('mode', 'fast'), ('quiet', True)]\n"


def test_help_shows_defaults_but_zero_and_hidden_ones() -> None:
    lines = CliRunner().invoke(command, ["--help"]).output.splitlines()
    assert [line.split()[-1] for line in lines if "[default" in line] == ["5]"]


def test_help_has_the_order_of_the_group() -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    places = [text.index(name) for name in ("--amount", "--limit", "--mode", "--quiet")]
    assert places == sorted(places)
