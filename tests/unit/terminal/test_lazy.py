"""Groups that import a command when it is used."""

import sys

import pytest
from click.testing import CliRunner

from interpulse.terminal.lazy import LazyCommand, LazyGroup

GROUP = LazyGroup("g", lazy_commands={"metadata": LazyCommand("interpulse.cli.metadata:metadata", "Summary.")})


def test_group_when_listed_then_shows_summaries_without_importing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "interpulse.cli.metadata", raising=False)
    output = CliRunner().invoke(GROUP, ["--help"]).output
    assert "metadata  Summary." in output
    assert "interpulse.cli.metadata" not in sys.modules


def test_group_when_command_is_used_then_runs_it() -> None:
    result = CliRunner().invoke(GROUP, ["metadata", "--help"])
    assert "stopped broker" in result.output


def test_group_when_command_is_unknown_then_refuses() -> None:
    assert CliRunner().invoke(GROUP, ["other"]).exit_code == 2
