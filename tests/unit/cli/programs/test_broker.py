"""The command line of ``standalone``, as far as it needs no broker; the program itself is tested in integration."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from interpulse.cli.programs.broker import standalone
from interpulse.model.extras import pip_install


def test_help_when_asked_then_names_every_option() -> None:
    shown = CliRunner().invoke(standalone, ["--help"])
    assert shown.exit_code == 0
    for option in ("--cluster-name", "--port", "--http-port", "--bind", "--data-dir", "--config", "--set"):
        assert option in shown.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--set", "nothing"], "expected key=value, found 'nothing'"),
        (["--set", "allowAutoTopicCreation=maybe"], "must be true or false"),
        (["--port", "70000"], "brokerServicePort=70000: must be at most 65535"),
        (["--config", "/nowhere/broker.conf"], "configuration file /nowhere/broker.conf cannot be read"),
        (["--set", "a=1", "--set", "b=2"], "; "),
        (["--set", "defaultNumPartition=3"], "the nearest is defaultNumPartitions"),
        (["--set", "foo=1"], "foo is not a known setting\n"),
    ],
)
def test_settings_when_they_cannot_be_used_then_one_sentence_and_exit_code_2(
    arguments: list[str], complaint: str
) -> None:
    ended = CliRunner().invoke(standalone, arguments)
    assert ended.exit_code == 2
    assert len(ended.stderr.strip().splitlines()) == 1
    assert complaint in ended.stderr


def test_broker_when_its_extra_is_not_installed_then_one_sentence_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"structlog": "structlog", "absent_package": "absent-package"}
    monkeypatch.setattr("interpulse.broker.packages.MODULES", modules)
    ended = CliRunner().invoke(standalone, [])
    assert ended.exit_code == 2
    assert ended.stderr == f"Error: a broker needs absent-package as well: {pip_install('broker')}\n"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"allowAutoTopicCreatoin=true", "the nearest is allowAutoTopicCreation"),
        (b"no equals sign", "line 1: expected key=value"),
        (b"keepAliveIntervalSeconds=soon", "keepAliveIntervalSeconds=soon: must be an integer"),
        (b"\x00\xff", "broker.conf cannot be read: it is not UTF-8 text"),
    ],
)
def test_settings_when_file_is_malformed_then_one_sentence_says_where(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    config = tmp_path / "broker.conf"
    config.write_bytes(content)
    ended = CliRunner().invoke(standalone, ["--config", str(config)])
    assert ended.exit_code == 2
    assert len(ended.stderr.strip().splitlines()) == 1
    assert complaint in ended.stderr
