"""Every input that fuzzing knows, through its target, with any Python and without a fuzzer."""

import pytest

from tests.fuzz.corpora import CORPORA, TARGETS, inputs_of, target


@pytest.mark.parametrize("name", TARGETS)
def test_input_when_it_is_known_then_the_target_holds(name: str) -> None:
    inputs = list(inputs_of(name))
    assert inputs
    for each in inputs:
        for damaged in (each, each[:-1], each[1:], each + b"\0", b""):
            target(name)(damaged)


def test_corpora_when_they_are_read_then_each_belongs_to_a_target() -> None:
    assert {path.name for path in CORPORA.glob("*")} <= set(TARGETS)
