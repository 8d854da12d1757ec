"""Every log call has the form from which both renderings are made: the event, then a field for each value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

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


@pytest.mark.parametrize("call", [pytest.param(call, id=place) for place, call in log_calls()])
def test_log_call_when_written_then_has_the_event_first_and_a_field_for_each_value(call: ast.Call) -> None:
    text = call.args[0]
    assert isinstance(text, ast.Constant), "the text of a log call is a literal"
    placeholders = str(text.value).count("%")
    if not any(isinstance(each, ast.Starred) for each in call.args):
        assert len(call.args) - 1 == placeholders
    if not placeholders:
        assert "=" not in str(text.value)
        return
    found = event_and_fields(str(text.value), (0,) * placeholders)
    assert found is not None, f"{text.value!r} is not 'event key=%s ...'"
    event, fields = found
    assert not event.endswith((",", ":"))
    assert not TAKEN & set(fields)


def test_loggers_when_made_then_have_names_that_are_looked_at() -> None:
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and "getLogger(__name__)" in ast.unparse(node.value):
                assert {ast.unparse(target) for target in node.targets} <= LOGGERS, module
