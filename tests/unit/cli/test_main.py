"""The two entry points, and what starting them costs."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from interpulse import __version__
from interpulse.cli.admin.admin import admin
from interpulse.cli.main import admin_main, main
from tests.support.codecs import NATIVE_NEEDED

HEAVY = (
    "aiohttp",
    "google.protobuf",
    "rich",
    "sqlite3",
    "asyncio",
    "interpulse.client",
    "interpulse.broker",
    "pyspark",
)
LOADED_BY = """
import sys
from click.testing import CliRunner
from {module} import {name}
result = CliRunner().invoke({name}, {arguments!r})
assert result.exit_code == 0, result.output
print(*(name for name in {heavy!r} if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("interpulse.cli.main", "main", ["--help"]),
        ("interpulse.cli.main", "main", ["--version"]),
        ("interpulse.cli.main", "main", ["admin", "--help"]),
        ("interpulse.cli.admin.admin", "admin", ["topics", "--help"]),
        ("interpulse.cli.admin.admin", "admin", ["namespaces", "set-retention", "--help"]),
    ],
)
def test_help_when_asked_for_then_nothing_heavy_is_imported(module: str, name: str, arguments: list[str]) -> None:
    """With click alone, help is there in about 50 ms; the HTTP library alone would take three times that."""
    script = LOADED_BY.format(module=module, name=name, arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_main_when_asked_for_help_then_lists_every_command() -> None:
    output = CliRunner().invoke(main, ["--help"]).output
    for name in ("admin", "consume", "metadata", "produce", "replicate", "standalone"):
        assert f"\n  {name} " in output


@pytest.mark.parametrize("group", ["brokers", "clusters", "namespaces", "schemas", "tenants", "topics"])
def test_admin_when_reached_through_either_entry_point_then_is_the_same(group: str) -> None:
    alone = CliRunner().invoke(admin, [group, "--help"], prog_name="x")
    below = CliRunner().invoke(main, ["admin", group, "--help"], prog_name="x")
    assert alone.exit_code == below.exit_code == 0
    assert alone.output.split("\n", 1)[1] == below.output.split("\n", 1)[1]


@pytest.mark.parametrize("name", ["python", pytest.param("native", marks=NATIVE_NEEDED)])
def test_version_when_asked_for_then_names_the_codec(name: str) -> None:
    asked = CliRunner(env={"INTERPULSE_CODEC": name}).invoke(main, ["--version"])
    assert (asked.exit_code, asked.output) == (0, f"{__version__} ({name} codec)\n")


@pytest.mark.parametrize("arguments", [["--version"], ["standalone"]])
def test_program_when_an_unknown_codec_is_demanded_then_is_wrong_usage(arguments: list[str]) -> None:
    result = CliRunner(env={"INTERPULSE_CODEC": "rust"}).invoke(main, arguments)
    assert (result.exit_code, "INTERPULSE_CODEC=rust names no codec" in result.output) == (2, True)


def test_command_when_unknown_then_is_wrong_usage() -> None:
    result = CliRunner().invoke(main, ["nonsense"])
    assert result.exit_code == 2
    assert "No such command 'nonsense'" in result.output


def test_admin_alone_when_started_then_is_the_administration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["interpulse-admin", "--version"])
    with pytest.raises(SystemExit) as ended:
        admin_main()
    assert (ended.value.code, capsys.readouterr().out) == (0, f"{__version__}\n")
