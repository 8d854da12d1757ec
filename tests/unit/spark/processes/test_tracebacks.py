"""Errors for users come without the frames and causes that only we can read; others keep theirs."""

import traceback

import pytest

from interpulse.model.errors import TopicNotFound
from interpulse.spark.processes.tracebacks import strip_traceback, strip_traceback_while_reading


def fail(error):
    try:
        raise KeyError("inside")
    except KeyError as cause:
        raise error from cause


@strip_traceback
def step(error):
    fail(error)


@strip_traceback_while_reading
def steps(error):
    yield 1
    fail(error)


@pytest.mark.parametrize("call", [step, lambda error: list(steps(error))])
def test_missing_package_is_told_with_what_to_do(call):
    with pytest.raises(ModuleNotFoundError, match=r"^package google is not installed where .* into the archive$"):
        call(ModuleNotFoundError("No module named 'google'", name="google"))


@pytest.mark.parametrize("call", [step, lambda error: list(steps(error))])
@pytest.mark.parametrize(("error", "is_plain"), [(TopicNotFound("no topic"), True), (AssertionError("ours"), False)])
def test_errors_for_users_come_without_traceback(call, error, is_plain):
    with pytest.raises(type(error)) as caught:
        call(error)
    text = "".join(traceback.format_exception(caught.value))
    assert str(error) in text
    assert ("KeyError" not in text and "in fail" not in text) == is_plain
