"""Which test file belongs to which module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.own_coverage import module_of, own_test_of, unpaired

TOPICS, TEST_TOPICS = Path("src/interpulse/rules/topics.py"), Path("tests/unit/rules/test_topics.py")


@pytest.mark.parametrize(
    ("test_file", "module"),
    [
        ("tests/unit/rules/test_topics.py", "src/interpulse/rules/topics.py"),
        ("tests/unit/test_clock.py", "src/interpulse/clock.py"),
        ("tests/unit/support/test_waiting.py", "tests/support/waiting.py"),
    ],
)
def test_file_is_named_after_its_module(test_file: str, module: str) -> None:
    assert module_of(Path(test_file)) == Path(module)


def test_module_in_the_package_has_its_test_file_in_the_same_tree() -> None:
    assert own_test_of(TOPICS) == TEST_TOPICS


def test_modules_and_test_files_that_stand_alone_are_listed() -> None:
    law = Path("tests/unit/rules/test_no_such_module.py")
    waiting = Path("tests/unit/support/test_waiting.py")
    assert unpaired([TOPICS], [TEST_TOPICS, waiting]) == ([], [])
    assert unpaired([TOPICS], [law]) == ([TOPICS], [law])
