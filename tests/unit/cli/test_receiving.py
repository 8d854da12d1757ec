"""What ``consume`` and ``read`` share."""

import click
import pytest
from click.testing import CliRunner

from interpulse.cli.consume import consume
from interpulse.cli.produce import produce
from interpulse.cli.read import read
from interpulse.model.extras import pip_install


@pytest.mark.parametrize("command", [consume, read])
def test_key_when_cryptography_is_missing_then_says_what_to_install(
    command: click.Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpulse.cli.messaging.find_spec", lambda name: None)
    result = CliRunner().invoke(command, ["t", "-ekv", "file:///key"])
    said = f"Error: -ekv needs cryptography as well: {pip_install('encryption')}\n"
    assert (result.exit_code, result.stderr) == (2, said)


@pytest.mark.parametrize("flag", ["-ekn", "-ekv", "--encryption-key-name", "--encryption-key-value"])
def test_key_when_producing_with_half_of_it_then_is_wrong_usage(flag: str) -> None:
    result = CliRunner().invoke(produce, ["t", "-m", "x", flag, "key"])
    assert result.exit_code == 2
    assert "-ekn and -ekv need each other: the name of the public key, and the key" in result.stderr


def test_pool_when_asked_for_then_says_that_there_is_none() -> None:
    result = CliRunner().invoke(read, ["t", "-pm", "true", "--url", "pulsar://127.0.0.1:1", "--timeout", "0.2"])
    assert result.stderr.startswith("-pm has no effect here: there is no pool of messages\n")
