"""The page on testing: its files are run as they stand, here and by a reader who has only the wheel."""

from __future__ import annotations

import pytest

from tests.guides.conftest import WalkFactory
from tests.guides.pages import HOWTO, Block, blocks_of

pytest_plugins = "pytester"

PAGE = HOWTO / "test-with-interpulse.md"
FILES = {block.file_name: block for block in blocks_of(PAGE) if block.file_name is not None}


@pytest.mark.interop
@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("test_")])
def test_example_when_run_from_the_page_then_passes(pytester: pytest.Pytester, name: str) -> None:
    for file in ("conftest.py", name):
        pytester.path.joinpath(file).write_text(FILES[file].text)
    options = ("-p", "no:randomly", "-o", "asyncio_default_fixture_loop_scope=function", "--strict-markers")
    result = pytester.runpytest_subprocess(*options, "-W", "error", name)
    assert result.parseoutcomes().keys() == {"passed"}


@pytest.mark.slow
def test_page_when_followed_from_the_wheel_then_every_step_works(reader: WalkFactory) -> None:
    setup = Block("test", 1, "", "sh", '"$WALK_UV" -q venv ../venv && . ../venv/bin/activate\n')
    outputs = reader().follow([setup, *blocks_of(PAGE)])
    passed = [said for said in outputs.values() if " passed in " in said]
    assert len(passed) == len([name for name in FILES if name.startswith("test_")])
    assert "b'one'" in "".join(outputs.values())
