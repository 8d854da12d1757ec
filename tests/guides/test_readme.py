"""README's walk from the built wheel, in an empty environment: the text of the page is what runs."""

import pytest

from tests.guides.conftest import WalkFactory
from tests.guides.pages import README, blocks_of

pytestmark = pytest.mark.timeout(1200)

TRY_IT, TEST, CLIENT = HEADINGS = ("Try it", "A broker in a test", "The client")
REPLACED = {"/tmp/try-interpulse": "elsewhere"}


def test_readme_when_it_has_a_block_then_the_walk_follows_it() -> None:
    assert {block.heading for block in blocks_of(README)} == set(HEADINGS)


@pytest.mark.slow
def test_walk_when_followed_in_order_then_every_step_works(reader: WalkFactory) -> None:
    blocks = blocks_of(README)
    outputs = reader(replaced=REPLACED).follow(blocks)
    shown = {
        heading: "".join(outputs[block.place] for block in blocks if block.heading == heading) for heading in HEADINGS
    }
    assert shown[TRY_IT].count("content:hello") == 10
    assert "1 passed" in shown[TEST]
    assert "b'one'" in shown[CLIENT]
