"""What ``consume`` and ``read`` share."""

import click
import pytest
from click.testing import CliRunner

from interpulse.cli.consume import consume
from interpulse.cli.produce import produce
from interpulse.cli.read import read

ENCRYPTION = "Error: Messages cannot be encrypted or decrypted: the client does not offer that\n"


@pytest.mark.parametrize("command", [consume, read])
def test_keys_of_encryption_when_given_then_are_refused_in_one_sentence(command: click.Command) -> None:
    result = CliRunner().invoke(command, ["t", "-ekv", "file:///key"])
    assert (result.exit_code, result.stderr) == (6, ENCRYPTION)


@pytest.mark.parametrize("flag", ["-ekn", "-ekv", "--encryption-key-name", "--encryption-key-value"])
def test_keys_of_encryption_when_producing_then_are_refused_in_one_sentence(flag: str) -> None:
    result = CliRunner().invoke(produce, ["t", "-m", "x", flag, "key"])
    assert (result.exit_code, result.stderr) == (6, ENCRYPTION)


def test_pool_when_asked_for_then_says_that_there_is_none() -> None:
    result = CliRunner().invoke(read, ["t", "-pm", "true", "--url", "pulsar://127.0.0.1:1", "--timeout", "0.2"])
    assert result.stderr.startswith("-pm has no effect here: there is no pool of messages\n")
