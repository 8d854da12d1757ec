"""``consume`` and ``read``: what is refused at once. Receiving is tested against brokers."""

import click
import pytest
from click.testing import CliRunner

from interpulse.cli.produce import produce
from interpulse.cli.receiving import consume, read
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
