"""``consume``: what is refused at once."""

import pytest
from click.testing import CliRunner

from interpulse.cli.consume import consume


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t", "-s", "s", "-n", "-1"], "-1 is not in the range x>=0"),
        (["t", "-s", "s", "-t", "Odd"], "'Odd' is not one of"),
        (["t/x", "-s", "s", "--regex"], "tenant/namespace/expression"),
        (["t/ns/(", "-s", "s", "--regex"], "not a regular expression"),
        (["a/b", "-s", "s"], "Invalid topic name"),
        (["t", "-stp", "2", "-etp", "1"], "end timestamp should larger than start timestamp."),
        (["t", "-m", "Odd"], "'Odd' is not one of"),
        (["t", "-st", "avro"], "'avro' is not one of"),
        (["t", "-s", "s", "--url", "nonsense"], "not a service URL: 'nonsense'"),
    ],
)
def test_consume_when_used_wrongly_then_says_why(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(consume, arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_consume_when_no_server_listens_then_exits_as_unreachable() -> None:
    result = CliRunner().invoke(consume, ["t", "-s", "s", "--url", "pulsar://127.0.0.1:1", "--timeout", "0.2"])
    assert result.exit_code == 5
    assert "pulsar://127.0.0.1:1" in result.stderr
