"""``perf``: what is refused at once."""

import pytest
from click.testing import CliRunner

from interpulse.cli.perf import commands
from interpulse.cli.perf.commands import perf
from interpulse.cli.perf.options import CONSUMING, PRODUCING, READING


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["produce"], "Missing argument 'TOPICS...'"),
        (["produce", "a", "b"], "2 topics are named and --num-topics is 1"),
        (["produce", "t", "-r", "-1"], "-1.0 is not in the range"),
        (["produce", "t", "-ch"], "--chunking needs --disable-batching"),
        (["produce", "t", "-dr", "5,1"], "'5,1' is not a range of seconds"),
        (["produce", "t", "-f", "/nonexistent"], "/nonexistent cannot be read"),
        (["produce", "t", "-u", "nonsense"], "not a service URL: 'nonsense'"),
        (["produce", "t", "--histogram-file", "/nonexistent/x"], "cannot be written"),
        (["produce", "t", "--rat", "5"], "No such option"),
        (["consume", "t", "-n", "2"], "Only one consumer is allowed"),
        (["consume", "t", "-ss", "a,b"], "The size of subscriptions list should be equal to --num-subscriptions"),
        (["read", "t", "-m", "first"], "neither latest nor earliest"),
        (["lookup", "t", "-k", "odd"], "'odd' is not one of"),
    ],
)
def test_perf_when_used_wrongly_then_says_why(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(perf, arguments)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *(("produce", name) for names in PRODUCING for name in names),
        *(("consume", name) for names in CONSUMING for name in names),
        *(("read", name) for names in READING for name in names),
    ],
)
def test_option_of_pulsar_perf_when_not_offered_then_has_a_sentence(command: str, name: str) -> None:
    result = CliRunner().invoke(perf, [command, "t", name, "1"])
    assert result.exit_code == 6
    assert "Interpulse does not offer it: " in result.stderr


def test_perf_when_no_server_listens_then_exits_as_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_OPERATION_MS", 200)
    result = CliRunner().invoke(perf, ["read", "t", "-u", "pulsar://127.0.0.1:1", "-cf", "/dev/null", "-time", "1"])
    assert "has no brokerServiceUrl" not in result.stderr
    assert result.exit_code == 5
