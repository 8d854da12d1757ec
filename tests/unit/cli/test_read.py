"""``read``: what is refused at once. Reading is tested against brokers."""

import pytest
from click.testing import CliRunner

from interpulse.cli.read import read


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["t", "-m", "1"], "'1' is neither latest nor earliest nor ledgerId:entryId"),
        (["t", "-n", "-1"], "-1 is not in the range x>=0"),
        (["a/b"], "Invalid topic name"),
    ],
)
def test_read_when_used_wrongly_then_says_why(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(read, arguments)
    assert result.exit_code == 2
    assert words in result.stderr
