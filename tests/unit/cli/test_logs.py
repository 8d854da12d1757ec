"""The log of a program: on standard error, for people or for collectors."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from interpulse.cli.logs import _renderer, configure_logging


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


def test_json_when_an_error_is_logged_then_one_object_per_line_with_the_traceback(
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
