"""``produce``: what is refused before anything is opened. Sending is tested against brokers."""

import pytest
from click.testing import CliRunner

from interpulse.cli.produce import produce


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t"], "Please supply message content with either --messages or --files"),
        (["t", "-m", "x", "-n", "0"], "0 is not in the range x>=1"),
        (["t", "-m", "x", "-p", "novalue"], "'novalue' is not of the form key=value"),
        (["t", "-f", "/nowhere"], "/nowhere cannot be read: No such file or directory"),
        (["a/b", "-m", "x"], "Invalid topic name"),
        (["t", "-m", "x", "-kvk", "k"], "-kvk and -kvkf need -kvet separated or -kvet inline"),
        (["t", "-m", "x", "-k", "k", "-kvet", "inline"], "-k is for messages without -kvet"),
        (["t", "-m", "x", "-kvet", "inline", "-kvk", "k", "-kvkf", "f"], "a message has one key"),
        (["t", "-m", "x", "-kvet", "odd"], "'odd' is not one of"),
        (["t", "-m", "x", "--url", "nonsense"], "not a service URL: 'nonsense'"),
    ],
)
def test_produce_when_used_wrongly_then_says_why(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(produce, arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_produce_when_no_server_listens_then_exits_as_unreachable() -> None:
    result = CliRunner().invoke(produce, ["t", "-m", "x", "--url", "pulsar://127.0.0.1:1", "--timeout", "0.2"])
    assert result.exit_code == 5
    assert "pulsar://127.0.0.1:1" in result.stderr


@pytest.mark.parametrize(
    "arguments", [["-f", "-", "-m", "x"], ["-f", "-,a"], ["-f", "-", "-f", "a"], ["-f", "-", "-n", "2"]]
)
def test_standard_input_when_not_alone_then_is_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(produce, ["t", *arguments])
    assert result.exit_code == 2
    assert "-f - sends standard input once, and nothing else beside it" in result.stderr
