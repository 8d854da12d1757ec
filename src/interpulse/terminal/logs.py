"""Logs of programs on standard error: lines for people, or JSON for collectors.

Both come from the one form of our log calls: the event, then ``key=%s`` for each field. The line for people is the
formatted text. The JSON object has the event and each field separately.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from logging.handlers import WatchedFileHandler
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from interpulse.model.extras import pip_install
from interpulse.terminal.option_groups import option, option_group

if TYPE_CHECKING:
    import structlog

LogFormat = Literal["console", "json"]

_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
_FORM: Final = re.compile(r"(?P<event>[^%]+?)(?P<fields>(?: \w+=%[-+.\d]*[sdf])+)")
_FIELD: Final = re.compile(r" (\w+)=(%\S+)")


log_options = option_group(
    option("--log-level", "Lowest level to show.", click.Choice(_LEVELS, case_sensitive=False), "INFO"),
    option(
        "--log-format",
        "Plain lines, or one JSON object per line with a field for each value.",
        click.Choice(("console", "json")),
        "console",
    ),
)
"""Options of programs that log, for `configure_logging`."""


def configure_logging(level: str = "WARNING", log_format: LogFormat = "console") -> None:
    """Log records from ``level`` on to standard error. Raise UsageError if structlog is missing for JSON."""
    colors = sys.stderr.isatty()
    installed = find_spec("structlog") is not None
    if log_format == "json" and not installed:
        raise click.UsageError(f"--log-format json needs structlog: {pip_install('broker')}")
    plain = log_format == "console" and not (colors and installed)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainFormatter() if plain else _LateFormatter(log_format, colors=colors))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # not shown, so not computed


def configure_audit_log(name: str, path: str) -> None:
    """Log the records of this logger to a file instead. It may be rotated at any time.

    Only its owner can read the file. Raise UsageError if it cannot be written.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        handler = WatchedFileHandler(path, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"auditLogFile={path} cannot be written: {error.strerror}") from error
    handler.setFormatter(_LateFormatter("json", colors=False))
    logger = logging.getLogger(name)
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def event_and_fields(text: str, values: tuple[Any, ...]) -> tuple[str, dict[str, Any]] | None:
    """Split a log call into event and fields. Return None for a call of another form, such as those of libraries.

    Numbers, booleans and None keep their type; all other values become strings.
    """
    form = _form(text)
    if form is None or len(form[1]) != len(values):
        return None
    event, fields = form
    return event, {key: _value(shape, value) for (key, shape), value in zip(fields, values, strict=True)}


@cache  # log calls have few forms
def _form(text: str) -> tuple[str, list[tuple[str, str]]] | None:
    match = _FORM.fullmatch(text)
    return None if match is None else (match["event"], _FIELD.findall(match["fields"]))


def _value(shape: str, value: Any) -> Any:
    shown = shape % (value,)
    if isinstance(value, float):
        return float(shown) if isfinite(value) else shown
    return value if value is None or type(value) in (bool, int) else shown


class _PlainFormatter(logging.Formatter):
    """Formatter of structlog's line without colours, at a fifth of its cost: a broker logs every topic it loads."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s [%(level)-9s] %(message)-30s [%(name)s]")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.level = record.levelname.lower()
        return super().formatMessage(record)


class _LateFormatter(logging.Formatter):
    """Formatter that imports structlog with the first record: a program that logs nothing starts 0.1 s earlier."""

    def __init__(self, log_format: LogFormat, *, colors: bool) -> None:
        super().__init__()
        self._log_format = log_format
        self._colors = colors
        self._renderer: logging.Formatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._renderer is None:
            self._renderer = _renderer(self._log_format, colors=self._colors)
        return self._renderer.format(record)


def _renderer(log_format: LogFormat, *, colors: bool) -> logging.Formatter:
    import structlog

    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: structlog.typing.Processor
    if log_format == "json":
        shared += [_with_fields, structlog.processors.format_exc_info]
        last = structlog.processors.JSONRenderer()
    else:
        plain = structlog.dev.plain_traceback
        last = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        pass_foreign_args=log_format == "json",
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
    )


def _with_fields(_logger: Any, _method: str, shown: structlog.typing.EventDict) -> structlog.typing.EventDict:
    positional = shown.pop("positional_args")
    parts = event_and_fields(str(shown["_record"].msg), positional if isinstance(positional, tuple) else (positional,))
    if parts is None:
        return shown
    event, fields = parts
    return {**shown, "event": event, **fields}
