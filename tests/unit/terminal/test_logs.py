"""The log of a program: on standard error, for people or for collectors."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from interpulse.terminal.logs import _renderer, configure_audit_log, configure_logging


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(False)


def test_console_when_logging_then_level_message_and_name_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "console")
    logging.getLogger("interpulse.x").info("topic loaded topic=%s", "t")
    logging.getLogger("interpulse.x").debug("not shown")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "[info" in captured.err
    assert "topic loaded topic=t" in captured.err
    assert "not shown" not in captured.err


def test_console_when_no_terminal_then_the_line_is_what_structlog_shows(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "console")
    record = logging.makeLogRecord({"name": "interpulse.x", "levelno": 30, "levelname": "WARNING", "msg": "short"})
    (handler,) = logging.getLogger().handlers
    shown, expected = handler.format(record), _renderer("console", colors=False).format(record)
    assert shown.partition(" ")[2] == expected.partition(" ")[2]
    assert len(shown) == len(expected)


def test_console_when_an_error_is_logged_then_the_traceback_follows(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "console")
    try:
        raise ZeroDivisionError("a fault")
    except ZeroDivisionError:
        logging.getLogger("interpulse.x").exception("request failed")
    first, *_, last = capsys.readouterr().err.splitlines()
    assert "[error    ] request failed" in first
    assert last == "ZeroDivisionError: a fault"


def test_json_has_one_object_per_line_with_the_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("INFO", "json")
    try:
        raise ZeroDivisionError("a fault")
    except ZeroDivisionError:
        logging.getLogger("interpulse.x").exception("request failed")
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert (record["level"], record["event"], record["logger"]) == ("error", "request failed", "interpulse.x")
    assert "ZeroDivisionError: a fault" in record["exception"]


def test_json_when_logging_in_the_house_form_then_each_value_is_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "json")
    logging.getLogger("interpulse.x").info(
        "topic loaded topic=%s entries=%d seconds=%.1f owner=%s", "persistent://a/b/c d=e", 3, 1.26, None
    )
    record = json.loads(capsys.readouterr().err)
    assert list(record) == ["event", "level", "logger", "timestamp", "topic", "entries", "seconds", "owner"]
    assert record["event"] == "topic loaded"
    assert (record["topic"], record["entries"], record["seconds"]) == ("persistent://a/b/c d=e", 3, 1.3)
    assert record["owner"] is None


@pytest.mark.parametrize(
    ("text", "values", "shown"),
    [
        ("stopping", (), "stopping"),
        ("%s took %s", ("a", 1), "a took 1"),
        ("half of key=value and more", (), "half of key=value and more"),
        ("of a mapping: %(key)s", ({"key": "k"},), "of a mapping: k"),
    ],
    ids=["no values", "values inside", "no form", "mapping"],
)
def test_json_when_a_library_logs_in_another_form_then_all_of_it_is_the_event(
    text: str, values: tuple[object, ...], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("INFO", "json")
    logging.getLogger("library").info(text, *values)
    record = json.loads(capsys.readouterr().err)
    assert set(record) == {"event", "level", "logger", "timestamp"}
    assert record["event"] == shown


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": 1}, True, "x\ny"], ids=repr)
def test_json_when_values_are_unusual_then_each_line_is_json(value: object, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "json")
    logging.getLogger("interpulse.x").info("seen value=%s", value)
    (line,) = capsys.readouterr().err.splitlines()
    refuse = pytest.fail
    shown = json.loads(line, parse_constant=refuse)["value"]
    assert shown == (value if isinstance(value, bool) else str(value))


def test_json_when_structlog_is_not_installed_then_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpulse.terminal.logs.find_spec", lambda name: None)
    with pytest.raises(click.UsageError, match=re.escape("pip install 'interpulse[broker]'")):
        configure_logging("INFO", "json")


@pytest.mark.parametrize(("program", "command"), [("main", "produce"), ("admin_main", "topics")])
def test_command_when_the_client_warns_then_the_line_has_its_time(program: str, command: str) -> None:
    """In a process of its own: here the log belongs to the test."""
    source = (
        "import atexit, logging, sys\n"
        f"from interpulse.cli.main import {program} as program\n"
        f"sys.argv = ['interpulse', '{command}', '--help']\n"
        "atexit.register(logging.getLogger('interpulse.client').warning, 'trying again topic=%s', 't')\n"
        "program()\n"
    )
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \[warning  \] trying again topic=t ", ended.stderr)


def test_audit_log_when_a_file_is_named_then_has_the_lines_of_its_logger_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "audit.log"
    audit = logging.getLogger("interpulse.test-audit")
    configure_audit_log(audit.name, str(path))
    try:
        audit.info("change requested role=%s code=%d", "admin", 204)
        path.rename(tmp_path / "audit.1")
        audit.info("change requested role=%s code=%d", "bob", 401)
        logging.getLogger("interpulse.other").warning("elsewhere")
    finally:
        audit.handlers[0].close()
        audit.handlers.clear()
        audit.propagate = True
    (line,) = path.read_text().splitlines()
    said = json.loads(line)
    assert (said["event"], said["role"], said["code"], said["logger"]) == ("change requested", "bob", 401, audit.name)
    assert (tmp_path / "audit.1").stat().st_mode & 0o777 == 0o600
    assert "change requested" not in caplog.text


def test_audit_log_when_its_file_cannot_be_written_then_names_it(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"auditLogFile=.*cannot be written"):
        configure_audit_log("interpulse.test-audit", str(tmp_path / "none" / "audit.log"))
