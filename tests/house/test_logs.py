"""Every log call has the form from which both renderings are made: the event, then a field for each value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from interpulse.terminal.logs import event_and_fields
from tests.house.sources import modules

METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
LOGGERS = {"log", "_log", "logger", "_logger"}
TAKEN = {"event", "level", "logger", "timestamp", "exception"}


def log_calls() -> Iterator[tuple[str, ast.Call]]:
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in METHODS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in LOGGERS
            ):
                yield f"{name}:{node.lineno}", node


def test_log_calls_when_written_then_have_the_event_first_and_a_field_for_each_value() -> None:
    calls = list(log_calls())
    assert calls
    for place, call in calls:
        text = call.args[0]
        assert isinstance(text, ast.Constant), f"{place}: the text of a log call is a literal"
        placeholders = str(text.value).count("%")
        if not any(isinstance(each, ast.Starred) for each in call.args):
            assert len(call.args) - 1 == placeholders, place
        if not placeholders:
            assert "=" not in str(text.value), place
            continue
        found = event_and_fields(str(text.value), (0,) * placeholders)
        assert found is not None, f"{place}: {text.value!r} is not 'event key=%s ...'"
        event, fields = found
        assert not event.endswith((",", ":")), place
        assert not TAKEN & set(fields), place


def test_loggers_when_made_then_have_names_that_are_looked_at() -> None:
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and "getLogger(__name__)" in ast.unparse(node.value):
                assert {ast.unparse(target) for target in node.targets} <= LOGGERS, module
